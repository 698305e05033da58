"""A sequence back from its flash log: what blocks.py does once. Transient (mpy_kv/transient.py)."""

from ..errors import StepError
from ..transient import load_module
from .blocks import STAMP_BYTES
from ..flash_log.words import copy, word

_BLOCK = 16
_SINKS = 0x20000000  # set in the identity of the sinks' slot


class _State:
    """What Positions.publish() asks of a header (mpy_kv/snapshot)."""

    def __init__(self, layers, length, first, sinks):
        self.layers = layers
        self.length = length
        self.first = first
        self.sinks = sinks
        self.tokens = min(sinks, length) + length - first
        self.evicted = length - self.tokens


def restore(blocks, accept):
    """As BlockLog.restore: the newest block of which all that is visible can be read. Its last token is left
    out, since whoever goes on runs it anyway, to have what follows from it."""
    log = blocks.log
    form = load_module("mpy_kv.snapshot.forms").of(blocks.cache)
    load_module("mpy_kv.snapshot.forms").check_empty(blocks.cache)
    blocks.slot = log.find(blocks.identity)
    blocks.sink_slot = log.find(blocks.identity | _SINKS)
    if blocks.slot < 0 or blocks.sinks and blocks.sink_slot < 0:
        return 0
    newest = log.count[blocks.slot]
    while newest > log.base[blocks.slot]:
        newest -= 1
        length = blocks.sinks + _BLOCK * (newest + 1) - 1
        first = max(blocks.sinks, length + 1 - blocks.window)
        if _read(blocks, newest, first, length):
            blocks.position = length
            if accept is not None and not accept():
                break
            log.truncate(blocks.slot, newest + 1)
            if hasattr(form, "keep"):
                form.keep((first - blocks.sinks) // _BLOCK, newest - 1)
            form.publish(_State(blocks.cache.geometry.layers, length, first, blocks.sinks))
            return length
    return 0


def _read(blocks, newest, first, length):
    """The rows of positions first..length - 1 and the sinks into the buffer, the newest block's tail."""
    sinks = blocks.sinks
    sealed = getattr(blocks.cache.geometry, "sealed", False)
    blocks.story = -1
    if sinks and not _record(blocks, blocks.sink_slot, 0, -1, sinks, 0, sinks):
        return False
    low = block = (first - sinks) // _BLOCK
    if sealed:
        # Rows of the newest two alone; the others in sealed form, each in the record of the next one.
        first = sinks + _BLOCK * max(0, newest - 1)
        block = min(low + 1, (first - sinks) // _BLOCK)
    while block <= newest:
        start = sinks + _BLOCK * block
        ends = (max(first, start), min(length, start + _BLOCK))
        if not _record(blocks, blocks.slot, start, block, _BLOCK, *ends):
            return False
        if blocks.sealed_blocks and low < block < newest:
            _open_sealed(blocks, block - 1)
        block += 1
    at = blocks.body(_BLOCK) + blocks.sealed_bytes + STAMP_BYTES
    copy(blocks.tail, blocks.stage, 0, at, len(blocks.tail))
    return True


def _record(blocks, slot, start, block, n, low, high):
    """Read the record of a block or, -1, of the sinks: n tokens from position `start` on; the rows of
    low..high - 1 into the buffer."""
    stage = blocks.stage
    stamp = blocks.body(n)
    if block >= 0:
        stamp += blocks.sealed_bytes
    if blocks.log.read(slot, max(block, 0), stage) != stamp + STAMP_BYTES + len(blocks.tail):
        return False
    if blocks.story < 0:
        blocks.story = word(stage, stamp)
    if word(stage, stamp) != blocks.story or word(stage, stamp + 4) != start + n:
        return False
    buffer = blocks.cache.buffer
    to = 0
    for i in range(0, len(blocks.planes), 2):
        at, size = blocks.planes[i], blocks.planes[i + 1]
        position = low
        while position < high:
            place, count = position, high - position
            if position >= blocks.sinks:
                place = blocks.sinks + (position - blocks.sinks) % blocks.ring
                count = min(count, blocks.sinks + blocks.ring - place)
            copy(buffer, stage, at + place * size, to + (position - start) * size, count * size)
            position += count
        to += n * size
    return True


def _open_sealed(blocks, block):
    """The sealed form of a block, from the record that has been read, into the buffer."""
    at = blocks.body(_BLOCK)
    planes = blocks.sealed
    for i in range(0, len(planes), 3):
        first, stride, size = planes[i], planes[i + 1], planes[i + 2]
        copy(blocks.cache.buffer, blocks.stage, first + block % blocks.sealed_blocks * stride, at, size)
        at += size


def begin(blocks):
    """As BlockLog.begin."""
    load_module("mpy_kv.snapshot.forms").check_empty(blocks.cache)
    log = blocks.log
    finish(blocks)
    blocks.slot = log.begin(blocks.identity)
    blocks.sink_slot = log.begin(blocks.identity | _SINKS) if blocks.sinks else -1
    blocks.position = 0
    blocks.story = log.number


def finish(blocks):
    """Close every sequence there is: a region holds one at a time."""
    log = blocks.log
    for slot in range(log.slots):
        while log.used[slot]:
            while log.step():
                pass
            try:
                log.close(slot)
            except StepError:
                pass
    blocks.slot = blocks.sink_slot = -1
