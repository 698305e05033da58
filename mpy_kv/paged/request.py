"""Request: one sequence whose tokens lie in blocks (requests.py opens it).

Token p is in page p // block_tokens, in slot p % block_tokens of the block that the request's table holds for
that page. The pages of a window are a ring: a new page takes the entry, and the block if nobody else holds or
finds it, of one that has left the window. So attention sees the same tokens in the same order as in a
KVCache, and its results have the same bits, whatever the size of a block.

A step never writes into a block that another request holds or that the prefix index would find: what it is
about to write is made its own before (copy on write). The block it replaces stays in `undo` until commit, so
that an abort gives back the very table there was. After the first token append, attend, prefill, commit,
abort and rollback allocate nothing; see cache.py for the conditions. O(1) a token but for attend; a new page
copies a block at most.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..attention import Attention
from ..pools.moving import move_down
from ..sequence import Sequence
from ..transient import load_module
from .pages import Pages

# fields: requests, turn, encode, request
_BUSY = const(0)
_BOUND = const(1)
_COMMON = const(2)
_HIGH = const(2)
_STEP = const(3)
_E_SLOT = const(1)
_E_AT = const(2)
_KNOWN = const(0)
_CHAIN = const(1)
_CHAIN_SERIAL = const(2)
_CHAIN_HASH = const(3)
_TOUCHED = const(4)
_AIMED = const(5)
_SINCE = const(6)
_IDS_AT = const(7)
_ID_BITS = const(8)
_PLACES = const(9)
# end of fields

_type, _int = type, int  # a module's own names are found at once


class Request(Sequence):
    """From Requests.open() or fork(). Steps as KVCache's, but commit takes the ids of the step's tokens.

    Every method refuses (BadHandle) once the request is closed."""

    def __init__(self, ledger, row, length, root):
        g = ledger.geometry
        own = self._own = array("i", [0] * _PLACES)
        own[_AIMED] = -1
        own[_ID_BITS] = 29 if ledger.wide_ids else 16
        base = self._base = row * g.pages
        like = ledger.attention
        one = Attention(
            g,
            like.kernels,
            like.buffer,
            like.codes,
            array("i", like.a),
            array("i", like.e),
            like.v_runs,
            like.q_shift,
            like.out_shift,
        )
        one.calls = like.calls  # which row() writes before each use
        one.heads = like.heads
        Sequence.__init__(self, g, [one] * g.layers, Pages(ledger, base, own, one))
        self.ledger = ledger
        self.row = row
        self.gen = ledger.gen[row]
        self.length = length
        self._turn[_HIGH] = length
        self._root = root
        self._know(length)

    def place(self, layer, which, position):
        """As KVCache.place; BadArgument where no block is there for the position."""
        self._alive()
        load_module("mpy_kv.inspect").check_place(self, layer, which, position)
        g = self.geometry
        ledger = self.ledger
        block = ledger.n
        if g.capacity is None or position < g.capacity:
            block = ledger.table[self._base + g.entry(position // g.block_tokens)]
        if block == ledger.n:
            load_module("mpy_kv.paged.raise_errors").unplaced(position)
        return g.place(ledger.blocks.at[block] + self.attention[layer].codes[layer], which, position)

    # The step

    @micropython.native
    def _begin(self, n):
        """Begin a step of n tokens: first make its pages this request's own."""
        ledger = self.ledger
        if ledger.gen[self.row] != self.gen:
            self._refuse_closed()
        if ledger.state[_BUSY]:
            self.ledger.mend()
        turn = self._turn
        one = self.attention[0]
        one.runs_of = -1  # tables change between steps, and blocks may move
        g = self.geometry
        p = self.length
        if turn[_STEP] or turn[_HIGH] > p:
            self.abort()
        if self._own[_TOUCHED]:
            self._end()
        if g.capacity is not None and p + n > g.capacity:
            self._refuse("full", n)
        slot = p % g.block_tokens
        if n == 1 and slot:
            page = p // g.block_tokens
            if page >= g.sink_pages:
                page = g.sink_pages + (page - g.sink_pages) % g.ring_pages
            i = ledger.table[self._base + page]
            blocks = ledger.blocks
            if i != ledger.n and blocks.ref[i] == 1 and blocks.serial[i] == 0:
                own = self._own
                if blocks.at[i] != own[_AIMED]:
                    Sequence._begin(self, n)
                    return
                # The same, of which the checks are done and the places are known.
                mark = self._mark
                layer = self._layers
                while layer:
                    layer -= 1
                    mark[layer] = 0
                if self.placement.floor > p:
                    self.placement.floor = p
                turn[_HIGH] = p + 1
                own[_IDS_AT] = i * g.block_tokens
                e = one.e
                e[_E_SLOT] = slot
                e[_E_AT] = 0
                turn[_STEP] = 1
                return
        self._own_pages(p, n)
        Sequence._begin(self, n)

    @micropython.native
    def _own_pages(self, p, n):
        """Have a block of its own for every page that tokens p .. p + n - 1 are written to."""
        ledger = self.ledger
        blocks = ledger.blocks
        g = self.geometry
        t = g.block_tokens
        table = ledger.table
        none = ledger.n
        ref = blocks.ref
        serial = blocks.serial
        row = self.row
        first = p // t
        last = (p + n - 1) // t
        most = first
        if most < g.sink_pages:
            most = g.sink_pages
        most += g.ring_pages - 1
        if last > most:
            last = most  # the entries further on are the same ones again
        share = ledger.share[row]
        held = ledger.held[row]
        state = ledger.state
        room = none - state[_BOUND] - state[_COMMON]  # available_blocks(), without the call
        if held < share:
            room += share - held
        new = 0
        copied = 0
        found = 0
        j = first
        while j <= last:
            e = j
            if e >= g.sink_pages:
                e = g.sink_pages + (e - g.sink_pages) % g.ring_pages
            i = table[self._base + e]
            if i == none:
                new += 1
            elif ref[i] != 1:
                copied += 1
            elif serial[i]:
                found += 1
            j += 1
        if held + new > ledger.limit[row]:
            self._refuse_limit(new)
        keep = 1
        if new + copied > room:
            # With a share, a copy of a shared block may be had for the reference that is given up for it.
            if share and new <= room:
                keep = 0
            else:
                self._refuse_room(new + copied, room)
        if new + copied + found > room:
            found = 0  # these leave the index and are written in place
        self._own[_SINCE] = p
        state[_BUSY] = 1
        if not blocks.secure(new + copied + found):
            found = 0
            if not blocks.secure(new + copied):
                state[_BUSY] = 0
                ledger.refuse_pool(new + copied)
        lowest = self.placement.low(p)  # what is committed is read, and checked, until it is overwritten
        j = first
        while j <= last:
            e = j
            old = j
            if e >= g.sink_pages:
                e = g.sink_pages + (e - g.sink_pages) % g.ring_pages
                if p % t == 0 or j != first:
                    old = j - g.ring_pages
            self._own_page(self._base + e, found, keep, old == first or (old + 1) * t > lowest)
            j += 1
        state[_BUSY] = 0

    @micropython.native
    def _own_page(self, cell, spare, keep, seen):
        """One entry of the table. spare: a block the index finds may be replaced; keep: what is replaced
        stays in `undo`; seen: it holds tokens that are visible until they are overwritten."""
        ledger = self.ledger
        blocks = ledger.blocks
        none = ledger.n
        table = ledger.table
        i = table[cell]
        if i != none and blocks.ref[i] == 1:
            if not blocks.serial[i]:
                return
            if not spare:
                blocks.forget(i)
                return
        if i == none:
            keep = 1
        elif not keep:
            ledger.drop(self.row, i)
        new = ledger.take(self.row)
        if i != none and seen:
            words = self.geometry.block_bytes >> 2
            move_down(blocks.at[new], blocks.at[i], words, ledger.buffer)  # or up: they lie apart
            t = blocks.block_tokens
            ids = blocks.ids
            k = t
            while k:
                k -= 1
                ids[new * t + k] = ids[i * t + k]
        if keep:
            self._own[_TOUCHED] += 1
            ledger.undo[cell] = i
        table[cell] = new

    def _end(self):
        """Settle a step that was committed, undo one that was not."""
        if self.length == self._own[_SINCE]:
            self._restore()
        else:
            self._settle()

    @micropython.native
    def _settle(self):
        """The step is over: what it replaced is given up."""
        ledger = self.ledger
        ledger.state[_BUSY] = 1
        none = ledger.n
        undo = ledger.undo
        cell = self._base
        end = cell + self.geometry.pages
        while cell < end:
            i = undo[cell]
            if i <= none:
                undo[cell] = none + 1
                if i != none:
                    ledger.drop(self.row, i)
            cell += 1
        self._own[_TOUCHED] = 0
        ledger.state[_BUSY] = 0

    @micropython.native
    def _restore(self):
        """The table as it was before the step."""
        ledger = self.ledger
        ledger.state[_BUSY] = 1
        none = ledger.n
        undo = ledger.undo
        table = ledger.table
        cell = self._base
        end = cell + self.geometry.pages
        while cell < end:
            i = undo[cell]
            if i <= none:
                new = table[cell]
                table[cell] = i
                undo[cell] = none + 1
                if new != none:
                    ledger.drop(self.row, new)
            cell += 1
        self._own[_TOUCHED] = 0
        ledger.state[_BUSY] = 0

    def abort(self):
        """Forget the uncommitted step: the table, and what is free, are as before it; but where a share was
        used up, the copy of a shared tail remains. What a long prefill overwrote is gone in all layers."""
        self._alive()
        if self._own[_TOUCHED]:
            self._end()
        Sequence.abort(self)

    @micropython.native
    def commit(self, ids=None):
        """As KVCache.commit. ids: id of the step's token, or a list or array of all n ids. A full block whose
        tokens, and all before them, have ids can be found by later requests. BadArgument, StepError."""
        n = self._turn[_STEP]
        p = self.length
        own = self._own
        one = _type(ids) is _int and n == 1
        if ids is not None and n and (not one or ids < 0 or ids >> own[_ID_BITS]):
            self._check_ids(ids, n)
        Sequence.commit(self)
        if own[_TOUCHED]:
            self._settle()
        if ids is not None and own[_KNOWN] == p and (self.placement.floor == 0 or not self._blind(p)):
            slot = self.attention[0].e[_E_SLOT]
            if one and slot + 1 != self.geometry.block_tokens:
                self.ledger.blocks.ids[own[_IDS_AT] + slot] = ids
                own[_KNOWN] = p + 1
            else:
                self._note(p, n, ids)

    @micropython.native
    def _blind(self, p):
        """Whether the token at p saw less than in a request of its own, after a rollback or an aborted
        prefill beyond the window: what it stored, and what follows, is no prefix for others."""
        g = self.geometry
        low = p + 1 - g.window
        if low < g.sinks:
            low = g.sinks
        return self.placement.floor > low

    def _check_ids(self, ids, n):
        load_module("mpy_kv.paged.admit_request").check_ids(ids, n, self.ledger.wide_ids)

    @micropython.native
    def _note(self, p, n, ids):
        """Write down the ids of the step's tokens and enter the blocks they fill."""
        g = self.geometry
        t = g.block_tokens
        if n > g.ring_pages * t - t:
            return  # their blocks may be gone: nothing from here on can be found
        ledger = self.ledger
        known = ledger.blocks.ids
        one = type(ids) is int
        k = 0
        while k < n:
            page = (p + k) // t
            e = page
            if e >= g.sink_pages:
                e = g.sink_pages + (e - g.sink_pages) % g.ring_pages
            i = ledger.table[self._base + e]
            slot = (p + k) % t
            known[i * t + slot] = ids if one else ids[k]
            k += 1
            if slot == t - 1 and not self._enter(self._base + e, i):
                return
        self._own[_KNOWN] = p + n

    @micropython.native
    def _enter(self, cell, i):
        """Enter the full block of a cell; where the index has its like, that one is held instead."""
        ledger = self.ledger
        blocks = ledger.blocks
        own = self._own
        under = own[_CHAIN]
        if under >= 0 and blocks.serial[under] != own[_CHAIN_SERIAL]:
            return False  # the chain lost its head: nothing finds what follows
        t = blocks.block_tokens
        h = blocks.hash_of(own[_CHAIN_HASH], blocks.ids, i * t)
        like = blocks.find(under, own[_CHAIN_SERIAL], h, blocks.ids, i * t)
        ledger.state[_BUSY] = 1
        if like < 0:
            blocks.enter(under, own[_CHAIN_SERIAL], h, i)
        else:
            ledger.hold(self.row, like)
            ledger.table[cell] = like
            ledger.drop(self.row, i)
            i = like
        ledger.state[_BUSY] = 0
        own[_CHAIN_HASH] = h
        own[_CHAIN_SERIAL] = blocks.serial[i]
        own[_CHAIN] = i
        return True

    @micropython.native
    def rollback(self, n):
        """As KVCache.rollback; pages that hold no token any more are given back."""
        self._alive()
        self.ledger.mend()
        before = self.length
        Sequence.rollback(self, n)
        g = self.geometry
        t = g.block_tokens
        # Pages of a window far beyond the ring do not exist: their entries are those of later ones.
        page = (before - 1) // t
        first = (self.length + t - 1) // t
        oldest = first
        if first <= page - g.ring_pages:
            oldest = page - g.ring_pages + 1
        self._shed(oldest, page)
        if oldest > first and first < g.sink_pages:
            self._shed(first, g.sink_pages - 1)
        if self._own[_KNOWN] >= self.length:
            self._know(self.length)

    @micropython.native
    def _shed(self, first, last):
        """Give back the pages first .. last, newest first."""
        ledger = self.ledger
        ledger.state[_BUSY] = 1
        g = self.geometry
        table = ledger.table
        none = ledger.n
        while last >= first:
            e = last
            if e >= g.sink_pages:
                e = g.sink_pages + (e - g.sink_pages) % g.ring_pages
            i = table[self._base + e]
            if i != none:
                table[self._base + e] = none
                ledger.drop(self.row, i)
            last -= 1
        ledger.state[_BUSY] = 0

    @micropython.native
    def _know(self, length):
        """The ids of `length` tokens are known: find the end of their chain. If it is lost, those of sinks
        before it are known still, for a rollback to them."""
        ledger = self.ledger
        blocks = ledger.blocks
        g = self.geometry
        own = self._own
        page = length // g.block_tokens - 1
        own[_KNOWN] = (page if page < g.sink_pages else g.sink_pages) * g.block_tokens
        if page < 0:
            own[_CHAIN] = -1 - self._root
            own[_CHAIN_SERIAL] = ledger.salt_serial[self._root]
            own[_CHAIN_HASH] = ledger.root_hash
        else:
            if self.placement.lost(self._turn[_HIGH]) > page * g.block_tokens and page >= g.sink_pages:
                return
            i = ledger.table[self._base + g.entry(page)]
            if i == ledger.n or not blocks.serial[i]:
                return
            own[_CHAIN] = i
            own[_CHAIN_SERIAL] = blocks.serial[i]
            own[_CHAIN_HASH] = blocks.hash[i]
        own[_KNOWN] = length

    # The request as a whole

    def fork(self, task=None, reserve_tokens=0, limit_tokens=None, priority=None):
        """A new request with the same committed tokens in the same blocks; whoever writes into a shared one
        first copies it. StepError within a step; NoRoom as open()."""
        self._alive()
        return load_module("mpy_kv.paged.admit_request").fork(
            self, task, reserve_tokens, limit_tokens, priority
        )

    def reserve(self, tokens):
        """Change the share to the blocks of that many tokens, 0 for none. NoRoom if it cannot be kept, or if
        what this request shares with others could not be; nothing changed then."""
        self._alive()
        load_module("mpy_kv.paged.admit_request").reserve(self, tokens)

    def take_over(self, other):
        """Be where `other`, whose table this one has, is: for fork."""
        self.length = other.length
        self._gone = other._gone_now()
        self.placement.floor = other.placement.floor
        self._turn[_HIGH] = other._turn[_HIGH]
        for k in range(4):
            self._own[k] = other._own[k]

    def pending(self):
        """Whether a step has begun."""
        return self._turn[_STEP] != 0 or self._turn[_HIGH] > self.length

    def lock(self):
        """Guard the request against close; idempotent."""
        self._alive()
        self.ledger.locked[self.row] = 1

    def unlock(self):
        self._alive()
        self.ledger.locked[self.row] = 0

    def close(self):
        """Give everything back. Blocks that are in the index stay reusable, the tail of the chain to go
        first. Locked if it is; BadHandle the second time."""
        self._alive()
        ledger = self.ledger
        if ledger.locked[self.row]:
            self._refuse_locked()
        self.abort()
        ledger.release(self.row, (self.length - 1) // self.geometry.block_tokens)

    def _refuse(self, what, *about):
        if self.closed():
            self._refuse_closed()
        Sequence._refuse(self, what, *about)

    def _visible_count(self):
        self._alive()
        return Sequence._visible_count(self)

    def closed(self):
        return self.ledger.gen[self.row] != self.gen

    def _alive(self):
        if self.ledger.gen[self.row] != self.gen:
            self._refuse_closed()
        if self.ledger.state[_BUSY]:
            self.ledger.mend()

    def _refuse_closed(self):
        load_module("mpy_kv.paged.raise_errors").closed(self)

    def _refuse_locked(self):
        load_module("mpy_kv.paged.raise_errors").locked(self)

    def _refuse_limit(self, new):
        load_module("mpy_kv.paged.raise_errors").limit(self, new)

    def _refuse_room(self, new, room):
        load_module("mpy_kv.paged.raise_errors").room(self, new, room)
