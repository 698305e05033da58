"""Counts and broken invariants of Requests. Transient (mpy_kv/transient.py); allocates, changes nothing."""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

# fields: blocks, requests
_TOP = const(1)
_FREE = const(2)
_REUSABLE = const(3)
_USED = const(4)
_PEAK = const(5)
_ENTRIES = const(7)
_ORPHANS = const(9)
_BOUND = const(1)
_COMMON = const(2)
_PINNED = const(3)
_OPENED = const(4)
_REUSED = const(5)
# end of fields


def header(ledger, request):
    """As Requests.header."""
    row = request.row
    valid = not request.closed()
    return {
        "size": ledger.limit[row],
        "references": ledger.held[row] if valid else 0,
        "locked": bool(valid and ledger.locked[row]),
        "length": request.length,
        "valid": valid,
        "owner": ledger.owner[row] if valid else None,
        "share": ledger.share[row] if valid else 0,
        "priority": ledger.priority[row] if valid else 0,
        "pinned": ledger.pinned[row] if valid else 0,
    }


def stats(ledger):
    """As Requests.stats."""
    b = ledger.blocks
    m = b.meta
    state = ledger.state
    protected = len([i for i in range(b.n) if b.serial[i] and b.ref[i]])
    return {
        "total_blocks": b.n,
        "free_blocks": m[_FREE],
        "referenced_blocks": m[_USED],
        "evictable_blocks": m[_REUSABLE],
        "cached_blocks": m[_ENTRIES],  # in the prefix index
        "protected_blocks": protected,  # of these, the referenced ones
        "private_blocks": m[_USED] - protected,  # referenced, not in the index
        "shared_blocks": len([i for i in range(b.n) if b.ref[i] > 1]),
        "pinned_blocks": state[_PINNED],
        "available_blocks": ledger.available_blocks(),
        "peak_blocks": m[_PEAK],
        "requests": len([r for r in range(ledger.max_requests) if ledger.open_rows[r]]),
        "pins": len([r for r in range(ledger.max_requests, ledger.rows) if ledger.open_rows[r]]),
        "opened": state[_OPENED],
        "reused_tokens": state[_REUSED],
        "block_tokens": b.block_tokens,
        "block_bytes": b.block_bytes,
    }


def check(ledger):
    """As Requests.check."""
    b = ledger.blocks
    n = b.n
    m = b.meta
    bad = _rows(ledger)
    where = _walk(b)
    if where is None:
        return bad + 1
    for i in range(n):
        here = where[i]
        if b.ref[i]:
            bad += here != 0  # referenced, yet free or reusable
        elif b.serial[i]:
            bad += here != (3 if b.children[i] else 2)
        else:
            bad += here != 1
        # Memory of its own, unless it is free and the pool has others to serve.
        bad += b.handle[i] < 0 and (b.keep or b.ref[i] or b.serial[i]) != 0
    free, reusable = where.count(1), where.count(2) + where.count(3)
    bad += m[_FREE] != free
    bad += m[_REUSABLE] != reusable
    bad += m[_USED] != len([i for i in range(n) if b.ref[i]])
    bad += m[_FREE] + m[_REUSABLE] + m[_USED] != n
    return bad + _index(ledger)


def _rows(ledger):
    """References counted again."""
    b = ledger.blocks
    n = b.n
    pages = ledger.geometry.pages
    state = ledger.state
    ref, common = [0] * n, [0] * n
    bound = pinned = bad = 0
    pins = [0] * ledger.rows
    for row in range(ledger.rows):
        cells = range(row * pages, (row + 1) * pages)
        table = [ledger.table[c] for c in cells if ledger.table[c] < n]
        held = table + [ledger.undo[c] for c in cells if ledger.undo[c] < n]
        if not ledger.open_rows[row]:
            bad += len(held) + (ledger.held[row] != 0) + (ledger.share[row] != 0)
            continue
        bad += len(set(table)) != len(table)  # a block twice in one table
        bad += ledger.held[row] != len(held)
        share = ledger.share[row]
        if share:
            bound += max(share, len(held))
        for i in held:
            ref[i] += 1
            common[i] += not share
        if row >= ledger.max_requests:
            pinned += len(held)
            by = ledger.pin_row[row]
            if ledger.gen[by] == ledger.pin_gen[row]:
                pins[by] += len(held)
        else:
            bad += len(table) > ledger.limit[row]
    for row in range(ledger.max_requests):
        if ledger.open_rows[row]:
            bad += pins[row] != ledger.pinned[row]
    bad += state[_BOUND] != bound
    bad += state[_PINNED] != pinned
    bad += state[_COMMON] != len([c for c in common if c])
    bad += state[_BOUND] + state[_COMMON] > n
    bad += len([i for i in range(n) if ref[i] != b.ref[i] or common[i] != ledger.common[i]])
    return bad


def _walk(b):
    """Where each block is: 0 nowhere, 1 free, 2 reusable, 3 reusable with children. None: broken."""
    n = b.n
    where = bytearray(n)
    i = b.meta[_TOP]
    while i != n:
        if i > n or where[i]:
            return None
        where[i] = 1
        i = b.nxt[i]
    for anchor in (n, n + 1):
        before, i = anchor, b.nxt[anchor]
        while i != anchor:
            if i >= n or where[i] or b.prv[i] != before:
                return None
            where[i] = anchor - n + 2
            before, i = i, b.nxt[i]
        if b.prv[anchor] != before:
            return None
    return list(where)


def _index(ledger):
    """Every entry is found in its bucket once, nothing else is; children are as many as say so."""
    b = ledger.blocks
    n = b.n
    mask = len(b.bucket) - 1
    seen = bytearray(n)
    bad = 0
    for k in range(mask + 1):
        i = b.bucket[k]
        while i != n:
            if i > n or seen[i]:
                return bad + 1
            seen[i] = 1
            bad += b.hash[i] & mask != k
            i = b.chain[i]
    children = [0] * n
    for i in range(n):
        bad += (b.serial[i] != 0) != (seen[i] != 0)
        u = b.parent[i]
        if b.serial[i]:
            if u >= 0 and b.serial[u] == b.pserial[i]:
                children[u] += 1
            # Who goes first is a tail: nothing is left that cannot be found, unless it is known.
            bad += not b.meta[_ORPHANS] and u >= 0 and b.serial[u] != b.pserial[i]
    bad += len([i for i in range(n) if b.serial[i] and children[i] != b.children[i]])
    return bad + (b.meta[_ENTRIES] != sum(seen))
