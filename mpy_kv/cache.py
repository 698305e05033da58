"""KVCache: keys and values of one sequence, in place, in one buffer.

Memory: everything that grows with the model or the window lies in one bytearray, the caller's or one
allocated here at construction. After the first token append, prefill, attend, commit and rollback
allocate nothing (prove it with micropython.mem_total) where two things hold. The kernels are native: the
plain ones allocate. And each argument of a layer is one of the last two arrays passed there: any other is
checked anew, which makes some hundred bytes of garbage a call. Views are compared by address in a prefill:
that allocates on boards whose RAM lies above 2^30. Under CPython numpy's arrays are checked at each call, as
their type can be changed in place, and compared by address too. Nobody may resize or move the buffer.
Cost: append O(width), attend O(visible tokens), commit O(layers), rollback O(1); none depends on how
many tokens have passed.
Ownership: k and v of a prefill are read until attend or commit, all other arguments are read or written
within the call. The last two arrays of each argument and layer stay referenced, so as to know them again.
Not for use from interrupts or two threads.
The steps are sequence.py's, what is computed is attention.py's. Here is where tokens lie: sinks first, then
in a ring of window + 1 slots. The spare slot takes the uncommitted token.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from . import cpython as micropython
    from .cpython import const

from .sequence import Sequence
from .transient import load_module

# fields: turn, attend, run, encode
_N = const(0)
_RUNS = const(1)
_ROW = const(2)
_RUN = const(45)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
# end of fields


class Ring:
    """A placement: where the tokens of a sequence lie, the same in every layer, and which are visible.

    Sinks first, then token p in slot (p - sinks) % ring_slots. es: the parameters `e` of each element type.
    floor: first position behind the sinks that is visible; beyond the length none is. Sealed, budget and
    paged have placements of their own, with the same methods. A class without properties, so that an
    attribute is stored at once.
    """

    def __init__(self, geometry, es):
        self.geometry = geometry
        self.floor = 0
        self.es = es

    def low(self, length):
        """First position behind the sinks that is visible when `length` tokens are there."""
        g = self.geometry
        low = length - g.window
        if self.floor > low:
            low = self.floor
        if g.sinks > low:
            low = g.sinks
        return low

    def lost(self, high):
        """First position whose slot is its own still, once those below `high` are written."""
        return high - self.geometry.ring_slots

    @micropython.native
    def aim(self, p, at):
        """Have encode() read row `at` and write to the slot of position p."""
        g = self.geometry
        sinks = g.sinks
        if p >= sinks:
            p = sinks + (p - sinks) % g.ring_slots
        for e in self.es:
            e[_E_SLOT] = p
            e[_E_AT] = at * e[_E_COUNT]

    @micropython.native
    def look(self, p, a, without=0):
        """Write the runs of slots that the token at position p sees, oldest first, itself last; of the ring
        `without` so many of the oldest."""
        g = self.geometry
        sinks = g.sinks
        row = a[_ROW]
        low = self.low(p + 1) + without
        total = 0
        slot = 0
        n = sinks if p >= sinks else p + 1
        rest = p + 1 - low
        by_sinks = 1
        j = _RUN
        while True:
            if n:
                a[j] = slot * row
                a[j + _RUN_SCALES] = slot * 2
                a[j + _RUN_COUNT] = n
                a[j + _RUN_SINKS] = by_sinks
                j += _RUN_WORDS
                total += n
            if rest <= 0:
                break
            slot = sinks
            n = rest
            if by_sinks:
                by_sinks = 0
                at = (low - sinks) % g.ring_slots
                slot += at
                if n > g.ring_slots - at:
                    n = g.ring_slots - at
            rest -= n
        a[_N] = total
        a[_RUNS] = (j - _RUN) >> 2


class KVCache(Sequence):
    """`geometry`: shape; `buffer`: bytearray of at least geometry.bytes() to use (default: own).

    kv_shift None: k, v, q, out are array('f'). Else int16 arrays, value = int16 * 2^-shift: one
    number, or per layer a number or (k_shift, v_shift). q_shift defaults to k's, out_shift to v's.
    kernels: a set from mpy_kv.kernels (default: the fastest that passes the self-check).
    """

    # The hot ones named here too: what only the base class has is looked up twice, 500 instructions a call.
    append = Sequence.append
    prefill = Sequence.prefill
    attend = Sequence.attend
    commit = Sequence.commit
    abort = Sequence.abort
    rollback = Sequence.rollback
    _begin = Sequence._begin
    _drop = Sequence._drop

    def __init__(self, geometry, buffer=None, kv_shift=None, q_shift=None, out_shift=None, kernels=None):
        self.pool, one = load_module("mpy_kv.setup").parts(
            geometry, buffer, kv_shift, q_shift, out_shift, kernels
        )
        Sequence.__init__(self, geometry, [one] * geometry.layers, Ring(geometry, [one.e]))

    def seek(self, position):
        """Drop the window, keep the sinks, go on at `position` (>= length). For tests and context jumps. Cut
        short by an exception it may have dropped the window already: seek again."""
        load_module("mpy_kv.inspect").seek(self, position, self._turn)

    def place(self, layer, which, position):
        """Where in `buffer` a token's vector lies, which: "k" or "v": offsets of head 0's codes and of group
        0's scale, the others head_stride (of V: v_head_stride, of sparse values v_group_stride from group to
        group) and scale_stride further on. For tests and benches."""
        load_module("mpy_kv.inspect").check_place(self, layer, which, position)
        one = self.attention[layer]
        return one.geometry.place(one.codes[layer], which, position)
