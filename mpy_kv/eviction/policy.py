"""What all eviction policies share.

A policy orders entries 0..n-1 of somebody's table: it holds those inserted and not evicted or removed since,
and says which goes next. Every method but stats and check is O(1), unless a class says otherwise, and
allocates nothing.

    insert(i, key)  i is held from now on; key: what it holds, an int from 0 on, for policies that remember
                    what was evicted (s3fifo); may be left away
    touch(i)        i was used
    evict()         forgets the victim and returns it; -1 when nothing may go
    remove(i)       forgets i, for other reasons
    protect(i)      i is no victim until unprotect(i); may be touched meanwhile, not removed; both idempotent

All but evict return 0, or -1 for what has no meaning (i is no entry, or not held; for insert: held already;
for remove: protected): then nothing has changed. Something else than an int is a TypeError, likewise.

lru, lfu, hybrid: to be protected is to be in use. Such an entry stands in no order, so that evict never has
to pass it, and comes back as the one used last. fifo, sieve, s3fifo: use does not move an entry, so a
protected one keeps its place, and evict passes it, a step each.

Recency is the place in a list, never a time. The transitions are module-level functions of ints and arrays,
which the host compiles as they are. A device's arrays of indexes have 16 bits, so with its anchors a policy
has at most 65,536 of them there.

`meta` is that of the tables policy, lfu, hybrid, sieve and s3fifo: python tools/fields.py --list.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from .. import port
from ..errors import BadArgument
from ..port import ints
from ..transient import load_module

# fields: policy
_OWN = const(5)
# end of fields

MAX_ENTRIES = 1 << 24
_TOUCHES = "touch_lru", "touch_lfu"


def fast(name, plain):
    """The viper twin of that name where there is native code, else `plain`, the transition itself."""
    if not port.EMITTER:
        return plain
    path = __file__[: __file__.rfind("/") + 1] + "viper.py"
    return port.load_native(path, "mpy_kv.eviction", [other for other in _TOUCHES if other != name])[name]


def number(name, value, least, most):
    """`value`, if it is an int from `least` to `most`; else BadArgument."""
    if type(value) is not int or not least <= value <= most:
        raise BadArgument("%s must be %d..%d, got %r" % (name, least, most, value))
    return value


class Policy:
    """Base: sizes, counts, audits.

    places: indexes there are, anchors of lists behind the n entries; own: first values of meta from OWN on;
    beside: indexes of another array that are to fit too.
    An index that is in no list is its own neighbour, and so is the anchor of an empty list.
    """

    name = ""

    def __init__(self, n, places, own=(), beside=0):
        most = max(places, beside)
        if port.MICROPYTHON and most > 65536:
            raise BadArgument("entries and anchors must be at most 65536, got %d" % most)
        self.n = n
        self._kind = "H" if most <= 65536 else "i"
        self._meta = ints((0,) * _OWN + own)
        self._nxt = self.indexes(range(places))
        self._prv = self.indexes(range(places))

    def indexes(self, first, zeros=0):
        """An array of indexes, see mpy_kv.port.ints."""
        return ints(first, zeros, self._kind)

    def index_bytes(self):
        """Bytes that an index takes on a device."""
        return 2 if self._kind == "H" else 4

    def stats(self):
        """{"policy", "entries", "held", "protected", "inserted", "evicted", "removed"}; a new dict, O(1)."""
        return load_module("mpy_kv.eviction.inspect").stats(self)

    def check(self):
        """Number of broken invariants (0 = sound). O(n), allocates."""
        return load_module("mpy_kv.eviction.inspect").check(self)
