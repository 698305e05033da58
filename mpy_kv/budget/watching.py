"""Kernels that note how much attention each token gets, for a sequence that chooses its tokens by it."""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

from ..kernels import NAMES


class Watching:
    """A kernel set with its weights() led through `uses`, see eviction/tokens/plain.py. One small object a
    sequence, nothing a call: the method has four arguments, and is bound once."""

    def __init__(self, kernels, uses, plan):
        self.name = kernels.name
        self.codec = getattr(kernels, "codec", "int8")
        for name in NAMES:
            setattr(self, name, getattr(kernels, name))
        self._uses = uses
        self._plan = plan
        self._weights = self.weights
        self.weights = self._watched

    @micropython.native
    def _watched(self, y, same, tables, a):
        self._uses(y, self._plan, tables, a)
        return self._weights(y, same, tables, a)
