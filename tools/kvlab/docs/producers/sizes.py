"""Bytes that follow from a geometry alone: of caches in examples, of what ships."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab import paths, shipped
from kvlab.docs.registry import Cost, Producer, named

SHAPE = (5, 8, 4, 8)  # of the examples: stories260K's layers, heads, KV heads, head_dim
FILES = {
    f"bytes_{name}_{kind}".replace("-", "_"): f"{name}.{kind}"
    for name in shipped.NAMES
    for kind in ("mkvm", "bin")
}


def _bytes(codec: str, window: int) -> int:
    """Of the buffer of a window with its sinks."""
    from mpy_kv import geometry_for

    return int(geometry_for(codec, *SHAPE, window=window).bytes())


def _sizes(_wanted: Collection[str]) -> Mapping[str, str]:

    made = {}
    larger = (n for n in range(1, 512) if _bytes("int4", n) >= _bytes("int8", n))
    made["int4_smaller_from"] = f"{max(larger) + 1:,}"
    for name, file in FILES.items():
        made[name] = f"{(paths.SHIPPED.parent / file).stat().st_size:,}"
    return made


PRODUCERS = (
    Producer(
        "sizes",
        "kvlab plan --model stories --board rp2040",
        Cost.CHEAP,
        named(
            "int4_smaller_from",
            *FILES,
        ),
        _sizes,
    ),
)
