"""What the slab and region pool says when it refuses, a region's header and broken invariants.

Transient (mpy_kv/transient.py), for the texts take memory. Changes nothing; the arrays: see slab.py and
slab_region.py.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, BadHandle, Locked, PoolFull
from .slab import NONE
from .slab_region import NO_REGION
from .units import LOCK
from .units_inspect import _words

# fields: units, slab_pool, slab, class, record, doors
_MASK = const(1)
_STEP = const(2)
_WRAP = const(3)
_PER = const(15)
_KINDS = const(16)
_SPARE = const(18)
_UNFILLED = const(19)
_SLAB = const(20)
_RECORDS = const(21)
_RECORD = const(22)
_SLAB_WHOSE = const(2)
_SLAB_WORDS = const(6)
_CLASS_WORDS = const(3)
_HELD = const(0)
_GUARANTEED = const(1)
_ALLOWED = const(2)
_HOLDERS = const(4)
_OWNER = const(5)
_CLOSED = const(15)
# end of fields


def refuse_region(pool, region):
    doors, gate = pool._doors, pool._gate
    if type(region) is int and 0 <= region <= doors[_WRAP] and region & doors[_MASK] < len(gate):
        now = gate[region & doors[_MASK]]
        mine = now if now >= 0 else -1 - now
        if (mine ^ region) & (doors[_STEP] - 1) == 0:
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
        % (guaranteed, meta[_SPARE], meta[_UNFILLED]),
        guaranteed,
        meta[_SPARE] - meta[_UNFILLED],
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
    for k in range(meta[_KINDS] + 1):
        s = table[at + k]
        while s != NONE:
            live = [w for w in word[s * meta[_PER] : (s + 1) * meta[_PER]] if w >= 0]
            objects += len(live)
            c = slab[_SLAB_WORDS * s + _SLAB_WHOSE] & 31
            used += len(live) * table[_CLASS_WORDS * c]
            locked += len([w for w in live if w & LOCK])
            s = slab[_SLAB_WORDS * s]
    place = at + meta[_KINDS] + 1
    return {
        "size": table[place + _HELD] * meta[_SLAB],
        "used": used,
        "references": table[place + _HOLDERS],
        "locked": locked,
        "objects": objects,
        "held_slabs": table[place + _HELD],
        "limit_slabs": table[place + _ALLOWED],
        "guaranteed_slabs": table[place + _GUARANTEED],
        "owner": table[place + _OWNER],
    }


def fragmentation(pool):
    meta, table = pool._meta, pool._table
    free = pool.n_slabs
    for at in range(meta[_RECORDS], len(table), meta[_RECORD]):
        place = at + meta[_KINDS] + 1
        free -= table[place + _HELD]
    return 1 - meta[_SPARE] / free if free else 0.0


def check(pool):
    """Broken invariants of the regions: closed ones are empty and in one chain, open ones have a holder."""
    doors, gate, table = pool._doors, pool._gate, pool._table
    bad = _words(doors, gate)
    closed = bytearray(len(gate))
    k = doors[_CLOSED]
    while k != NO_REGION:
        if k >= len(gate) or closed[k] or gate[k] >= 0:
            return bad + 1  # foreign, twice, open
        closed[k] = 1
        k = table[pool._place(k) + _OWNER]
    for k in range(len(gate)):
        place = pool._place(k)
        if closed[k]:
            bad += any(table[place + i] for i in (_HELD, _GUARANTEED, _ALLOWED, _HOLDERS))
        else:
            bad += gate[k] < 0 or table[place + _HOLDERS] < 1
    return bad
