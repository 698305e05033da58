"""What the buddy and the region pool say when they refuse, their counts and their broken invariants.

Transient (mpy_kv/transient.py), for the texts take memory. Changes nothing; `meta`, `word` and so on: see
units.py, buddy.py and region.py.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, BadHandle, Locked, PoolFull
from .units import LOCK, NO_ENTRY

# fields: units, buddy, region, node
_N = const(0)
_MASK = const(1)
_STEP = const(2)
_WRAP = const(3)
_ALLOCS = const(4)
_FREES = const(5)
_USED = const(6)
_HIGH = const(7)
_HIGH_UNITS = const(8)
_FREE = const(9)
_WASTE = const(10)
_LOCKS = const(11)
_LOCKED = const(12)
_UNITS = const(13)
_SHIFT = const(14)
_ORDER = const(15)
_HEADS = const(16)
_BITS = const(15)
_HEAD = const(16)
_SPARE = const(17)
_SKEW = const(18)
_REST = const(2)
_LINK = const(3)
_LAYER = const(4)
_BATCH = const(5)
# end of fields


def refuse_handle(meta, word, handle):
    """`handle` is none of a block in use and unlocked; or it is, but was given twice."""
    if type(handle) is int and 0 <= handle <= meta[_WRAP] and handle & meta[_MASK] < meta[_N]:
        now = word[handle & meta[_MASK]]
        if now == handle:
            raise BadHandle("handle %r is there twice" % (handle,))
        if now == handle | LOCK:
            raise Locked("handle %r is locked: unlock it before freeing or moving" % (handle,))
        mine = now & (LOCK - 1) if now >= 0 else -1 - now
        if (mine ^ handle) & (meta[_STEP] - 1) == 0:
            raise BadHandle("handle %r is stale: its block was freed, or never handed out" % (handle,))
    raise BadHandle("handle %r is not of this pool" % (handle,))


def refuse_size(pool, size, align):
    if type(size) is not int or size < 1:
        raise BadArgument("size must be 1..%d bytes, got %r" % (pool.max_block_bytes, size))
    if type(align) is not int or align < 1 or align & (align - 1) or align > pool.max_align:
        raise BadArgument("align must be a power of two 1..%d, got %r" % (pool.max_align, align))
    _full(pool, "size is above the largest block of %d bytes" % pool.max_block_bytes, size)


def refuse_full(pool, meta, size, why):
    what = "no free block is large enough"
    if why == NO_ENTRY:
        what = "all max_regions %d are in use" % meta[_N]
    elif pool.name == "region" and size <= pool.free_bytes():
        what = "no gap is large enough, compact() joins them"
    _full(pool, what, size)


def refuse_short(pool, n, size, got):
    _full(pool, "room for %d of %d blocks of %d bytes" % (got, n, size), n * size)


def _full(pool, what, size):
    pinned = pool.stats()["locked_bytes"]
    raise PoolFull(what, size, pool.free_bytes(), pool.largest_free_bytes(), pinned=pinned, unit="bytes")


def refuse_many(n, handles):
    raise BadArgument(
        "n must be a whole number from 1 up, and as many handles a list or array('i'); got n %r and %s"
        % (n, type(handles).__name__)
    )


def refuse_owner(layer, batch):
    raise BadArgument("layer and batch must be 0..65535, got %r and %r" % (layer, batch))


def refuse_limit(limit_bytes):
    raise BadArgument("limit_bytes must be None or a whole number of bytes, got %r" % (limit_bytes,))


def refuse_holder(pool):
    most = pool.max_holders
    raise PoolFull("a region has at most %d holders" % most, most + 1, 0, unit="holders")


def stats(pool, meta):
    """As the pools' stats()."""
    shift = meta[_SHIFT]
    free, largest = meta[_FREE] << shift, pool.largest_free_bytes()
    return {
        "pool": pool.name,
        "total_bytes": pool.total_bytes,
        "used_bytes": pool.total_bytes - free,
        "largest_free_bytes": largest,
        "max_block_bytes": pool.max_block_bytes,
        "blocks": meta[_N],
        "used_blocks": meta[_USED],
        "alloc_count": meta[_ALLOCS],
        "free_count": meta[_FREES],
        "high_water_blocks": meta[_HIGH],
        "high_water_bytes": meta[_HIGH_UNITS] << shift,
        "locked_blocks": meta[_LOCKS],
        "locked_bytes": meta[_LOCKED] << shift,
        "lost_bytes": pool.lost_bytes,
        "internal_waste_bytes": meta[_WASTE],
        "fragmentation": 1 - largest / free if free else 0.0,
    }


