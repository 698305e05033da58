"""The parts of MicroPython's `micropython`, `uctypes`, `time` and `asyncio` that mpy_kv uses, for CPython."""

from array import array

_ANY = 0x11C  # PyBUF_FULL_RO: whatever lies in a buffer, in whatever order
_calls = None


def const(value):
    return value


def native(function):
    return function


viper = native


def ptr32(array):
    return array


def fits(x, int16, written):
    """Whether x lies as an array of that element type does, numpy's too. TypeError if it has no bytes."""
    view = memoryview(x)
    good = view.format == ("h" if int16 else "f") and view.ndim == 1 and view.c_contiguous
    return good and len(view) > 0 and not (written and view.readonly)


def address(buf):
    """Where in memory the bytes of a buffer begin, read-only ones too: of an array, numpy's, a view."""
    global _calls
    if _calls is None:
        _calls = _load()
    view = _calls[0]()
    _calls[1](buf, view, _ANY)
    at = view[0]
    _calls[2](view)
    return at or 0  # an empty one may have none


def _load():
    """(type of a Py_buffer as words, the first of which is the address; what fills it; what lets go of it)"""
    import ctypes

    get = ctypes.pythonapi.PyObject_GetBuffer
    release = ctypes.pythonapi.PyBuffer_Release
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    release.argtypes = [ctypes.c_void_p]
    release.restype = None
    return ctypes.c_void_p * 11, get, release


def look_each_time(sequence):
    """Have a class of sequences check numpy's arrays at each call: their type can be changed in place."""
    admit, check_staged = sequence._admit, sequence._check_staged

    def _admit(self, seen, layer, x, name):
        if isinstance(x, (array, memoryview)):
            admit(self, seen, layer, x, name)
        else:
            self._accept(x, name)

    def _check_staged(self, layer, n):
        check_staged(self, layer, n)
        self._accept(self._staged_k[layer], "k")
        self._accept(self._staged_v[layer], "v")

    sequence._admit, sequence._check_staged = _admit, _check_staged


def ticks_us():
    import time

    return time.monotonic_ns() // 1000 & 0x3FFFFFFF


class Scheduler:
    """Stands in for `asyncio.core`: a suspended task is a future, and its own queue."""

    def __init__(self):
        self._task_queue = self
        self._future = None

    @property
    def cur_task(self):
        import asyncio

        class Suspended(asyncio.Future):
            data = None

        self._future = Suspended()
        return self._future

    def ticks(self):
        return 0

    def ticks_add(self, now, ms):
        return now + ms

    def push(self, future, ms=0):
        def wake():
            if not future.done():
                future.set_result(None)

        future.get_loop().call_later(ms / 1000, wake)

    def awaited(self, waiter):
        """As MicroPython iterates over what it awaits."""
        try:
            while True:
                try:
                    waiter.__next__()
                except StopIteration:
                    return
                yield from self._future
        finally:
            waiter.close()
