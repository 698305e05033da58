"""What a Queue is made of, what it refuses and its audit. Transient (mpy_kv/transient.py)."""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from array import array

from ..errors import BadArgument
from ..geometry import whole
from ..port import EMITTER, addressof, ints
from .kernels import base

# fields: dma, dma region, descriptor, stride
_ROOM = const(0)
_FILLED = const(1)
_BANK = const(2)
_OTHER = const(3)
_RUN_BYTES = const(6)
_RUN_FROM = const(7)
_RUN_TO = const(8)
_SPARE = const(9)
_REGIONS = const(11)
_REGIONS_END = const(12)
_CONTROL = const(13)
_BANKS = const(16)
_START = const(0)
_END = const(1)
_WRITABLE = const(3)
_REGION_WORDS = const(4)
_TRANS_COUNT = const(2)
_CTRL = const(3)
_DESCRIPTOR_WORDS = const(4)
_ROW_BYTES = const(0)
_READ_STEP = const(1)
_WRITE_STEP = const(2)
# end of fields

_MOST_BYTES = 1 << 28
_ENABLED = 1  # bit of CTRL
_SIZE_AT = 2  # in it, of a transfer as a power of two


def views(regions):
    """The buffers as views of bytes, disjoint in memory. BadArgument."""
    found = []
    for i, region in enumerate(regions):
        try:
            view = memoryview(region)
        except TypeError:
            raise BadArgument("region %d is no buffer: %s" % (i, type(region).__name__))
        if not 0 < len(view) < _MOST_BYTES or len(bytes(view[:1])) != 1:
            raise BadArgument("region %d must have 1..%d items, bytes each" % (i, _MOST_BYTES - 1))
        found.append(view)
    if not found or sum([len(view) for view in found]) >> 30:
        raise BadArgument("regions must be one or more, of less than 2^30 bytes in all")
    if EMITTER:
        places = sorted([(addressof(view), len(view)) for view in found])
        for i in range(1, len(places)):
            if places[i - 1][0] + places[i - 1][1] > places[i][0]:
                raise BadArgument("regions overlap in memory")
    return tuple(found)


def words(descriptors, regions, ctrl, spare):
    """State, banks and regions of a queue that is empty."""
    whole("descriptors", descriptors, 1, 4096)
    whole("spare", spare, 0, 1 << 20)
    bank = _DESCRIPTOR_WORDS * (descriptors + 1)
    at = _BANKS + 2 * bank
    words = array("I", bytes(4 * (at + _REGION_WORDS * (len(regions) + 1))))
    words[_ROOM] = descriptors
    words[_BANK] = _BANKS
    words[_OTHER] = _BANKS + bank
    words[_SPARE] = spare
    words[_REGIONS] = at
    # Of no run yet: at one that is empty.
    words[_RUN_FROM] = words[_RUN_TO] = at + _REGION_WORDS * len(regions)
    words[_REGIONS_END] = at + _REGION_WORDS * len(regions)
    for size in range(3):
        words[_CONTROL + size] = ctrl[size] if ctrl is not None else size << _SIZE_AT | _ENABLED
    start = 0
    for i, view in enumerate(regions):
        r = at + i * _REGION_WORDS
        words[r + _START] = start
        start += len(view)
        words[r + _END] = start
        words[r + _WRITABLE] = writable(view)
        if not base(words, view, r):
            raise BadArgument("region %d is too far away for 32 bits" % i)
    r += _REGION_WORDS
    words[r + _START] = words[r + _END] = 1 << 30  # at which a search ends
    return words


def address(array):
    """Where it lies, for kernels in native code."""
    return addressof(array)


def writable(view):
    try:
        view[0] = view[0]
        return 1
    except TypeError:
        return 0


def how():
    """Rows of no shape yet: none lies in a region."""
    return ints([1 << 28, 0, 0])


def shape(how, nbytes, read_step, write_step):
    how[_ROW_BYTES] = whole("nbytes", nbytes, 1, _MOST_BYTES - 1)
    how[_READ_STEP] = whole("read_step", read_step, 0, _MOST_BYTES - 1)
    how[_WRITE_STEP] = whole("write_step", write_step, 0, _MOST_BYTES - 1)


def refuse(queue, read, write, nbytes):
    """BadArgument that tells why."""
    ends = [0]
    for view in queue.regions:
        ends.append(ends[-1] + len(view))
    why = "they lie over each other, and would be read after they are written, or are more rows than fit"
    found = [sum([at >= end for end in ends]) - 1 for at in (read, write)]
    if min(found) < 0 or nbytes < 0:
        why = "a number below 0"
    elif (
        max(found) >= len(queue.regions)
        or max([at + nbytes - ends[i + 1] for at, i in zip((read, write), found)]) > 0
    ):
        why = "either side must lie in one region"
    elif not writable(queue.regions[found[1]]):
        why = "that region may only be read"
    raise BadArgument("%r bytes from %r to %r: %s" % (nbytes, read, write, why))


def check(queue):
    """How many of the state's invariants are broken."""
    words = queue.words
    n, room = words[_FILLED], words[_ROOM]
    bank = _DESCRIPTOR_WORDS * (room + 1)
    broken = n > room
    broken += sorted((words[_BANK], words[_OTHER])) != [_BANKS, _BANKS + bank]
    broken += words[_RUN_BYTES] > 0 and n == 0
    controls = [words[_CONTROL + size] for size in range(3)]
    for i in range(min(n, room)):
        p = words[_BANK] + _DESCRIPTOR_WORDS * i
        broken += words[p + _CTRL] not in controls
        broken += words[p + _TRANS_COUNT] == 0
    if 0 < n <= room and words[_RUN_BYTES]:
        size = controls.index(words[p + _CTRL]) if words[p + _CTRL] in controls else 0
        broken += words[p + _TRANS_COUNT] << size != words[_RUN_BYTES]
    broken += queue._backend is None and queue.started != queue.passed
    return int(broken)
