"""Kernels of the element type int8-int4: keys as in int8, values in 4 bits.

Values are symmetric groups too: the smallest float16 s with 7 s >= the largest magnitude, codes -7..7 stored
as code + 8, two a byte, the low nibble first. int8's encode makes both. Only av differs: it takes a nibble
for 16 times itself, so that offset, weights and sums have the bounds of int8, and V_BIAS takes that out of
results.
"""

from .. import FAMILY as _BASE
from ..derived_kernels import Variant

FAMILY = Variant(__name__, __file__[: __file__.rfind("/") + 1], _BASE, "int8-int4", ("av",))
