"""What the slab pools say when they refuse, their counts and their broken invariants.

Lent (mpy_kv/lend.py), for the texts take memory. Changes nothing; the arrays: see slab.py.
"""

from ..errors import BadArgument, PoolFull
from .slab import KINDS, LEAST, NONE, PER, RECORD, RECORDS, REFUSED, SLAB, SPARE, STOCK, UNFILLED
from .units import FREE, FREES, HIGH, LOCK, LOCKED, LOCKS, N, UNITS, USED, WASTE
from .units_audit import _words


def refuse_room(pool, why, at, size, align, n):
    """take_object or room said `why` to the region at `at`."""
    meta, table = pool._meta, pool._table
    if why == REFUSED and align > pool.max_align:
        raise BadArgument("align must be a power of two 1..%d, got %r" % (pool.max_align, align))
    if why == REFUSED and size <= pool.max_block_bytes:
        raise BadArgument("no class holds %d bytes at align %d" % (size, align))
    place = at + meta[KINDS] + 1
    if why == REFUSED:
        what = "size is above the largest class of %d bytes" % pool.max_block_bytes
    elif not meta[SPARE]:
        what = "no slab is free"
    elif table[place] >= table[place + 2]:
        what = "the region holds the %d slabs it may" % table[place + 2]
    else:
        what = "%d free slabs are guaranteed to other regions" % meta[UNFILLED]
    raise PoolFull(
        what, size * n, pool.free_bytes(), pool._largest_at(at), pinned=meta[LOCKED], unit="bytes"
    )


def stats(pool):
    """As SlabPool.stats."""
    meta, table, slab = pool._meta, pool._table, pool._slab
    free = meta[FREE]
    servable = meta[SPARE] * meta[SLAB]
    tails = 0
    for s in range(pool.n_slabs):
        if slab[6 * s + 2] != NONE:
            c = slab[6 * s + 2] & 31
            tails += meta[SLAB] - table[3 * c] * table[3 * c + 1]
    return {
        "pool": pool.name,
        "total_bytes": pool.total_bytes,
        "used_bytes": pool.total_bytes - free,
        "largest_free_bytes": pool.largest_free_bytes(),
        "max_block_bytes": pool.max_block_bytes,
        "blocks": meta[N],
        "used_blocks": meta[USED],
        "alloc_count": (meta[FREES] + meta[USED]) & 0x3FFFFFFF,
        "free_count": meta[FREES],
        "high_water_blocks": meta[HIGH],
        "high_water_bytes": meta[UNITS] - meta[LEAST],
        "locked_blocks": meta[LOCKS],
        "locked_bytes": meta[LOCKED],
        "slabs": pool.n_slabs,
        "free_slabs": meta[SPARE],
        "guaranteed_slabs": meta[UNFILLED],
        "tail_bytes": tails,
        "internal_waste_bytes": meta[WASTE],
        "fragmentation": pool._fragmentation(servable, free),
    }


def check(meta, word, lost, slab, table):
    """As SlabPool.check: every slab in one list, every object of it free or in use, quotas kept."""
    kinds, per, n_slabs = meta[KINDS], meta[PER], len(slab) // 6
    bad = _words(meta, word)
    where = [0] * n_slabs  # 1 + list that a slab was found in
    s = meta[STOCK]
    spare = 0
    while s != NONE:
        if s >= n_slabs or where[s] or slab[6 * s + 2] != NONE:
            return bad + 1  # foreign, twice, not free
        bad += list(slab[6 * s + 1 : 6 * s + 6]) != [NONE, NONE, 0, NONE, 0]
        where[s] = NONE + 1
        spare += 1
        s = slab[6 * s]
    bad += spare != meta[SPARE]
    used = free = waste = locks = locked = unfilled = 0
    for at in range(meta[RECORDS], len(table), meta[RECORD]):
        held = 0
        for k in range(kinds + 1):
            s, before = table[at + k], NONE
            while s != NONE:
                if s >= n_slabs or where[s]:
                    return bad + 1
                c = slab[6 * s + 2] & 31
                full = c < kinds and slab[6 * s + 3] == table[3 * c + 1]
                mine = meta[RECORDS] + (slab[6 * s + 2] >> 5) * meta[RECORD] == at
                if slab[6 * s + 1] != before or not mine or k != (kinds if full else c):
                    return bad + 1  # badly linked, in a list of another kind
                where[s] = 1 + at + k
                held += 1
                before, s = s, slab[6 * s]
        place = at + kinds + 1
        bad += held != table[place] or not 0 <= table[place + 1] <= table[place + 2]
        bad += held > table[place + 2]
        unfilled += max(0, table[place + 1] - held)
    bad += unfilled != meta[UNFILLED] or unfilled > spare
    free = spare * meta[SLAB]
    for s in range(n_slabs):
        if not where[s]:
            bad += 1  # in no list
            continue
        mine = range(s * per, (s + 1) * per)
        if where[s] == NONE + 1:
            bad += sum(word[i] >= 0 for i in mine)
            continue
        f = 6 * s
        c = slab[f + 2] & 31
        size, most = table[3 * c], table[3 * c + 1]
        listed = bytearray(per)
        k = slab[f + 4]
        while k != NONE:
            if k >= slab[f + 5] or listed[k] or word[s * per + k] >= 0:
                return bad + 1  # never given out, twice, in use
            listed[k] = 1
            k = lost[s * per + k]
        live = 0
        for k in range(per):
            w = word[s * per + k]
            if (w < 0) != (k >= slab[f + 5] or listed[k]):
                bad += 1  # neither free nor in use
            if w >= 0:
                live += 1
                over = lost[s * per + k] & 0x1FFFFFF
                waste += over
                bad += over >= size
                if w & LOCK:
                    locks += 1
                    locked += size
        bad += live != slab[f + 3] or not live or slab[f + 5] > most
        used += live
        free += (most - live) * size
    for which, value in ((USED, used), (FREE, free), (WASTE, waste), (LOCKS, locks), (LOCKED, locked)):
        bad += meta[which] != value
    bad += not used <= meta[HIGH] <= meta[N]
    bad += not 0 <= meta[LEAST] <= free
    return bad
