"""What a sequence takes in a flash log. Transient (mpy_kv/transient.py)."""

from ..errors import BadArgument, NoRoom
from ..transient import load_module
from .blocks import BLOCK, STAMP_BYTES
from ..flash_log.log import FOOT_AT, SUPERBLOCKS, FlashLog, ahead_for, reserve_for

SLOTS = 2  # the sinks have one of their own: their record stays
_HEAD = 24  # of a sector, and of a fragment
_ENTRY = 8
_MOST_STEP = 1024


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
    """A multiple of the codes' rows, at which alone a sector's end cuts: it stays blank up to there. 8, where
    that would be too much."""
    step = 8
    for _, four in _layers(cache):
        for i in (0, 2):
            row = four[i][1]
            a, b = step, row
            while b:
                a, b = b, a % b
            step = step // a * row
    return step if step <= _MOST_STEP else 8


def row_bytes(cache):
    """Of a token in all layers."""
    return sum(planes(cache)[1::2])


def sealed(cache):
    """Of each plane of sealed blocks: offset of block 0, bytes from block to block, bytes of a block."""
    g = cache.geometry
    found = []
    if getattr(g, "blocks", 0):
        for layer in range(g.layers):
            base = cache.attention[layer].codes[layer]
            rows, scales = BLOCK * g.row4_bytes, 2 * BLOCK
            for codes in (g.at_codes4, g.at_v_codes4):
                for i in range(g.kv_heads):
                    found += [base + codes + i * g.head4_stride, rows, rows]
            found += [base + g.at_headers, g.header_bytes, 2 * g.groups]
            found += [base + g.at_headers + g.powers_bytes, g.header_bytes, 4 * g.width]
            for first in (g.at_v_scales4, g.at_v_scales4 + g.minima_gap):
                for i in range(g.groups):
                    found += [base + first + i * g.scale4_stride, scales, scales]
    return found


def sealed_bytes(cache):
    """Of a sealed block in all layers, in a record."""
    return (sum(sealed(cache)[2::3]) + 7) & -8


def block_bytes(cache, tail):
    """Of a block's record."""
    return ((BLOCK * row_bytes(cache) + 7) & -8) + sealed_bytes(cache) + STAMP_BYTES + tail


def sinks_bytes(cache, tail):
    """Of that of the sinks."""
    return ((cache.geometry.sinks * row_bytes(cache) + 7) & -8) + STAMP_BYTES + tail


def record_bytes(cache, tail):
    """Of the longest."""
    return max(block_bytes(cache, tail), sinks_bytes(cache, tail))


def records(cache, tail):
    """At a time: what is visible, one before it, the one that is written; the sinks; and those that lie in a
    sector that is not closed yet, without which nothing is given up."""
    waiting = (FOOT_AT - _HEAD) // block_bytes(cache, tail)
    return (cache.geometry.window + BLOCK - 1) // BLOCK + 3 + waiting


def smallest_sectors(cache, tail):
    """Of a region for the cache's tokens: superblocks, what is visible with sinks and two blocks more, what a
    start after a cut takes, and the sectors that cuts leave half empty, as long as these are a window apart.
    (Where they come more often the log may be full: `failed`, until the next start has made room.)"""
    size = block_bytes(cache, tail)
    a_sector = FOOT_AT - _HEAD
    blocks = (records(cache, tail) - 1) * (size + (size // a_sector + 2) * (_HEAD + _ENTRY))
    taken = blocks // a_sector + 2
    if cache.geometry.sinks:
        sinks = sinks_bytes(cache, tail)
        taken += sinks // (a_sector - _HEAD - _ENTRY) + 1
    size = record_bytes(cache, tail)
    ahead = ahead_for(size)
    return SUPERBLOCKS + taken + reserve_for(size, SLOTS) + 4 * ahead


def check(log, cache, tail):
    """As BlockLog."""
    form = load_module("mpy_kv.snapshot.forms").of(cache)
    header = load_module("mpy_kv.snapshot.header")
    if form.number not in (header.POSITIONS, header.BLOCKS) or hasattr(cache, "ledger"):
        raise BadArgument("cache must be a ring to be logged, got %s" % type(cache).__name__)
    if not isinstance(tail, bytearray) or len(tail) & 7:
        raise BadArgument("tail must be a bytearray, a multiple of 8 bytes long")
    if not hasattr(log, "sectors"):
        raise BadArgument("log must be a FlashLog, got %s" % type(log).__name__)
    _check_room(log.sectors, cache, len(tail))
    size, count = record_bytes(cache, len(tail)), records(cache, len(tail))
    if log.record_bytes < size or log.blocks < count or log.slots < SLOTS:
        raise BadArgument(
            "log must have records of %d bytes, %d blocks and %d slots: sizes.make() makes it"
            % (size, count, SLOTS)
        )


def _check_room(sectors, cache, tail):
    need = smallest_sectors(cache, tail)
    if sectors < need:
        raise NoRoom("flash log for the window", 4096 * need, 4096 * sectors, unit="bytes")


def make(device, cache, tail, feed=None):
    """A FlashLog on a device for this cache; NoRoom tells the smallest region."""
    _check_room(device.ioctl(4, 0), cache, tail)
    return FlashLog(device, record_bytes(cache, tail), SLOTS, records(cache, tail), feed)
