"""After an exception within a call: counts, lists and the index made anew from the tables.

The truth, which a call changes one entry at a time: which rows are open, their tables, what `undo` holds,
shares and limits; of a block its serial number (0: not in the index), parent, ids, memory. `ledger.state`
stays busy until all is mended, so that a recovery cut short is begun again. Transient (mpy_kv/transient.py);
allocates.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadHandle
from ..eviction.linked_list import add_newest, clear

# fields: blocks, requests
_TOP = const(1)
_FREE = const(2)
_REUSABLE = const(3)
_USED = const(4)
_PEAK = const(5)
_SERIAL = const(6)
_ENTRIES = const(7)
_ORPHANS = const(9)
_BUSY = const(0)
_BOUND = const(1)
_COMMON = const(2)
_PINNED = const(3)
# end of fields


def mend(ledger):
    """Leave everything sound. O(blocks + rows * pages)."""
    order = _order(ledger.blocks)
    _rows(ledger)
    _index(ledger)
    _lists(ledger.blocks, order)
    _memory(ledger.blocks)
    ledger.state[_BUSY] = 0


def _order(blocks):
    """Blocks in the order they would have gone, as far as the lists can be read."""
    found = []
    seen = bytearray(blocks.n)
    for anchor in (blocks.n, blocks.n + 1):
        i = blocks.nxt[anchor]
        while i < blocks.n and not seen[i]:
            seen[i] = 1
            found.append(i)
            i = blocks.nxt[i]
    # A block let go last is at the end.
    return found + [i for i in range(blocks.n) if not seen[i]]


def _rows(ledger):
    """References and what they are charged to, from the tables of the open rows."""
    blocks = ledger.blocks
    n = ledger.n
    pages = ledger.geometry.pages
    state = ledger.state
    for i in range(n):
        blocks.ref[i] = ledger.common[i] = 0
    state[_BOUND] = state[_COMMON] = state[_PINNED] = 0
    for row in range(ledger.rows):
        ledger.pinned[row] = 0
    for row in range(ledger.rows):
        cells = range(row * pages, (row + 1) * pages)
        if not ledger.open_rows[row]:
            for c in cells:
                ledger.table[c] = n
                ledger.undo[c] = n + 1
            ledger.held[row] = ledger.share[row] = ledger.locked[row] = 0
            continue
        held = [ledger.table[c] for c in cells] + [ledger.undo[c] for c in cells]
        held = [i for i in held if i < n]
        ledger.held[row] = len(held)
        share = ledger.share[row]
        if share:
            state[_BOUND] += max(share, len(held))
        for i in held:
            blocks.ref[i] += 1
            if not share:
                if ledger.common[i] == 0:
                    state[_COMMON] += 1
                ledger.common[i] += 1
        if row >= ledger.max_requests:
            state[_PINNED] += len(held)
    for row in range(ledger.max_requests, ledger.rows):
        by = ledger.pin_row[row]
        if ledger.open_rows[row] and ledger.gen[by] == ledger.pin_gen[row]:
            ledger.pinned[by] += ledger.held[row]


def _index(ledger):
    """Buckets and children, from the blocks that have a serial number."""
    blocks = ledger.blocks
    n = blocks.n
    mask = len(blocks.bucket) - 1
    for b in range(mask + 1):
        blocks.bucket[b] = n
    for i in range(n):
        blocks.children[i] = 0
    entries = last = 0
    for i in range(n):
        s = blocks.serial[i]
        if s:
            entries += 1
            last = max(last, s)
            b = blocks.hash[i] & mask
            blocks.chain[i] = blocks.bucket[b]
            blocks.bucket[b] = i
            u = blocks.parent[i]
            if u >= 0 and blocks.serial[u] == blocks.pserial[i]:
                blocks.children[u] += 1
    blocks.meta[_ORPHANS] = 1  # perhaps
    blocks.meta[_ENTRIES] = entries
    blocks.meta[_SERIAL] = max(blocks.meta[_SERIAL], last)


def prune(ledger):
    """Free the reusable blocks that no chain from a root leads to any more. O(blocks). What leads to a
    referenced block that is lost so is lost too, until it is let go of and this is called again."""
    blocks = ledger.blocks
    n = blocks.n
    known = bytearray(n)  # 1: found from a root, 2: not
    for i in range(n):
        path = []
        found = 1
        while i >= 0 and blocks.serial[i]:
            if known[i]:
                found = known[i]
                break
            path.append(i)
            under = blocks.parent[i]
            serials, at = (blocks.serial, under) if under >= 0 else (ledger.salt_serial, -1 - under)
            if serials[at] != blocks.pserial[i]:
                found = 2
                break
            i = under
        for i in path:
            known[i] = found
    again = 0
    for i in range(n):
        if known[i] == 2:
            if blocks.ref[i]:
                again = 1
            else:
                blocks.forget(i)
                blocks.discard(i)
    blocks.meta[_ORPHANS] = again


def _lists(blocks, order):
    n = blocks.n
    m = blocks.meta
    clear(blocks.nxt, blocks.prv, n)
    clear(blocks.nxt, blocks.prv, n + 1)
    m[_TOP] = n
    m[_FREE] = m[_REUSABLE] = m[_USED] = 0
    for i in order:
        if blocks.ref[i]:
            m[_USED] += 1
        elif blocks.serial[i]:
            m[_REUSABLE] += 1
            add_newest(blocks.nxt, blocks.prv, n + 1 if blocks.children[i] else n, i)
    for i in range(n - 1, -1, -1):
        if not blocks.ref[i] and not blocks.serial[i]:
            m[_FREE] += 1
            blocks.nxt[i] = m[_TOP]
            m[_TOP] = i
    m[_PEAK] = max(m[_PEAK], m[_USED])


def _memory(blocks):
    """Free blocks have no memory of a pool that others use."""
    if blocks.keep:
        return
    for i in range(blocks.n):
        h = blocks.handle[i]
        if h >= 0 and not blocks.ref[i] and not blocks.serial[i]:
            try:
                blocks.pool.free(h)
            except BadHandle:
                pass  # given back already
            blocks.handle[i] = -1
