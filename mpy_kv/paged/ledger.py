"""Ledger: which row holds which of the blocks, and what all of it adds up to.

A row is an open request's or a pin's; its table says which blocks hold its pages. Isolation is arithmetic,
done before anything is taken or forgotten:
  limit    most blocks a request may hold
  share    blocks it has reserved: no other request can come between it and them, shared prefixes included
  pins     most blocks it may pin
With BOUND = sum over requests with a share of max(share, held), and COMMON = blocks that any request without
a share, or a pin, holds, BOUND + COMMON never exceeds the number of blocks: a request with a share pays for
every block it holds as if it shared none, the others pay for each block once.

The tables are the truth. A call that an exception cuts short (KeyboardInterrupt may come anywhere) leaves
`busy` set, and the next call mends everything else from the tables: references, lists, counts. So no
block is lost or held twice, whatever the moment. (A pool that others use too may keep a block whose alloc
was cut short: it cannot be asked whose it is.) Not for interrupts, signal handlers or two threads: they would
mend a call that still runs.

All state lies in arrays made at construction; nothing here allocates after.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..errors import BadHandle, NoRoom
from ..transient import load_module

# fields: blocks, requests
_REUSABLE = const(3)
_BUSY = const(0)
_BOUND = const(1)
_COMMON = const(2)
_PINNED = const(3)
# end of fields

CLOSED, OPEN, PIN = 0, 1, 2  # of a row


class Ledger:
    """For the modules of this package alone. blocks: the Blocks; attention: what each Request has one like;
    root_hash: where every chain's hash begins; pin_blocks: most blocks pinned at once."""

    def __init__(self, geometry, blocks, attention, root_hash, max_requests, max_pins, pin_blocks, wide_ids):
        self.geometry = geometry
        self.blocks = blocks
        self.attention = attention
        self.buffer = attention.buffer
        self.root_hash = root_hash
        self.pin_blocks = pin_blocks
        self.wide_ids = wide_ids
        n = self.n = blocks.n
        self.max_requests = max_requests
        rows = self.rows = max_requests + max_pins
        cells = rows * geometry.pages
        kind = blocks.kind
        # Of a table: n is "no block", n + 1 in `undo` "this step left the entry alone".
        self.table = array(kind, [n] * cells)
        self.undo = array(kind, [n + 1] * cells)
        self.common = array("H", bytes(2 * n))
        self.open_rows = bytearray(rows)
        self.locked = bytearray(rows)
        self.priority = bytearray(rows)
        self.gen = array("i", [0] * rows)
        self.held = array("i", [0] * rows)
        self.share = array("i", [0] * rows)
        self.limit = array("i", [0] * rows)
        self.pinned = array("i", [0] * rows)
        self.pin_limit = array("i", [0] * rows)
        self.owner = array("i", [0] * rows)
        # Of a pin's row: the row that pinned, and its generation.
        self.pin_row = array("i", [-1] * rows)
        self.pin_gen = array("i", [0] * rows)
        # Roots of the prefix index, one a salt in use; the serial tells a row's salts apart in time.
        self.root = array("i", [0] * rows)
        self.salts = [None] * rows
        self.salt_serial = array("i", [0] * rows)
        self.salt_used = array("i", [0] * rows)  # count of opens when it was used last
        self.state = array("i", [0] * 6)

    @micropython.native
    def available_blocks(self):
        """Blocks that a row could still take, what it has yet to take of its share not counted."""
        state = self.state
        return self.n - state[_BOUND] - state[_COMMON]

    @micropython.native
    def match(self, root, tokens, most, room):
        """How many blocks of tokens are there under that root: at most `most`, and no more than `room`
        blocks that no request without a share holds."""
        blocks = self.blocks
        t = blocks.block_tokens
        common = self.common
        serial = blocks.serial
        full = (len(tokens) - 1) // t
        if full > most:
            full = most
        under = -1 - root
        under_serial = self.salt_serial[root]
        h = self.root_hash
        j = 0
        while j < full:
            h = blocks.hash_of(h, tokens, j * t)
            i = blocks.find(under, under_serial, h, tokens, j * t)
            if i < 0:
                break
            if common[i] == 0:
                room -= 1
                if room < 0:
                    break
            under = i
            under_serial = serial[i]
            j += 1
        return j

    @micropython.native
    def hold(self, row, i):
        """One more reference of this row to block i."""
        self.blocks.hold(i)
        self._count(row, i)

    @micropython.native
    def _count(self, row, i):
        state = self.state
        held = self.held[row]
        share = self.share[row]
        self.held[row] = held + 1
        if share:
            if held >= share:
                state[_BOUND] += 1
        else:
            c = self.common[i]
            self.common[i] = c + 1
            if c == 0:
                state[_COMMON] += 1

    @micropython.native
    def take(self, row):
        """A block for this row. The caller counted what is available and asked Blocks.secure() before."""
        i = self.blocks.take()
        self._count(row, i)
        return i

    @micropython.native
    def drop(self, row, i):
        """One reference of this row to block i less."""
        state = self.state
        held = self.held[row]
        share = self.share[row]
        self.held[row] = held - 1
        if share:
            if held > share:
                state[_BOUND] -= 1
        else:
            c = self.common[i] - 1
            self.common[i] = c
            if c == 0:
                state[_COMMON] -= 1
        self.blocks.drop(i)

    @micropython.native
    def release(self, row, last):
        """Give back all that a row holds, its pages from `last` down: the tail of its chain first."""
        self.state[_BUSY] = 1
        self.open_rows[row] = 0
        self.gen[row] = (self.gen[row] + 1) & 0xFFFFF
        g = self.geometry
        none = self.n
        table = self.table
        base = row * g.pages
        k = g.pages
        while k and last >= 0:
            k -= 1
            e = last
            if e >= g.sink_pages:
                e = g.sink_pages + (e - g.sink_pages) % g.ring_pages
            i = table[base + e]
            if i != none:
                table[base + e] = none
                self.drop(row, i)
            last -= 1
        # What remains: sinks far behind the window, pages that no token reached.
        k = g.pages
        while k:
            k -= 1
            i = table[base + k]
            if i != none:
                table[base + k] = none
                self.drop(row, i)
            i = self.undo[base + k]
            if i <= none:
                self.undo[base + k] = none + 1
                if i != none:
                    self.drop(row, i)
        if self.share[row]:
            self.state[_BOUND] -= self.share[row]
            self.share[row] = 0
        self.locked[row] = 0
        self.state[_BUSY] = 0

    def unpin(self, pin):
        """As Requests.unpin."""
        row = -1
        if type(pin) is int and pin >= 0:
            row = pin & 0x3FF
        if row < self.max_requests or row >= self.rows or self.open_rows[row] != PIN:
            row = -1
        if row < 0 or pin >> 10 != self.gen[row] & 0x7FFFF:
            raise BadHandle("pin %r is none of these requests, or was given up" % (pin,))
        self.state[_BUSY] = 1
        by = self.pin_row[row]
        if self.gen[by] == self.pin_gen[row]:
            self.pinned[by] -= self.held[row]
        self.state[_PINNED] -= self.held[row]
        self.release(row, self.geometry.pages - 1)

    def mend(self):
        """After a call that was cut short: everything counted anew from the tables."""
        if self.state[_BUSY]:
            load_module("mpy_kv.paged.recovery").mend(self)

    def refuse_pool(self, needed):
        """The pool, which others use too, has no memory for so many blocks."""
        raise NoRoom(
            "the pool has no room for blocks of %d bytes" % self.geometry.block_bytes,
            needed,
            0,
            evictable=self.blocks.meta[_REUSABLE],
            unit="blocks",
        )
