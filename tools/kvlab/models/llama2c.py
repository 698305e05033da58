"""Reader of llama2.c checkpoints: the legacy header and version 1, both float32.

Every file is taken apart by the sizes its own header demands. A file that is a byte too short or
too long, or whose header cannot be meant, is refused with one line that names the numbers.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput

Floats = NDArray[np.float32]

OPTION = "--model"  # what most commands call a model

MAGIC = 0x616B3432  # "ak42": every header but the legacy one starts with it
LEGACY_BYTES = 28  # <7i, no magic, no version
VERSIONED_BYTES = 256  # magic, version, 7i, shared flag, zeros

EPS = 1e-5  # of every RMSNorm; llama2.c does not store it
ROPE_BASE = 10000.0  # llama2.c does not store it either
BOS = 1  # also what ends a story: the model was trained on stories joined by it
EOS = 2

# What a header may say. The largest published Llama stays a factor of four below; a number
# beyond is a foreign file or another byte order, and must not become an allocation.
_LIMITS = {
    "dim": 1 << 16,
    "hidden": 1 << 18,
    "layers": 1 << 10,
    "heads": 1 << 10,
    "kv_heads": 1 << 10,
    "vocab": 1 << 20,
    "seq_len": 1 << 21,
}
_LEAST = {"vocab": EOS + 1}  # of all others 1

_FOREIGN = {
    b"MKVM": "a board image already, there is nothing to convert: use it as it is",
    b"GGUF": "a GGUF file: export the model with llama2.c's export.py --version 1",
    b"PK\x03\x04": "a zip, most likely a PyTorch .pt file: export it with llama2.c's export.py --version 1",
}


@dataclass(frozen=True)
class Config:
    """Shape of a Llama as its checkpoint states it. All counts are positive and consistent."""

    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    seq_len: int  # tokens the model was trained for
    shared: bool  # the classifier is the embedding

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads

    @property
    def kv_dim(self) -> int:
        return self.kv_heads * self.head_dim


@dataclass(frozen=True)
class Weights:
    """Weights in float32. A matrix is (rows = outputs, cols = inputs)."""

    embed: Floats  # (vocab, dim)
    att_norm: Floats  # (layers, dim)
    wq: Floats  # (layers, dim, dim)
    wk: Floats  # (layers, kv_dim, dim)
    wv: Floats  # (layers, kv_dim, dim)
    wo: Floats  # (layers, dim, dim)
    ffn_norm: Floats  # (layers, dim)
    w1: Floats  # (layers, hidden, dim)  gate
    w2: Floats  # (layers, dim, hidden)  down
    w3: Floats  # (layers, hidden, dim)  up
    final_norm: Floats  # (dim,)
    classifier: Floats  # (vocab, dim); the very embed array when shared


@dataclass(frozen=True)
class Checkpoint:
    """A llama2.c checkpoint in memory."""

    path: Path
    header: str  # "legacy" or "version 1"
    config: Config
    weights: Weights
    crc32: int  # of the whole file: identifies the model

    @property
    def parameters(self) -> int:
        """Numbers the model was trained to: a shared classifier counts once."""
        total = sum(int(w.size) for w in vars(self.weights).values())
        return total - (self.weights.classifier.size if self.config.shared else 0)


def shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Shape of each field of Weights; "classifier" is there also when it is shared."""
    return {
        "embed": (c.vocab, c.dim),
        "att_norm": (c.layers, c.dim),
        "wq": (c.layers, c.dim, c.dim),
        "wk": (c.layers, c.kv_dim, c.dim),
        "wv": (c.layers, c.kv_dim, c.dim),
        "wo": (c.layers, c.dim, c.dim),
        "ffn_norm": (c.layers, c.dim),
        "w1": (c.layers, c.hidden, c.dim),
        "w2": (c.layers, c.dim, c.hidden),
        "w3": (c.layers, c.hidden, c.dim),
        "final_norm": (c.dim,),
        "classifier": (c.vocab, c.dim),
    }


# Order of the tensors in the file; "rope" is two tables of (seq_len, head_dim/2) that the legacy
# format carries and nobody needs.
_LEGACY_ORDER = (
    *("embed", "att_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3", "final_norm"),
    *("rope", "classifier"),
)
_V1_ORDER = (
    *("att_norm", "ffn_norm", "final_norm", "embed", "wq", "wk", "wv", "wo", "w1", "w2", "w3"),
    "classifier",
)


