"""What a script may ask of the emulator, as on the unix port: to note how full the heap is.

`mark(label)` and `sample()` keep nothing in the script's heap: their memory was taken before the fence
was drawn. There is no clock here: marks have no time, and samples are not kept.
"""

import gc
from array import array

from micropython import const

_MARKS = const(64)

_bytes = array("i", [0] * _MARKS)
_labels = [""] * _MARKS
_count = 0
_base = 0


def begin(base_bytes):
    """`base_bytes` of the heap are the emulator's own and never counted."""
    global _base
    _base = base_bytes


def mark(label):
    """Collect garbage and note what is live. Allocates nothing; marks beyond the 64th are dropped."""
    global _count
    gc.collect()
    if _count < _MARKS:
        _bytes[_count] = gc.mem_alloc() - _base
        _labels[_count] = label
        _count += 1


def sample():
    """Nothing: there is no clock to note it by."""


def marks():
    """[[label, bytes], ...] so far."""
    return [[str(_labels[i]), _bytes[i]] for i in range(_count)]
