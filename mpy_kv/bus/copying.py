"""Copying: the plain backend of a Queue. The core copies; what ports have that offer no DMA, ESP32's too."""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..port import ints
from .kernels import copy as _copy

# fields: copying
_RECORD = const(0)
_COPIED = const(1)
_AT_WORDS = const(2)
# end of fields

_ALL = const(0x3FFFFFFF)


class Copying:
    """burst: the most bytes that one call of done() copies, 4 or more; 0: start() copies all there is."""

    ctrl = None  # a Queue's default

    def __init__(self, burst=0):
        self.burst = max(burst, 4) if burst else 0
        self.at = ints([], _AT_WORDS, "I")
        self._queue = None

    @micropython.native
    def begin(self, queue, first, descriptors):
        """Take the chain of so many descriptors whose first is at that word of the queue's."""
        self.at[_RECORD] = first
        self.at[_COPIED] = 0
        self._queue = queue
        if self.burst == 0:
            _copy(queue.words, self.at, _ALL, queue.regions)
            self._queue = None

    @micropython.native
    def done(self):
        """Copy a burst, if there is one left; whether all is done."""
        queue = self._queue
        if queue is None:
            return True
        if _copy(queue.words, self.at, self.burst, queue.regions):
            return False
        self._queue = None
        return True

    def stop(self):
        """Leave the rest."""
        self._queue = None

    def close(self):
        """For good. A channel of DMA has more to do."""
        self.stop()
