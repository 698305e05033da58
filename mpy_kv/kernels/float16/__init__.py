"""Kernels of the element type float16: keys and values as IEEE halves, no scales.

encode, scales, qk and av differ from int8's. Attention stays in integers: a number is read as a signed one of
15 bits relative to the largest exponent field that is visible, which scales() finds; dots and sums come out
in the units of int8's, whose score, weights and emit serve here too.
"""

from .. import FAMILY as _BASE
from ..derived_kernels import Variant

FAMILY = Variant(
    __name__, __file__[: __file__.rfind("/") + 1], _BASE, "float16", ("encode", "scales", "qk", "av")
)
