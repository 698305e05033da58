"""Snapshots of mpy_kv.snapshot on the host: what is in one, whether it is sound, its vectors as numbers."""

from __future__ import annotations

import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commandline.errors import BadInput, FellShort
from mpy_kv import cache_for, geometry_for, snapshot
from mpy_kv.errors import KVError
from mpy_kv.transient import load_module

if TYPE_CHECKING:  # slow to import
    import numpy as np

MOST_BYTES = 1 << 31  # of a cache that is made because a file says so


@dataclass(frozen=True)
class Section:
    tag: str
    index: int
    at: int  # of its content, from the start of the file
    length: int


@dataclass(frozen=True)
class Snapshot:
    """Of a file whose lengths and checksums are right. types: (element type, group or None) of each layer."""

    data: bytes
    header: Any
    sections: tuple[Section, ...]
    types: tuple[tuple[str, int | None], ...]

    def figures(self) -> dict[str, Any]:
        h = self.header
        names = ("total_bytes", "layers", "heads", "kv_heads", "head_dim", "sinks", "rope", "length", "first")
        return {
            "version": load_module("mpy_kv.snapshot.header").VERSION,
            **{name: getattr(h, name) for name in names},
            "model": f"{h.model:08x}",
            "window": h.window or None,
            "capacity": h.capacity or None,
            "kind": load_module("mpy_kv.snapshot.header").FORMS[h.form],
            "tokens": h.tokens,
            "evicted_tokens": h.evicted,
            "policy": h.policy or None,
            "recent": h.recent if h.policy else None,
            "codec": [name for name, _ in self.types],
            "group": [group for _, group in self.types],
            "sections": [{"tag": s.tag, "index": s.index, "bytes": s.length} for s in self.sections],
        }


def read(path: Path, option: str = "FILE") -> Snapshot:
    """FellShort for a file that is no sound snapshot."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot be read: {error.strerror}") from None
    headers = load_module("mpy_kv.snapshot.header")
    found: list[Section] = []
    file = io.BytesIO(data)

    def seen(tag: bytes, index: int, length: int) -> None:
        before = found[-1].at + found[-1].length + 4 if found else headers.BYTES
        found.append(Section(tag.decode("latin-1"), index, before + 12, length))

    try:
        h = snapshot.check(file.readinto, seen)
        if file.read(1):
            raise snapshot.BadSnapshot(f"the file is longer than the {h.total_bytes:,} bytes of its snapshot")
        words = memoryview(data)[found[0].at :][: 4 * h.layers]
        numbers = [int.from_bytes(words[4 * i : 4 * i + 4], "little") for i in range(h.layers)]
        types = tuple(headers.type_of(number) for number in numbers)
    except KVError as error:
        raise FellShort(f"{path}: {error}") from None
    return Snapshot(data, h, tuple(found), types)


def loaded(of: Snapshot, name: str) -> tuple[Any, dict[int, int]]:
    """An empty cache of its geometry that has taken it over, and its ids by position. FellShort where it
    holds what no program writes."""
    h = of.header
    codecs, groups = [codec for codec, _ in of.types], [group for _, group in of.types]
    alike = len(set(of.types)) == 1
    try:
        g = geometry_for(
            codecs[0] if alike else codecs,
            *(h.layers, h.heads, h.kv_heads, h.head_dim),
            group=groups[0] if alike else groups,
            **({"capacity": h.capacity} if h.capacity else {"window": h.window, "sinks": h.sinks}),
        )
        if g.bytes() > MOST_BYTES:
            raise FellShort(
                f"{name}: a cache of its shape takes {g.bytes():,} bytes; at most {MOST_BYTES:,} here"
            )
        if h.policy:
            from mpy_kv.token_eviction import BudgetCache

            cache = BudgetCache(g, policy=h.policy, recent=h.recent)
        else:
            cache = cache_for(g)
        ids: dict[int, int] = {}
        snapshot.load(cache, io.BytesIO(of.data).readinto, h.model, h.rope, ids)
    except KVError as error:
        raise FellShort(f"{name}: {error}") from None
    return cache, ids


def tensors(cache: Any, ids: dict[int, int]) -> dict[str, np.ndarray]:
    """Keys and values of the visible tokens as stored, float32 [kv_heads, tokens, head_dim] by layer; their
    positions, and their ids where these are known."""
    import numpy as np

    g = cache.geometry
    positions = cache.visible()
    found = {"positions": np.array(positions, np.int64)}
    if len(ids) == len(positions) and ids:
        found["ids"] = np.array([ids[p] for p in positions], np.int64)
    for layer in range(g.layers):
        for which in ("k", "v"):
            rows = np.array([cache.read(layer, which, p) for p in positions], np.float32)
            rows = rows.reshape(len(positions), g.kv_heads, g.head_dim)
            found[f"layers.{layer}.{which}"] = np.ascontiguousarray(rows.transpose(1, 0, 2))
    return found


def need_safetensors() -> None:
    """BadInput where the library is not installed."""
    if importlib.util.find_spec("safetensors") is None:
        raise BadInput("--to safetensors: no safetensors here; pip install -e '.[safetensors]' adds it")


def as_safetensors(of: Snapshot, name: str) -> bytes:
    """The vectors as a file of safetensors, what the header says among its metadata."""
    from safetensors.numpy import save

    texts = {key: str(value) for key, value in of.figures().items() if key != "sections"}
    return bytes(save(tensors(*loaded(of, name)), metadata=texts))
