"""What the slab pools say when they refuse, their counts and their broken invariants.

Transient (mpy_kv/transient.py), for the texts take memory. Changes nothing; the arrays: see slab.py.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, PoolFull
from .slab import NONE, REFUSED
from .units import LOCK
from .units_inspect import _words

# fields: units, slab_least, slab_pool, slab, class, record
_N = const(0)
_FREES = const(5)
_USED = const(6)
_HIGH = const(7)
_FREE = const(9)
_WASTE = const(10)
_LOCKS = const(11)
_LOCKED = const(12)
_UNITS = const(13)
_LEAST = const(8)
_PER = const(15)
_KINDS = const(16)
_STOCK = const(17)
_SPARE = const(18)
_UNFILLED = const(19)
_SLAB = const(20)
_RECORDS = const(21)
_RECORD = const(22)
_SLAB_PREVIOUS = const(1)
_SLAB_WHOSE = const(2)
_SLAB_USED = const(3)
_SLAB_FREED = const(4)
_SLAB_EVER = const(5)
_SLAB_WORDS = const(6)
_CLASS_OBJECTS = const(1)
_CLASS_WORDS = const(3)
_GUARANTEED = const(1)
_ALLOWED = const(2)
# end of fields


def refuse_room(pool, why, at, size, align, n):
    """take_object or room said `why` to the region at `at`."""
    meta, table = pool._meta, pool._table
    if why == REFUSED and align > pool.max_align:
        raise BadArgument("align must be a power of two 1..%d, got %r" % (pool.max_align, align))
    if why == REFUSED and size <= pool.max_block_bytes:
        raise BadArgument("no class holds %d bytes at align %d" % (size, align))
    place = at + meta[_KINDS] + 1
    if why == REFUSED:
        what = "size is above the largest class of %d bytes" % pool.max_block_bytes
    elif not meta[_SPARE]:
        what = "no slab is free"
    elif table[place] >= table[place + _ALLOWED]:
        what = "the region holds the %d slabs it may" % table[place + _ALLOWED]
    else:
        what = "%d free slabs are guaranteed to other regions" % meta[_UNFILLED]
    raise PoolFull(
        what, size * n, pool.free_bytes(), pool._largest_at(at), pinned=meta[_LOCKED], unit="bytes"
    )


def stats(pool):
    """As SlabPool.stats."""
    meta, table, slab = pool._meta, pool._table, pool._slab
    free = meta[_FREE]
    servable = meta[_SPARE] * meta[_SLAB]
    tails = 0
    for s in range(pool.n_slabs):
        if slab[_SLAB_WORDS * s + _SLAB_WHOSE] != NONE:
            c = slab[_SLAB_WORDS * s + _SLAB_WHOSE] & 31
            tails += meta[_SLAB] - table[_CLASS_WORDS * c] * table[_CLASS_WORDS * c + _CLASS_OBJECTS]
    return {
        "pool": pool.name,
        "total_bytes": pool.total_bytes,
        "used_bytes": pool.total_bytes - free,
        "largest_free_bytes": pool.largest_free_bytes(),
        "max_block_bytes": pool.max_block_bytes,
        "blocks": meta[_N],
        "used_blocks": meta[_USED],
        "alloc_count": (meta[_FREES] + meta[_USED]) & 0x3FFFFFFF,
        "free_count": meta[_FREES],
        "high_water_blocks": meta[_HIGH],
        "high_water_bytes": meta[_UNITS] - meta[_LEAST],
        "locked_blocks": meta[_LOCKS],
        "locked_bytes": meta[_LOCKED],
        "slabs": pool.n_slabs,
        "free_slabs": meta[_SPARE],
        "guaranteed_slabs": meta[_UNFILLED],
        "tail_bytes": tails,
        "internal_waste_bytes": meta[_WASTE],
        "fragmentation": pool._fragmentation(servable, free),
    }


def check(meta, word, lost, slab, table):
    """As SlabPool.check: every slab in one list, every object of it free or in use, quotas kept."""
    kinds, per, n_slabs = meta[_KINDS], meta[_PER], len(slab) // _SLAB_WORDS
    bad = _words(meta, word)
    where = [0] * n_slabs  # 1 + list that a slab was found in
    s = meta[_STOCK]
    spare = 0
    while s != NONE:
        if s >= n_slabs or where[s] or slab[_SLAB_WORDS * s + _SLAB_WHOSE] != NONE:
            return bad + 1  # foreign, twice, not free
        f = _SLAB_WORDS * s
        bad += list(slab[f + _SLAB_PREVIOUS : f + _SLAB_WORDS]) != [NONE, NONE, 0, NONE, 0]
        where[s] = NONE + 1
        spare += 1
        s = slab[_SLAB_WORDS * s]
    bad += spare != meta[_SPARE]
    used = free = waste = locks = locked = unfilled = 0
    for at in range(meta[_RECORDS], len(table), meta[_RECORD]):
        held = 0
        for k in range(kinds + 1):
            s, before = table[at + k], NONE
            while s != NONE:
                if s >= n_slabs or where[s]:
                    return bad + 1
                f = _SLAB_WORDS * s
                c = slab[f + _SLAB_WHOSE] & 31
                full = c < kinds and slab[f + _SLAB_USED] == table[_CLASS_WORDS * c + _CLASS_OBJECTS]
                mine = meta[_RECORDS] + (slab[f + _SLAB_WHOSE] >> 5) * meta[_RECORD] == at
                if slab[f + _SLAB_PREVIOUS] != before or not mine or k != (kinds if full else c):
                    return bad + 1  # badly linked, in a list of another kind
                where[s] = 1 + at + k
                held += 1
                before, s = s, slab[_SLAB_WORDS * s]
        place = at + kinds + 1
        bad += held != table[place] or not 0 <= table[place + _GUARANTEED] <= table[place + _ALLOWED]
        bad += held > table[place + _ALLOWED]
        unfilled += max(0, table[place + _GUARANTEED] - held)
    bad += unfilled != meta[_UNFILLED] or unfilled > spare
    free = spare * meta[_SLAB]
    for s in range(n_slabs):
        if not where[s]:
            bad += 1  # in no list
            continue
        mine = range(s * per, (s + 1) * per)
        if where[s] == NONE + 1:
            bad += sum(word[i] >= 0 for i in mine)
            continue
        f = _SLAB_WORDS * s
        c = slab[f + _SLAB_WHOSE] & 31
        size, most = table[_CLASS_WORDS * c], table[_CLASS_WORDS * c + _CLASS_OBJECTS]
        listed = bytearray(per)
        k = slab[f + _SLAB_FREED]
        while k != NONE:
            if k >= slab[f + _SLAB_EVER] or listed[k] or word[s * per + k] >= 0:
                return bad + 1  # never given out, twice, in use
            listed[k] = 1
            k = lost[s * per + k]
        live = 0
        for k in range(per):
            w = word[s * per + k]
            if (w < 0) != (k >= slab[f + _SLAB_EVER] or listed[k]):
                bad += 1  # neither free nor in use
            if w >= 0:
                live += 1
                over = lost[s * per + k] & 0x1FFFFFF
                waste += over
                bad += over >= size
                if w & LOCK:
                    locks += 1
                    locked += size
        bad += live != slab[f + _SLAB_USED] or not live or slab[f + _SLAB_EVER] > most
        used += live
        free += (most - live) * size
    for which, value in ((_USED, used), (_FREE, free), (_WASTE, waste), (_LOCKS, locks), (_LOCKED, locked)):
        bad += meta[which] != value
    bad += not used <= meta[_HIGH] <= meta[_N]
    bad += not 0 <= meta[_LEAST] <= free
    return bad
