"""What the buddy and the region pool share: handles, locks, owners, many at once.

Both hand out whole units and keep their state in arrays made at construction. `meta` holds the counters, in
one array so that a transition touches no object; its first entries are those of the table `units` (python
tools/fields.py --list), what is a pool's own follows. Counts wrap at 2^30, the last small int of a 32-bit
board.

A handle is generation | 3-bit tag | index, from the high bits down, below 2^29. The index is that of a
block's entry in `word`, which says all there is to say about a handle:
    word[i] == handle             in use
    word[i] == handle | LOCK      in use and locked
    word[i] == -1 - next_handle   not in use; next_handle is what it will be issued under
so a handle that is stale, of another pool or made up differs from its word. A block takes its next
generation when it is freed; generations wrap after 2^16, or as many as the handle has bits for.

The native functions are transitions: small ints and arrays only, a small int back, negative for a refusal.
The methods are bytecode, with frames below the 12 words from which on MicroPython allocates them. What is
rare (refusals, counts, checks) is in transient modules, see mpy_kv/transient.py.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..port import ints
from ..transient import load_module
from .fixed import next_tag

# fields: units
_N = const(0)
_MASK = const(1)
_STEP = const(2)
_WRAP = const(3)
_FREE = const(9)
_SHIFT = const(14)
# end of fields

LOCK = 0x20000000
_MANY = (list, array)  # made once: a tuple allocates
FULL, BAD, MOVES, NO_ENTRY = -1, -2, -3, -4


@micropython.native
def find(meta, word, handle):
    """Index of a handle in use, locked or not, or BAD."""
    i = handle & meta[_MASK]
    if i >= meta[_N] or handle > meta[_WRAP]:
        return -2
    if word[i] == handle or word[i] == handle | 0x20000000:
        return i
    return -2


@micropython.native
def first_bad(meta, word, handles, n):
    """Index in `handles` of the first of `n` that cannot be freed along with those before it, or n.

    Changes nothing: a handle seen is marked as if locked, so that it does not pass twice, and unmarked.
    """
    k = 0
    while k < n:
        handle = handles[k]
        i = handle & meta[_MASK]
        if i >= meta[_N] or handle > meta[_WRAP] or word[i] != handle:
            break
        word[i] = handle | 0x20000000
        k += 1
    j = k
    while j > 0:
        j -= 1
        word[handles[j] & meta[_MASK]] = handles[j]
    return k


def words(n, spare, places, tag):
    """(meta, word) of `n` blocks, `places` entries of meta; `spare` indexes are never a block's."""
    if tag is None:
        tag = next_tag()
    bits = 1
    while 1 << bits < n + spare:
        bits += 1
    meta = ints((), places)
    meta[_N] = n
    meta[_MASK] = (1 << bits) - 1
    meta[_STEP] = 1 << bits + 3
    meta[_WRAP] = (1 << bits + 3 + min(16, 26 - bits)) - 1
    first = -1 - (tag << bits)
    return meta, ints(range(first, first - n, -1))


def _takes(out, n):
    """Whether any handle, or -1, can be written to out[n - 1] and read back."""
    try:
        return _keeps(out, n - 1)
    except Exception:  # whatever anything else than a list or an array raises
        return False


def _keeps(out, i):
    was = out[i]
    out[i] = LOCK - 1
    now = out[i]
    out[i] = was
    out[i] = -1
    out[i] = was
    return type(now) is int and now == LOCK - 1


class UnitPool:
    """Base of both; `name` is the pool's in stats(), `_word` and `_meta` are as above.

    A pool brings alloc, free, grow, lock, unlock, offset, size, owner, set_owner, and
    _room(n, size, align) -> how many of `n` such blocks it could hand out now; _largest() -> units.
    """

    name = ""
    max_align = 4
    _meta = _word = []

    def alloc(self, size, align=4):
        raise NotImplementedError

    def free(self, handle):
        raise NotImplementedError

    def _room(self, n, size, align):
        raise NotImplementedError

    def _largest(self):
        raise NotImplementedError

    def _index(self, handle):
        i = -2
        if type(handle) is int:
            i = find(self._meta, self._word, handle)
        if i < 0:
            self._refuse(handle)
        return i

    def _refuse(self, handle):
        load_module("mpy_kv.pools.units_inspect").refuse_handle(self._meta, self._word, handle)

    def _refuse_size(self, size, align):
        load_module("mpy_kv.pools.units_inspect").refuse_size(self, size, align)

    def _refuse_full(self, size, why=FULL):
        load_module("mpy_kv.pools.units_inspect").refuse_full(self, self._meta, size, why)

    def _refuse_short(self, n, size, got):
        load_module("mpy_kv.pools.units_inspect").refuse_short(self, n, size, got)

    def _refuse_many(self, n, handles):
        load_module("mpy_kv.pools.units_inspect").refuse_many(n, handles)

    def _check_align(self, align):
        if type(align) is not int or not 1 <= align <= self.max_align or align & (align - 1):
            self._refuse_size(1, align)

    def _check_owner(self, layer, batch):
        if type(layer) is not int or layer >> 16 or type(batch) is not int or batch >> 16:
            load_module("mpy_kv.pools.units_inspect").refuse_owner(layer, batch)

    def alloc_many(self, n, size, out, align=4):
        """`n` blocks, all or none: handles into out[0:n], a list or array('i'). BadArgument, PoolFull.

        Cut short by an exception from outside, out[0:n] holds the handles made so far and -1 behind them.
        """
        if type(n) is not int or n < 1 or not _takes(out, n):
            self._refuse_many(n, out)
        i = self._room(n, size, align)
        if i < n:
            self._refuse_short(n, size, i)
        i = n
        while i:
            i -= 1
            out[i] = -1
        while i < n:
            out[i] = self.alloc(size, align)
            i += 1

    def free_many(self, handles, n):
        """Free handles[0:n], all or none; refused as by free, and a handle that is there twice."""
        if type(n) is not int or not isinstance(handles, _MANY) or not 1 <= n <= len(handles):
            self._refuse_many(n, handles)
        i = 0
        while i < n and type(handles[i]) is int:
            i += 1
        i = first_bad(self._meta, self._word, handles, i)
        if i < n:
            self._refuse(handles[i])
        i = 0
        while i < n:
            self.free(handles[i])
            i += 1

    def is_locked(self, handle):
        return self._word[self._index(handle)] & LOCK != 0

    def free_bytes(self):
        return self._meta[_FREE] << self._meta[_SHIFT]

    def largest_free_bytes(self):
        """The most that one request can get now, asked with the least alignment."""
        return self._largest() << self._meta[_SHIFT]

    def stats(self):
        """Sizes in bytes, counts in blocks; a new dict (allocates)."""
        return load_module("mpy_kv.pools.units_inspect").stats(self, self._meta)
