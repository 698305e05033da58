"""What the slab and region pool says when it refuses, a region's header and broken invariants.

Lent (mpy_kv/lend.py), for the texts take memory. Changes nothing; the arrays: see slab.py and
slab_region.py.
"""

from ..errors import BadArgument, BadHandle, Locked, PoolFull
from .slab import KINDS, NONE, PER, RECORD, RECORDS, SLAB, SPARE, UNFILLED
from .slab_region import ALLOWED, GUARANTEED, HELD, HOLDERS, NO_REGION, OWNER
from .units import LOCK, MASK, OWN, STEP, WRAP
from .units_audit import _words


def refuse_region(pool, region):
    doors, gate = pool._doors, pool._gate
    if type(region) is int and 0 <= region <= doors[WRAP] and region & doors[MASK] < len(gate):
        now = gate[region & doors[MASK]]
        mine = now if now >= 0 else -1 - now
        if (mine ^ region) & (doors[STEP] - 1) == 0:
            raise BadHandle("region %r is stale: it was closed, or never opened" % (region,))
    raise BadHandle("region %r is not of this pool" % (region,))


def refuse_open(pool, why, limit, guaranteed, owner):
    meta = pool._meta
    if why == "arguments":
        if type(owner) is not int or owner >> 16:
            raise BadArgument("owner must be 0..65535, got %r" % (owner,))
        raise BadArgument(
            "limit_slabs must be 1..%d and guaranteed_slabs 0..limit_slabs, got %r and %r"
            % (pool.n_slabs, limit, guaranteed)
        )
    if why == "regions":
        raise PoolFull("all max_regions %d are open" % len(pool._gate), 1, 0, unit="regions")
    raise PoolFull(
        "guaranteed_slabs %d: %d slabs are free, %d of them guaranteed to others"
        % (guaranteed, meta[SPARE], meta[UNFILLED]),
        guaranteed,
        meta[SPARE] - meta[UNFILLED],
        unit="slabs",
    )


def refuse_close(pool, region):
    raise Locked(
        "region %r has %d locked objects: unlock them before closing it"
        % (region, pool.region_header(region)["locked"])
    )


def header(pool, at):
    """As SlabRegionPool.region_header."""
    meta, table, slab, word = pool._meta, pool._table, pool._slab, pool._word
    objects = used = locked = 0
    for k in range(meta[KINDS] + 1):
        s = table[at + k]
        while s != NONE:
            live = [w for w in word[s * meta[PER] : (s + 1) * meta[PER]] if w >= 0]
            objects += len(live)
            used += len(live) * table[3 * (slab[6 * s + 2] & 31)]
            locked += len([w for w in live if w & LOCK])
            s = slab[6 * s]
    place = at + meta[KINDS]
    return {
        "size": table[place + HELD] * meta[SLAB],
        "used": used,
        "references": table[place + HOLDERS],
        "locked": locked,
        "objects": objects,
        "held_slabs": table[place + HELD],
        "limit_slabs": table[place + ALLOWED],
        "guaranteed_slabs": table[place + GUARANTEED],
        "owner": table[place + OWNER],
    }


def fragmentation(pool):
    meta, table = pool._meta, pool._table
    free = pool.n_slabs
    for at in range(meta[RECORDS], len(table), meta[RECORD]):
        free -= table[at + meta[KINDS] + HELD]
    return 1 - meta[SPARE] / free if free else 0.0


def check(pool):
    """Broken invariants of the regions: closed ones are empty and in one chain, open ones have a holder."""
    doors, gate, table = pool._doors, pool._gate, pool._table
    bad = _words(doors, gate)
    closed = bytearray(len(gate))
    k = doors[OWN]
    while k != NO_REGION:
        if k >= len(gate) or closed[k] or gate[k] >= 0:
            return bad + 1  # foreign, twice, open
        closed[k] = 1
        k = table[pool._place(k) + OWNER]
    for k in range(len(gate)):
        place = pool._place(k)
        if closed[k]:
            bad += any(table[place + i] for i in (HELD, GUARANTEED, ALLOWED, HOLDERS))
        else:
            bad += gate[k] < 0 or table[place + HOLDERS] < 1
    return bad
