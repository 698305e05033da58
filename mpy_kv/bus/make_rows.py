"""What Rows is made of and what it refuses. Transient (mpy_kv/transient.py)."""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from array import array

from ..errors import BadArgument
from ..geometry import whole
from ..snapshot.planes import planes as each_group
from .kernels import place
from .make_queue import address, writable  # noqa: F401

# fields: planes, dma
_ALL_LAYERS = const(0)
_ALL_SINKS = const(1)
_RING = const(2)
_TOKENS = const(3)
_AT_SLOT = const(6)
_GROUPS = const(9)
_ROOM = const(0)
# end of fields


def plan(queue, cache, at, to, tokens, back):
    """The plan of all layers, and the bytes of a record."""
    g = cache.geometry
    if g.block_tokens is not None or g.sealed or not hasattr(cache, "attention"):
        raise BadArgument("rows are those of a ring or a cache with a slot for each token")
    slots = g.slots
    if tokens is not None:
        slots = whole("tokens", tokens, 1, slots)
    groups, starts, length, runs = [], [], 0, 0
    for layer in range(g.layers):
        starts.append(len(groups))
        attention = cache.attention[layer]
        base = attention.codes[layer]
        of_layer = 0
        for first, size, planes, gap in each_group(attention.geometry):
            lies = (base + first, gap)
            other = lies if tokens is None else (length, slots * size + 3 & -4)
            length += planes * (slots * size + 3 & -4)
            one, two = (other, lies) if back else (lies, other)
            groups += [one[0], two[0], size, planes, one[1], two[1]]
            of_layer += planes
        runs = max(runs, 2 * of_layer)
    starts.append(len(groups))
    if runs > queue.words[_ROOM]:
        raise BadArgument("a queue of %d descriptors: %d needed" % (queue.words[_ROOM], runs))
    begin = _GROUPS + len(starts)
    fixed = [g.layers, g.sinks, g.slots - g.sinks, slots, int(tokens is not None), int(back), 0, 0, 0]
    found = array("I", fixed + [begin + start for start in starts] + groups)
    other = length if tokens is not None else len(cache.buffer)
    for place_at, size, writes in ((at, len(cache.buffer), back), (to, other, not back)):
        _stand(queue, found, place_at, size, writes)
    return found, length


def _stand(queue, plan, at, size, writes):
    """Have a side of the plan, which takes so many bytes, begin at an address."""
    end = 0
    for region in queue.regions:
        begin = end
        end += len(region)
        if begin <= whole("address", at, 0, 1 << 30) < end:
            if at + size > end:
                break
            if writes and not writable(region):
                raise BadArgument("the region at %d may only be read" % begin)
            place(queue.words, plan, at, writes)
            return
    raise BadArgument("%d bytes at %r must lie in one region of the queue" % (size, at))


def move(rows, to, slot):
    if rows.tokens is None:
        raise BadArgument("there is no record to move")
    whole("slot", slot, 0, rows.tokens)
    _stand(rows.queue, rows.plan, to, rows.bytes, not rows.back)
    rows.plan[_AT_SLOT] = slot


def refuse(rows, layer, first, n):
    plan = rows.plan
    raise BadArgument(
        "layer %r, %r tokens from position %r on, to slot %d: of %d layers of %d slots, a record of %d"
        % (layer, n, first, plan[_AT_SLOT], plan[_ALL_LAYERS], plan[_ALL_SINKS] + plan[_RING], plan[_TOKENS])
    )
