"""What an emulated script may ask of the emulator: to note how full the heap is.

    try:
        from emu import mark, sample
    except ImportError:  # on a board there is nobody to tell
        def mark(label): pass
        def sample(): pass

`mark("kv cache")` after a stage of start-up, `sample()` once a token. Neither keeps anything in
the script's heap: their memory was taken before the fence was drawn.
"""

import gc
import json
from array import array
from time import ticks_diff, ticks_us

from micropython import const

from emu.text import brief

# "l", not "q": reading a "q" makes an object even of a small number.
_SAMPLES = const(2048)
_MARKS = const(64)

_sample_us = array("l", bytes(8 * _SAMPLES))
_sample_bytes = array("l", bytes(8 * _SAMPLES))
_mark_us = array("l", bytes(8 * _MARKS))
_mark_bytes = array("l", bytes(8 * _MARKS))
_mark_label = [""] * _MARKS

_samples = 0
_marks = 0
_calls = 0  # of sample(), kept or not
_stride = 1  # every so many calls of sample() one is kept
_call = -1  # of sample(), at the end of which _then() is called
_then = None
_start_us = 0
_base_bytes = 0


def begin(base_bytes):
    """Start the clock. `base_bytes` of the heap are the emulator's own and never counted."""
    global _start_us, _base_bytes
    _base_bytes = base_bytes
    _start_us = ticks_us()


def mark(label):
    """Collect garbage and note what is live: `label` names what was added since the mark before.

    Allocates nothing. Marks beyond the 64th are dropped: the report tells how many were kept.
    """
    global _marks
    gc.collect()
    if _marks < _MARKS:
        _mark_us[_marks] = ticks_diff(ticks_us(), _start_us)
        _mark_bytes[_marks] = gc.mem_alloc() - _base_bytes
        _mark_label[_marks] = label
        _marks += 1


def sample():
    """Note the heap in use as it is, garbage included. Allocates nothing, collects nothing.

    May be called for ever: when the buffer is full, every second sample is dropped and from then
    on only every second call is kept.
    """
    global _samples, _calls, _stride
    if _calls % _stride == 0:
        if _samples == _SAMPLES:
            kept = 0
            while kept < _SAMPLES // 2:
                _sample_us[kept] = _sample_us[2 * kept]
                _sample_bytes[kept] = _sample_bytes[2 * kept]
                kept += 1
            _samples = kept
            _stride *= 2
        if _calls % _stride == 0:
            _sample_us[_samples] = ticks_diff(ticks_us(), _start_us)
            _sample_bytes[_samples] = gc.mem_alloc() - _base_bytes
            _samples += 1
    _calls += 1
    if _calls == _call:
        _then()


def at_sample(call, then):
    """then() is called at the end of that call of sample(), 1 is the first."""
    global _call, _then
    _call = call
    _then = then


def write_records(file):
    """Two lines of JSON: [[us, bytes, label], ...] of the marks, [[us, bytes], ...] of the
    samples.

    For the emulator. Written item by item: the script may have left little room.
    """
    file.write("[")
    for i in range(_marks):
        file.write(", " if i else "")
        json.dump((_mark_us[i], _mark_bytes[i], brief(_mark_label[i])), file)
    file.write("]\n[")
    for i in range(_samples):
        file.write("%s[%d,%d]" % (", " if i else "", _sample_us[i], _sample_bytes[i]))
    file.write("]\n")