def parse_header(head: bytes, name: str = OPTION) -> tuple[str, Config, int]:
    """First bytes of a file -> (header kind, config, bytes of the header).

    `name` (the option and the file) starts every message. Raises BadInput for anything that is
    not a float32 llama2.c checkpoint of a sane, consistent shape.
    """
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise BadInput(f"{name}: this is {what}")
    if len(head) < LEGACY_BYTES:
        raise BadInput(
            f"{name}: {len(head)} bytes, but a llama2.c header alone takes {LEGACY_BYTES}: "
            "pass a complete checkpoint"
        )
    if struct.unpack_from("<I", head)[0] != MAGIC:
        numbers = struct.unpack_from("<7i", head)
        shared = numbers[5] > 0  # the legacy format marks a separate classifier by the sign
        config = _config((*numbers[:5], abs(numbers[5]), numbers[6]), shared)
        return "legacy", _check(config, head[:LEGACY_BYTES], name), LEGACY_BYTES
    version = struct.unpack_from("<i", head, 4)[0]
    if version == 2:
        raise BadInput(
            f"{name}: a version 2 checkpoint (weights already rounded to int8): export the model "
            "with llama2.c's export.py --version 1 (float32) and pass that"
        )
    if version != 1:
        raise BadInput(
            f"{name}: checkpoint version {version} is unknown (known: legacy, 1): export the "
            "model with llama2.c's export.py --version 1 and pass that"
        )
    if len(head) < VERSIONED_BYTES:
        raise BadInput(
            f"{name}: {len(head)} bytes, but a version 1 header alone takes {VERSIONED_BYTES}: "
            "pass a complete checkpoint"
        )
    numbers = struct.unpack_from("<7i", head, 8)
    flag = head[36]
    if flag > 1 or any(head[37:VERSIONED_BYTES]):
        raise BadInput(
            f"{name}: the version 1 header must have 0 or 1 at byte 36 (shared classifier; found "
            f"{flag}) and zeros from there to byte 256: pass an intact checkpoint"
        )
    config = _check(_config(numbers, flag == 1), head[8:36], name)
    return "version 1", config, VERSIONED_BYTES


def _config(numbers: tuple[int, ...], shared: bool) -> Config:
    """Seven integers in the order both headers have them -> Config, still unchecked."""
    return Config(**dict(zip(_LIMITS, numbers, strict=True)), shared=shared)


def _check(c: Config, raw: bytes, name: str) -> Config:
    """Refuse a geometry that cannot be meant. `raw` holds the seven integers as stored."""
    for field, limit in _LIMITS.items():
        value = getattr(c, field)
        least = _LEAST.get(field, 1)
        if least <= value <= limit:
            continue
        swapped = struct.unpack_from(">7i", raw)
        big = all(1 <= abs(s) <= top for s, top in zip(swapped, _LIMITS.values(), strict=True))
        hint = " (big-endian numbers? llama2.c files are little-endian)" if big else ""
        raise BadInput(
            f"{name}: implausible header: {field} is {value}, allowed are {least} to {limit}{hint}: "
            "pass a llama2.c checkpoint"
        )
    for top, bottom in (("dim", "heads"), ("heads", "kv_heads")):
        a, b = getattr(c, top), getattr(c, bottom)
        if a % b:
            raise BadInput(
                f"{name}: inconsistent header: {top} {a} is not divisible by {bottom} {b}: "
                "pass a llama2.c checkpoint"
            )
    if c.head_dim % 2:
        raise BadInput(
            f"{name}: inconsistent header: dim {c.dim} over heads {c.heads} gives an odd head_dim "
            f"{c.head_dim}, which cannot be rotated in pairs: pass a llama2.c checkpoint"
        )
    return c


def file_bytes(header: str, c: Config) -> int:
    """Exact length of a checkpoint file with that header and shape."""
    sizes = {k: int(np.prod(s, dtype=object)) for k, s in shapes(c).items()}
    sizes["rope"] = c.seq_len * c.head_dim
    if c.shared:
        sizes["classifier"] = 0
    legacy = header == "legacy"
    order = _LEGACY_ORDER if legacy else _V1_ORDER
    return (LEGACY_BYTES if legacy else VERSIONED_BYTES) + 4 * sum(sizes[k] for k in order)


def read_checkpoint(path: str | Path, option: str = OPTION) -> Checkpoint:
    """Read a checkpoint. Raises BadInput when it is missing, foreign, cut short or too long.

    `option` is what the user passed it as; messages start with it.
    """
    path = Path(path)
    name = f"{option} {path.name}"
    try:
        with path.open("rb") as f:
            header, config, offset = parse_header(f.read(VERSIONED_BYTES), name)
        have, need = path.stat().st_size, file_bytes(header, config)
        if have != need:
            what = "cut short" if have < need else "has bytes left over"
            raise BadInput(
                f"{name}: {what}: its {header} header demands {need} bytes, the file has {have}: "
                "pass a complete llama2.c checkpoint"
            )
        data = path.read_bytes()
    except OSError as e:
        raise BadInput(f"{option} {path}: cannot be read: {e.strerror or e}") from None
    weights = _split(data, offset, header, config)
    for key, values in vars(weights).items():
        if not np.isfinite(values).all():
            raise BadInput(
                f"{name}: {key} holds a number that is not finite: pass a checkpoint whose "
                "training did not diverge"
            )
    return Checkpoint(path, header, config, weights, zlib.crc32(data))


def _split(data: bytes, offset: int, header: str, c: Config) -> Weights:
    """Bytes of a checked length -> views on the tensors (no copies)."""
    every = shapes(c)
    found: dict[str, Floats] = {}
    for key in _LEGACY_ORDER if header == "legacy" else _V1_ORDER:
        if key == "rope":
            offset += 4 * c.seq_len * c.head_dim
        elif key == "classifier" and c.shared:
            found[key] = found["embed"]
        else:
            count = int(np.prod(every[key]))
            flat = np.frombuffer(data, "<f4", count, offset)
            found[key] = flat.reshape(every[key])
            offset += 4 * count
    assert offset == len(data)
    return Weights(**found)
