"""Kernels of the element type int4: fresh rows of int8, and sealed blocks of 16 tokens in 4 bits.

Of its own a set has scales, as both forms share an exponent; qk4, center and av4 for the sealed tokens that
attention sees behind the fresh ones; seal_keys, seal_values and open_row, which turn one form into the other.
plain.py has the definitions; all else is int8's. params.py: what these read besides ../params.py.
"""

from .. import FAMILY as _BASE
from ..derived_kernels import Variant

ADDED = ("qk4", "center", "av4", "seal_keys", "seal_values", "open_row")

FAMILY = Variant(
    __name__, __file__[: __file__.rfind("/") + 1], _BASE, "int4", ("scales",) + ADDED, added=ADDED
)
