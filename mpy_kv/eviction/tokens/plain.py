"""The kernels of token policies in plain integers: the definition that native ones must match bit for bit.

`plan`: see params.py. `at`: per ring slot 1 + position of its token; 0, or more than the length, means none.
`worth`: per ring slot an int 0..NOW, the least worthy token leaves, of equals the older; then, of masses, how
often all were halved, and the largest. All return 0.

Bounds: a weight is at most 2^15 and they sum to < 2^30 (MOST_VISIBLE); a sum of shares stays below 2^29, as
BITS is chosen by heads and rows; a mass below 2^29, as all are halved before the largest reaches 2^28; a
decayed one below 64/3 * 2^21.
"""

from ...transient import load_module

# Transient, not imported, so that they go with this module.
P = load_module("mpy_kv.kernels.params")
T = load_module("mpy_kv.eviction.tokens.params")
get32 = load_module("mpy_kv.kernels.plain").get32
distance_scale = load_module("mpy_kv.kernels.plain").distance_scale


def uses(buf, plan, tables, a):
    """Shares of the visible tokens in this head's attention, added up in plan[ACC ...]; with PEAK a 1 there
    for those of more than 8 / N.

    Between score() and weights() of slice 0; nothing at other slices. `tables` is kernels.tables.TABLES. A
    weight is 2^-(t / 256), t as in weights(), in units of 2^-15; a share its quotient by their sum, rounded
    down by the reciprocal's 15 bits, in units of 2^-BITS.
    """
    if a[P.SLICE]:
        return 0
    m, e, down = distance_scale(buf, a)
    found = []
    for i in range(a[P.N]):
        d = a[P.MAX] - get32(buf, a[P.SCORES] + 4 * i) >> down
        t = d * m >> e
        found.append(tables[t & 255] << 3 >> (t >> 8) if t < 4096 else 0)
    total = sum(found)
    n = a[P.N]
    if plan[T.PEAK]:
        for i in range(n):
            if found[i] * n > 8 * total:
                plan[T.ACC + i] = 1
        return 0
    up = 0
    while total >> up > 65535:
        up += 1
    inv = (1 << 30) // (total >> up)
    shift = min(30 + up - plan[T.BITS], 31)
    for i in range(n):
        plan[T.ACC + i] += found[i] * inv >> shift
    return 0


def survey(at, worth, plan, length):
    """Begin of a step: forget slots of tokens rolled back, clear plan[ACC ...], find LIVE, FREE, TOP, VICTIM.

    The newest RECENT positions and every slot's worth decide as `worth` in this module's docstring; where all
    tokens are that new, the oldest is the victim. LIVE 0: TOP and VICTIM are RING."""
    ring = plan[T.RING]
    for i in range(plan[T.SINKS] + ring):
        plan[T.ACC + i] = 0
    limit = length - plan[T.RECENT]
    live = 0
    free = top = victim = ring
    least = oldest = T.GONE
    for r in range(ring):
        if at[r] > length:
            at[r] = 0
        if at[r] == 0:
            free = min(free, r)
            continue
        live += 1
        top = r
        w = T.GONE if at[r] > limit else worth[r]
        if victim == ring or w < least or w == least and at[r] < oldest:
            least, oldest, victim = w, at[r], r
    plan[T.LIVE], plan[T.FREE], plan[T.TOP], plan[T.VICTIM] = live, free, top, victim
    return 0


def watch(plan, old, new, kind):
    """Commit: the worths `old` and the step's shares make the worths `new`.

    USED: NOW where the shares exceed THRESHOLD, else one less than before.
    MASS: shares added up; all are halved once, and what is added from then on, whenever one nears 2^28.
    DECAYED: 61/64 of before, and the shares' mean over rows."""
    ring, n, hole = plan[T.RING], plan[T.COUNT], plan[T.HOLE]
    acc = T.ACC + plan[T.SEEN]
    rows = plan[T.ROWS]
    halved = drop = 0
    if kind == T.MASS:
        halved = old[ring]
        while old[ring + 1] >> drop >= 1 << 28 or rows >> halved + drop > 64:
            drop += 1
        halved = min(halved + drop, 20)
    down = plan[T.DOWN] + halved - plan[T.UP]
    most = 0
    for i in range(n):
        r = i + (i >= hole)
        x = plan[acc + i]
        if kind == T.USED:
            w = T.NOW if x > plan[T.THRESHOLD] else max(old[r] - 1, 0)
        else:
            if kind == T.MASS:
                w = old[r] >> drop
            else:
                x //= rows
                w = old[r] - (3 * old[r] + 63 >> 6)
            w += x >> down if down >= 0 else x << -down
            most = max(most, w)
        new[r] = w
    if kind == T.MASS:
        new[ring], new[ring + 1] = halved, most
    return 0


def move(buf, to, at, n):
    """Copy n bytes of buf from `at` to `to`, two places apart."""
    buf[to : to + n] = buf[at : at + n]
    return 0
