"""BudgetCache: keys and values of one sequence that keeps a budget of tokens, the less worthy leaving first.

What stays is decided by the attention that the tokens get (mpy_kv/eviction/tokens names the policies), once
for all layers. An evicted token is gone exactly: attention is that over the kept ones alone. Keys stay
rotated at their own positions. Memory, cost and ownership are those of KVCache (cache.py), and 18 bytes more
a slot in small arrays; attend also adds up shares, commit looks at each slot once, and so does the first
append of a step. compress() and the reading methods allocate; all else does not.

The ring of KVCache is a table here: `at` holds per slot 1 + the position of its token. Tokens lie close, in
any order, at most one slot among them empty. A step's token goes to a free slot, and where there is only
one, the victim is hidden at the step's begin and leaves when it is committed: its slot is the next free one.
So an abort loses nothing. A token evicted stays gone after a rollback; slots of tokens rolled back are free.
A step that is attended more than once counts more than once.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..sequence import Sequence
from ..transient import load_module
from .table import Table

# fields: turn, plan, kind
_HIGH = const(2)
_STEP = const(3)
_RING = const(0)
_KIND = const(3)
_PEAK = const(4)
_BITS = const(5)
_FRESH = const(6)
_ALL_HEADS = const(7)
_FIRST = const(9)
_HOLE = const(10)
_ROWS = const(11)
_SEEN = const(12)
_COUNT = const(13)
_THRESHOLD = const(14)
_UP = const(15)
_SINCE = const(16)
_BANK = const(17)
_NEXT_BANK = const(18)
_EVICTED = const(19)
_NEXT_EVICTED = const(20)
_LIVE = const(21)
_FREE = const(22)
_TOP = const(23)
_VICTIM = const(24)
_MOVING = const(25)
_SHRINKING = const(26)
_ROW_BITS = const(27)
_BLIND = const(3)
# end of fields

_END = const(1 << 29)  # of positions


class BudgetCache(Sequence):
    """`geometry`: shape; its window is the budget: tokens visible at once, the current one included, sinks on
    top. `policy`: one of mpy_kv.eviction.tokens.POLICIES; recent: newest tokens that never leave (default:
    the policy's own, half the budget or 1). The other arguments are those of KVCache.

    Any element type but int4, of whose blocks no single token can leave: BadArgument. A prefill of more than
    one token needs free places for all (CacheFull); what it attends to counts once, at its commit: masses by
    the sum over its tokens, a use by their mean, and each of its tokens as used.
    """

    append = Sequence.append
    attend = Sequence.attend
    _drop = Sequence._drop

    def __init__(
        self,
        geometry,
        buffer=None,
        kv_shift=None,
        q_shift=None,
        out_shift=None,
        kernels=None,
        policy="window-lru",
        recent=None,
    ):
        make = load_module("mpy_kv.token_eviction.setup")
        kind, peak, recent = make.check(geometry, policy, recent)
        self.pool, one = load_module("mpy_kv.setup").parts(
            geometry, buffer, kv_shift, q_shift, out_shift, kernels
        )
        own = make.kernels(one.kernels.name)
        self.policy = policy
        # For the modules of this package alone.
        self.plan, self.at, self.worth = make.table(geometry, kind, peak, recent)
        self.survey = own.survey
        self._watch = own.watch
        table = Table(geometry, self.plan, one, own, make.planes(geometry))
        if kind != _BLIND:
            one.probe = table
            make.watch(one, own, self.plan)
        Sequence.__init__(self, geometry, [one] * geometry.layers, table)

    # The step. What a commit changes beside the length is written before, with the length (_SINCE) from
    # which on it holds, and put in force by settle(), which may be cut and run again.

    @micropython.native
    def _begin(self, n):
        """Begin a step of n tokens: places for them, and the victim if there is one place only."""
        p = self.length
        turn = self._turn
        plan = self.plan
        table = self.placement
        if p + n > _END:
            self._refuse_own("end", n)
        if turn[_STEP] or turn[_HIGH] > p:
            self.abort()
        self.settle()
        at = self.at
        worth = self.worth[plan[_BANK]]
        self.survey(at, worth, plan, p)
        ring = plan[_RING]
        live = plan[_LIVE]
        if plan[_TOP] > plan[_FREE] and live < ring - 1:
            table.close_up(at, worth)
            self.survey(at, worth, plan, p)
        if live == 0:
            worth[ring] = worth[ring + 1] = 0  # masses begin anew, none of them halved
        sinks = self.geometry.sinks
        start = p if p > sinks else sinks
        more = p + n - start
        hole = ring
        if live + more >= ring:
            if n > 1:
                self._refuse_own("prefill", n, more, ring - 1 - live)
            hole = plan[_VICTIM]
        mark = self._mark
        i = self._layers
        while i:
            i -= 1
            mark[i] = 0
        first = plan[_FREE]
        fresh = plan[_FRESH]
        i = 0
        while i < more:
            at[first + i] = start + i + 1  # beyond the length: nothing yet
            worth[first + i] = fresh
            i += 1
        table.start = start
        plan[_FIRST] = first
        plan[_HOLE] = hole
        plan[_ROWS] = n
        bank = plan[_BANK]
        evicted = plan[_EVICTED]
        count = live
        if more > 0:
            count += more
        if hole < ring:
            count -= 1
            evicted = (evicted + 1) & 0x3FFFFFFF
        seen = p + n
        if seen > sinks:
            seen = sinks
        plan[_COUNT] = count
        plan[_SEEN] = seen
        plan[_NEXT_EVICTED] = evicted
        plan[_NEXT_BANK] = bank
        if plan[_KIND] != _BLIND:
            plan[_NEXT_BANK] = 1 - bank
            self._measure(n, count + seen)
        self.attention[0].runs_of = -1
        turn[_HIGH] = p + 1  # before the first byte is written
        table.aim(p, 0)
        plan[_SINCE] = p + n
        turn[_STEP] = n

    @micropython.native
    def _measure(self, n, visible):
        """Units of this step's shares: n rows, the last one seeing `visible` tokens."""
        plan = self.plan
        if plan[_PEAK]:
            return  # a mark is a use
        heads = plan[_ALL_HEADS] * n
        one = plan[_ROW_BITS]
        bits = one
        while heads >= _END >> bits:
            bits -= 1
        plan[_BITS] = bits
        plan[_UP] = one - bits
        plan[_THRESHOLD] = (heads << bits) // (2 * visible)

    @micropython.native
    def commit(self):
        """As KVCache.commit; then the step's attention counts, and the victim is gone."""
        plan = self.plan
        if self._turn[_STEP] and plan[_KIND] != _BLIND:
            bank = plan[_BANK]
            self._watch(plan, self.worth[bank], self.worth[1 - bank], plan[_KIND])
        Sequence.commit(self)

    @micropython.native
    def settle(self):
        """Put in force what a committed step, or a cut change, has decided. For this package alone."""
        plan = self.plan
        since = plan[_SINCE]
        if since:
            if self.length < since:
                return
            hole = plan[_HOLE]
            if hole < plan[_RING]:
                self.at[hole] = 0
            plan[_BANK] = plan[_NEXT_BANK]
            plan[_EVICTED] = plan[_NEXT_EVICTED]
            plan[_SINCE] = 0
        elif plan[_SHRINKING] or plan[_MOVING] < plan[_RING]:
            load_module("mpy_kv.token_eviction.compression").mend(self)

    def abort(self):
        """Forget the uncommitted step: all is as before it."""
        self.settle()
        self.plan[_SINCE] = 0
        self._drop()
        self._turn[_HIGH] = self.length

    def rollback(self, n):
        """Forget the n newest tokens (and any uncommitted step); those evicted stay gone, and the attention
        that they gave still counts. Raises BadArgument if n > length."""
        if type(n) is not int or n < 0 or n > self.length:
            self._refuse("rollback", n)
        self.abort()
        self.length -= n
        self._turn[_HIGH] = self.length

    def compress(self, keep_ratio, recent=0):
        """Keep the worthiest keep_ratio of the tokens there, to nearest and at least one; sinks and the
        newest `recent` positions stay in any case. For once, after a prefill. Returns how many left.

        keep_ratio: a number, or without floats a pair of whole numbers (part, whole).
        Drops an uncommitted step. Raises BadArgument unless 0 < keep_ratio <= 1. An exception leaves all of
        the tokens or, from some moment on, those kept. Allocates."""
        part, whole = keep_ratio, 1
        pair = type(keep_ratio) is tuple and len(keep_ratio) == 2
        if pair:
            part, whole = keep_ratio
        if type(part) is not int and (pair or type(part) is not float):
            self._refuse_own("ratio", keep_ratio)
        if type(whole) is not int or not 0 < part <= whole:
            self._refuse_own("ratio", keep_ratio)
        if type(recent) is not int or recent < 0:
            self._refuse_own("recent", recent)
        self.abort()
        self.settle()
        return load_module("mpy_kv.token_eviction.compression").compress(self, part, whole, recent)

    # Looking

    @property
    def evicted_tokens(self):
        """Tokens that were committed and evicted (not those rolled back), modulo 2^30."""
        self.settle()
        return self.plan[_EVICTED]

    def _visible_count(self):
        return len(self.visible())

    def visible(self):
        """Positions of the committed tokens that are there, ascending; a new list (allocates)."""
        self.settle()
        length = self.length
        return list(range(min(self.geometry.sinks, length))) + sorted(
            [x - 1 for x in self.at if 0 < x <= length]
        )

    def place(self, layer, which, position):
        """As KVCache.place, of a visible token. O(slots)."""
        load_module("mpy_kv.inspect").check_place(self, layer, which, position)
        sinks = self.geometry.sinks
        slot = position
        if position >= self.length:
            slot = -1
        elif position >= sinks:
            self.settle()
            slot = -1
            for r in range(self.plan[_RING]):
                if self.at[r] == position + 1:
                    slot = sinks + r
        if slot < 0:
            self._refuse_own("unseen", position)
        return self.geometry.place(self.attention[0].codes[layer], which, slot)

    def check(self):
        """Number of broken invariants (0 = sound). O(visible bytes), allocates."""
        return load_module("mpy_kv.token_eviction.compression").check(self)

    def _refuse_own(self, what, *about):
        getattr(load_module("mpy_kv.token_eviction.raise_errors"), what)(self, *about)
