"""Kernels of the element type float32: what was given, as it is. For reference: in plain integers only.

Attention is float16's, with numbers of 15 bits relative to the largest; what float32 costs or saves in memory
and loss is seen with it. On a board each token allocates, as the plain kernels do.
"""

from .. import FAMILY as _BASE
from ..derived_kernels import Variant


class _Plain(Variant):
    """The plain set and no other, unless a host registers one."""

    def _candidates(self):
        return self._extra

    def get(self, name):
        """As Family.get."""
        if name in ("thumb", "viper"):
            raise ValueError("kernels %r cannot be used here: float32 is for reference, use 'plain'" % name)
        return Variant.get(self, name)


FAMILY = _Plain(
    __name__, __file__[: __file__.rfind("/") + 1], _BASE, "float32", ("encode", "scales", "qk", "av")
)
