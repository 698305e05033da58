"""What a sequence takes in a flash log. Transient (mpy_kv/transient.py)."""

from ..errors import BadArgument, NoRoom
from ..transient import load_module
from .blocks import BLOCK, STAMP_BYTES
from ..flash_log.log import FOOT_AT, SUPERBLOCKS, ahead_for, reserve_for

SLOTS = 2  # the sinks have one of their own: their record stays
_HEAD = 24  # of a sector, and of a fragment
_ENTRY = 8


def _layers(cache):
    """Of each layer its planes (mpy_kv/snapshot/planes.py), with the offset of its block."""
    one = load_module("mpy_kv.snapshot.planes")
    for layer in range(cache.geometry.layers):
        attention = cache.attention[layer]
        yield attention.codes[layer], one.planes(attention.geometry)


def planes(cache):
    """Offset of slot 0 and bytes a slot of each plane: codes of K, codes of V, then scales, of all layers."""
    found = []
    for which in ((0,), (2,), (1, 3)):
        for base, four in _layers(cache):
            for i in which:
                first, size, count, stride = four[i]
                for j in range(count):
                    found += [base + first + j * stride, size]
    return found


def step_bytes(cache):
    """A multiple of the codes' rows, at which alone a sector's end cuts."""
    step = 8
    for _, four in _layers(cache):
        for i in (0, 2):
            row = four[i][1]
            a, b = step, row
            while b:
                a, b = b, a % b
            step = step // a * row
    return step


def row_bytes(cache):
    """Of a token in all layers."""
    return sum(planes(cache)[1::2])


def record_bytes(cache, tail, tokens=0):
    """Of a record of so many tokens; 0: of the longest that there is."""
    tokens = tokens or max(BLOCK, cache.geometry.sinks)
    return ((tokens * row_bytes(cache) + 7) & -8) + STAMP_BYTES + tail


def records(cache, tail):
    """At a time: what is visible, one before it, the one that is written; the sinks; and those that lie in a
    sector that is not closed yet, without which nothing is given up."""
    waiting = (FOOT_AT - _HEAD) // record_bytes(cache, tail, BLOCK)
    return (cache.geometry.window + BLOCK - 1) // BLOCK + 3 + waiting


def smallest_sectors(cache, tail):
    """Of a region for the cache's tokens: superblocks, what is visible with sinks and two blocks more, what a
    start after a cut takes, and the sectors that cuts leave half empty, as long as these are a window apart.
    (Where they come more often the log may be full: `failed`, until the next start has made room.)"""
    size = record_bytes(cache, tail, BLOCK)
    a_sector = FOOT_AT - _HEAD
    blocks = (records(cache, tail) - 1) * (size + (size // a_sector + 2) * (_HEAD + _ENTRY))
    taken = blocks // a_sector + 2
    if cache.geometry.sinks:
        sinks = record_bytes(cache, tail, cache.geometry.sinks)
        taken += sinks // (a_sector - _HEAD - _ENTRY) + 1
    size = record_bytes(cache, tail)
    ahead = ahead_for(size)
    return SUPERBLOCKS + taken + reserve_for(size, SLOTS) + 4 * ahead


def check(log, cache, tail):
    """As BlockLog."""
    form = load_module("mpy_kv.snapshot.forms").of(cache)
    if form.number != 0 or hasattr(cache, "ledger"):
        raise BadArgument("cache must be a ring to be logged, got %s" % type(cache).__name__)
    if len(tail) & 7:
        raise BadArgument("tail must be a multiple of 8 bytes, got %d" % len(tail))
    need = smallest_sectors(cache, len(tail))
    if log.sectors < need:
        raise NoRoom("flash log for the window", 4096 * need, 4096 * log.sectors, unit="bytes")
    if log.record_bytes < record_bytes(cache, len(tail)) or log.blocks < records(cache, len(tail)):
        raise BadArgument("log must be made for the records of the cache (sizes.py)")


def make(device, cache, tail, feed=None):
    """A FlashLog on a device for this cache; NoRoom tells the smallest region."""
    from ..flash_log.log import FlashLog

    need = smallest_sectors(cache, tail)
    have = device.ioctl(4, 0)
    if have < need:
        raise NoRoom("flash log for the window", 4096 * need, 4096 * have, unit="bytes")
    return FlashLog(device, record_bytes(cache, tail), SLOTS, records(cache, tail), feed)
