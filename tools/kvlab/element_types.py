"""Element types as tools see them: the device's own list, mpy_kv.geometry.CODECS, with names for its columns.

A table of tools that has something for each type is made of this one, or is held to it by
host_tests/test_structure.py.
"""

from __future__ import annotations

from typing import NamedTuple

from mpy_kv.geometry import CODECS

__all__ = ["EXACT", "HELD", "IN_IMAGES", "NAMES", "SEALED", "TYPES", "USUAL", "ElementType"]


class ElementType(NamedTuple):
    """A row, see mpy_kv/geometry.py."""

    k_bits: int
    v_bits: int
    most_group: int
    image_byte: int | None

    @property
    def scaled(self) -> bool:
        return self.most_group > 0

    @property
    def bits(self) -> int:
        """Of a key's value and of a value's."""
        return self.k_bits + self.v_bits


TYPES = {name: ElementType(*row) for name, row in CODECS.items()}
NAMES = tuple(TYPES)
SEALED = "int4"  # whose tokens lie in blocks of all layers: a cache has it in all of them, or in none
USUAL = "int8"  # unless another is asked for
EXACT = "float32"  # to compare with: its plain kernels allocate as they go, so no board is given it
HELD = tuple(name for name in NAMES if name != EXACT)
# By the byte that names one in a board image.
IN_IMAGES = tuple(
    name
    for _, name in sorted(
        (each.image_byte, name) for name, each in TYPES.items() if each.image_byte is not None
    )
)
