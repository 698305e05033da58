"""Kernels of the element type sparse: keys as in int8, of values the largest three quarters of each group.

A group's row of V, at [groups][slots]: a bitmap of ceil(group / 8) bytes, channel c bit c % 8 of byte c // 8;
the int8 codes of the channels whose bit is set, ascending, code + 128; 128 up to a whole word. What is not
kept reads 0, which attention takes for the byte 128: so offset, weights and sums have the bounds of int8, and
only storing V and av differ. Heads may share a row, so that av finds its own: three numbers more stand in `a`
right before V's runs (V_RUNS), bytes of the query records that share a KV head, values of a group, and bytes
from a group's rows to the next group's, which in `e` is VECTOR_HEAD. Neither kernel is written in assembler:
sparse saves 6 % of int8's bytes, which is not worth a second copy of both.
"""

from .. import FAMILY as _BASE
from ..derived_kernels import Variant


class _Sparse(Variant):
    """encode() is int8's, which VECTOR_MOST tells to store K alone, and then encode_values()."""

    def _set_of(self, name, functions):
        made = Variant._set_of(self, name, functions)
        both = (made.encode, made.encode_values)

        def encode(buf, k, v, e):
            # One name from outside and four arguments: a call with more of them allocates.
            return both[0](buf, k, v, e) or both[1](buf, k, v, e)

        made.encode = encode
        return made


FAMILY = _Sparse(
    __name__,
    __file__[: __file__.rfind("/") + 1],
    _BASE,
    "sparse",
    own=("encode_values", "av"),
    added=("encode_values",),
    assembled=False,
)
