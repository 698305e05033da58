"""Bytes that follow from a geometry alone: of caches in examples, of what ships."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab import paths
from kvlab.docs.registry import Cost, Producer, named

SHAPE = (5, 8, 4, 8)  # of the examples: stories260K's layers, heads, KV heads, head_dim
CODECS = ("float16", "int8", "int8-int4", "int4", "sparse")
SHIPPED = ("stories.mkvm", "stories.bin")


def _bytes(codec: str, window: int) -> int:
    """Of the buffer of a window with its sinks."""
    from mpy_kv import geometry_for

    return int(geometry_for(codec, *SHAPE, window=window).bytes())


def _sizes(_wanted: Collection[str]) -> Mapping[str, str]:
    from mpy_kv import Geometry, geometry_for
    from mpy_kv.paged import PagedGeometry

    paged = PagedGeometry(*SHAPE, window=256, sinks=0, block_tokens=16)
    made = {
        "buffer_256": f"{Geometry(*SHAPE, window=256, sinks=4).bytes():,}",
        "arena_24": f"{paged.bytes(24):,}",
    }
    larger = (n for n in range(1, 512) if _bytes("int4", n) >= _bytes("int8", n))
    made["int4_smaller_from"] = f"{max(larger) + 1:,}"
    for codec in CODECS:
        held = geometry_for(codec, *SHAPE, capacity=512).kv_bytes(512)
        made[f"token_bytes_{codec.replace('-', '_')}"] = f"{held / 512:.1f}".removesuffix(".0")
    for name in SHIPPED:
        made[f"bytes_{name.replace('.', '_')}"] = f"{(paths.SHIPPED.parent / name).stat().st_size:,}"
    return made


PRODUCERS = (
    Producer(
        "sizes",
        "kvlab plan --model stories --board rp2040",
        Cost.CHEAP,
        named(
            *("buffer_256", "arena_24", "int4_smaller_from"),
            *(f"token_bytes_{codec.replace('-', '_')}" for codec in CODECS),
            *(f"bytes_{name.replace('.', '_')}" for name in SHIPPED),
        ),
        _sizes,
    ),
)