def header(meta, word, node, i):
    """As RegionPool.header."""
    n, shift = meta[_N], meta[_SHIFT]
    return {
        "size_bytes": (node[n + i] << shift) - (node[_REST * n + i] & (1 << shift) - 1),
        "holders": node[_LINK * n + i] >> meta[_BITS],
        "locked": word[i] & LOCK != 0,
        "layer": node[_LAYER * n + i],
        "batch": node[_BATCH * n + i],
    }


def _words(meta, word):
    """Broken invariants of the words alone: each issues its own index under the pool's tag."""
    bad = 0
    tag = None
    for i in range(meta[_N]):
        handle = word[i] & (LOCK - 1) if word[i] >= 0 else -1 - word[i]
        mark = handle & (meta[_STEP] - 1) & ~meta[_MASK]
        if tag is None:
            tag = mark
        if handle & meta[_MASK] != i or mark != tag or handle > meta[_WRAP]:
            bad += 1
    return bad


def _counts(meta, used, used_units, waste, locks, locked):
    """Broken invariants of the counters, given what the blocks in use add up to."""
    bad = 0
    for which, value in (
        (_USED, used),
        (_FREE, meta[_UNITS] - used_units),
        (_WASTE, waste),
        (_LOCKS, locks),
        (_LOCKED, locked),
    ):
        bad += meta[which] != value
    bad += (meta[_ALLOCS] - meta[_FREES]) & 0x3FFFFFFF != used
    bad += not used <= meta[_HIGH] <= meta[_N]
    bad += not used_units <= meta[_HIGH_UNITS] <= meta[_UNITS]
    return bad


def check_buddy(meta, word, order, link):
    """As BuddyPool.check: blocks tile the roots, lists hold the free ones once, no two free buddies."""
    n = meta[_N]
    bad = _words(meta, word)
    listed = bytearray(n)
    for k in range(meta[_ORDER] + 1):
        before = -1
        i = meta[_HEADS + k]
        while i != -1:
            if not 0 <= i < n or listed[i] or word[i] >= 0 or order[i] != k + 1:
                bad += 1  # foreign, twice, in use, of another order
                break
            listed[i] = 1
            if before >= 0 and link[n + i] != before:
                bad += 1
            before = i
            i = link[i]
    at = used = used_units = waste = locks = locked = 0
    while at < n:
        k = (order[at] & 31) - 1 if word[at] >= 0 else order[at] - 1
        # A block is a multiple of its length from the start, and ends in its own root.
        if not 0 <= k <= meta[_ORDER] or at % (1 << k) or at + (1 << k) > n >> k << k:
            return bad + 1
        length = 1 << k
        for i in range(at + 1, at + length):
            if order[i] or word[i] >= 0 or listed[i]:
                bad += 1
        if word[at] < 0:
            if not listed[at]:
                bad += 1
            buddy = at ^ length
            if k < meta[_ORDER] and buddy < n and order[buddy] == k + 1 and word[buddy] < 0:
                bad += 1  # not merged
        else:
            used += 1
            used_units += length
            over = (length << meta[_SHIFT]) - link[at]
            waste += over
            if not 0 <= over < length << meta[_SHIFT]:
                bad += 1
            if word[at] & LOCK:
                locks += 1
                locked += length
        at += length
    return bad + _counts(meta, used, used_units, waste, locks, locked)


def check_region(meta, word, node):
    """As RegionPool.check: regions in order and apart, aligned, every entry in one of the two lists."""
    n, end, shift = meta[_N], meta[_MASK], meta[_SHIFT]
    bad = _words(meta, word)
    listed = bytearray(n)
    at = used = used_units = waste = locks = locked = 0
    i = meta[_HEAD]
    while i != end:
        if i >= n or listed[i] or word[i] < 0:
            return bad + 1  # foreign, twice, not in use
        listed[i] = 1
        start, length, rest = node[i], node[n + i], node[_REST * n + i]
        over = rest & (1 << shift) - 1
        if start < at or not length:
            bad += 1
        if (start + meta[_SKEW]) % (1 << (rest >> shift)):
            bad += 1  # not aligned
        if not node[_LINK * n + i] >> meta[_BITS]:
            bad += 1  # nobody holds it
        at = start + length
        used += 1
        used_units += length
        waste += over
        if word[i] & LOCK:
            locks += 1
            locked += length
        i = node[_LINK * n + i] & end
    if at > meta[_UNITS]:
        bad += 1
    i = meta[_SPARE]
    while i != end:
        if i >= n or listed[i] or word[i] >= 0:
            return bad + 1
        listed[i] = 1
        i = node[i]
    bad += sum(not x for x in listed)
    return bad + _counts(meta, used, used_units, waste, locks, locked)
