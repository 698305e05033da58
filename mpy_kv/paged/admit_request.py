"""How requests and pins begin: arguments checked, a row found, a prefix claimed. Transient
(mpy_kv/transient.py).

`ledger` is that of the Requests. Nothing is changed before everything is checked; what is cut short after
that the caller mends.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from array import array

from ..errors import BadArgument, BadHandle, NoRoom, StepError
from ..transient import load_module
from .ledger import CLOSED, OPEN, PIN
from .request import Request

# fields: blocks, requests
_REUSABLE = const(3)
_ORPHANS = const(9)
_BUSY = const(0)
_BOUND = const(1)
_COMMON = const(2)
_PINNED = const(3)
_OPENED = const(4)
_REUSED = const(5)
# end of fields

PAST = 1 << 29


def whole(name, value, low, high):
    if type(value) is not int or not low <= value <= high:
        raise BadArgument("%s must be %d..%d, got %r" % (name, low, high, value))
    return value


def check_ids(ids, count, wide):
    """Token ids: `count` of them, or any number if that is None; a number is one. BadArgument."""
    most = (PAST if wide else 1 << 16) - 1
    if type(ids) is int:
        ids = [ids]
    if not isinstance(ids, (list, tuple, bytes, bytearray, memoryview, array)):
        raise BadArgument("token ids must be a number, a list or an array, got %s" % type(ids).__name__)
    n = len(ids)
    if count is not None and n != count:
        raise BadArgument("commit of %d tokens needs %d ids, got %d" % (count, count, n))
    for i in range(n):
        if type(ids[i]) is not int or not 0 <= ids[i] <= most:
            raise BadArgument(
                "token ids must be 0..%d%s, got %r" % (most, "" if wide else " (or give wide_ids)", ids[i])
            )


def check_prefix(ledger, tokens, salt):
    """What a prefix is looked for by. BadArgument."""
    if type(tokens) is int:
        raise BadArgument("tokens must be a list or array of ids, got %r" % (tokens,))
    check_ids(tokens, None, ledger.wide_ids)
    if not isinstance(salt, (bytes, bytearray)):
        raise BadArgument("salt must be bytes, got %s" % type(salt).__name__)


def check_own(ledger, request):
    """Whether a request is one of these. BadArgument."""
    if not isinstance(request, Request) or request.ledger is not ledger:
        raise BadArgument("request must be one of these Requests, got %r" % (request,))


def checked(ledger, task, reserve_tokens, tokens, limit_tokens, priority, pin_tokens, salt):
    """The arguments of open(): (task, share, limit, priority, most pinned blocks, salt)."""
    g = ledger.geometry
    whole("task", task, 0, PAST - 1)
    whole("reserve_tokens", reserve_tokens, 0, PAST)
    whole("priority", priority, 0, 255)
    check_prefix(ledger, () if tokens is None else tokens, salt)
    limit = g.pages
    if limit_tokens is not None:
        limit = g.blocks_of(whole("limit_tokens", limit_tokens, 1, PAST))
    pins = 0
    if pin_tokens is not None:
        pins = whole("pin_tokens", pin_tokens, 0, PAST) // g.block_tokens
    if g.capacity is not None and reserve_tokens > g.capacity:
        raise BadArgument("reserve_tokens %d is more than the capacity %d" % (reserve_tokens, g.capacity))
    share = g.blocks_of(reserve_tokens)
    if share > limit:
        raise BadArgument(
            "reserve_tokens %d (%d blocks) is more than limit_tokens allows (%d blocks)"
            % (reserve_tokens, share, limit)
        )
    return task, share, limit, priority, pins, bytes(salt)


def free_row(ledger, first, end, what):
    """A row nobody has."""
    for row in range(first, end):
        if ledger.open_rows[row] == CLOSED:
            return row
    raise NoRoom("all %d of %s are taken" % (end - first, what), 1, 0, unit="rows")


def find_salt(ledger, salt):
    """Root of that salt, -1 if it has none."""
    for root in range(ledger.rows):
        if ledger.salts[root] == salt:
            return root
    return -1


def salt_row(ledger, salt):
    """Root of that salt, made if need be in place of one that neither an open request nor a pin uses, the
    least recently used of them: its entries are found no more."""
    root = find_salt(ledger, salt)
    if root < 0:
        used = bytearray(ledger.rows)
        for row in range(ledger.rows):
            if ledger.open_rows[row] != CLOSED:
                used[ledger.root[row]] = 1
        # There is one at least: the row that opens has none yet.
        for i in range(ledger.rows):
            if ledger.salts[i] is None:
                root = i
                break
            if not used[i] and (root < 0 or ledger.salt_used[i] < ledger.salt_used[root]):
                root = i
        ledger.salts[root] = None
        ledger.salt_serial[root] += 1
        ledger.blocks.meta[_ORPHANS] = 1
        ledger.salts[root] = salt
    ledger.salt_used[root] = ledger.state[_OPENED]
    return root


def check_share(ledger, share):
    """Whether so many blocks can be reserved. NoRoom."""
    slack = ledger.available_blocks()
    if share > slack:
        refuse(ledger, "reserve_tokens: a share of %d blocks cannot be kept" % share, share, slack)


def claim(ledger, row, root, asked, tokens):
    """Make the row a request's, holding the blocks of the prefix that are there; tokens found."""
    task, share, limit, priority, pins, _ = asked
    g = ledger.geometry
    state = ledger.state
    slack = ledger.available_blocks()
    found = 0
    if tokens is not None and len(tokens):
        most = limit if limit < g.pages or g.capacity is not None else ledger.n
        found = ledger.match(root, tokens, min(most, slack) if share else most, slack)
    ledger.owner[row] = task
    ledger.limit[row] = limit
    ledger.priority[row] = priority
    ledger.pin_limit[row] = pins
    ledger.pinned[row] = 0
    ledger.held[row] = 0
    ledger.root[row] = root
    ledger.locked[row] = 0
    ledger.share[row] = share
    state[_BOUND] += share
    blocks = ledger.blocks
    t = g.block_tokens
    under, under_serial, h = -1 - root, ledger.salt_serial[root], ledger.root_hash
    for j in range(found):
        h = blocks.hash_of(h, tokens, j * t)
        i = blocks.find(under, under_serial, h, tokens, j * t)
        under, under_serial = i, blocks.serial[i]
        if j < g.sink_pages or j >= found - g.ring_pages + 1 or g.capacity is not None:
            ledger.table[row * g.pages + g.entry(j)] = i
            ledger.hold(row, i)
    return found * t


def refuse(ledger, why, needed, free):
    state = ledger.state
    raise NoRoom(
        why,
        needed,
        max(free, 0),
        evictable=ledger.blocks.meta[_REUSABLE],
        pinned=state[_PINNED],
        unit="blocks",
    )


def open(ledger, asked, tokens):
    """As Requests.open, of arguments that are checked."""
    row = free_row(ledger, 0, ledger.max_requests, "max_requests")
    check_share(ledger, asked[1])
    state = ledger.state
    try:
        state[_BUSY] = 1
        root = salt_row(ledger, asked[-1])
        if ledger.blocks.meta[_ORPHANS]:
            load_module("mpy_kv.paged.recovery").prune(ledger)
        found = claim(ledger, row, root, asked, tokens)
        request = Request(ledger, row, found, root)
        ledger.open_rows[row] = OPEN
        state[_OPENED] += 1
        state[_REUSED] += found
        state[_BUSY] = 0
        return request
    except BaseException:
        ledger.open_rows[row] = CLOSED
        state[_BUSY] = 1
        ledger.mend()
        raise


def reserve(request, tokens):
    """As Request.reserve."""
    ledger = request.ledger
    g = ledger.geometry
    row = request.row
    share = g.blocks_of(whole("tokens", tokens, 0, g.capacity if g.capacity is not None else PAST))
    if share > ledger.limit[row]:
        raise BadArgument(
            "tokens %d (%d blocks) is more than limit_tokens allows (%d blocks)"
            % (tokens, share, ledger.limit[row])
        )
    state = ledger.state
    none = ledger.n
    cells = range(row * g.pages, (row + 1) * g.pages)
    holds = [ledger.table[c] for c in cells if ledger.table[c] < none]
    holds += [ledger.undo[c] for c in cells if ledger.undo[c] < none]
    old, held = ledger.share[row], ledger.held[row]
    bound = (max(share, held) if share else 0) - (max(old, held) if old else 0)
    common = 0
    if share and not old:  # what it holds is its own to pay for from now on
        common = -len([i for i in set(holds) if ledger.common[i] == holds.count(i)])
    elif old and not share:
        common = len([i for i in set(holds) if ledger.common[i] == 0])
    slack = ledger.available_blocks()
    if bound + common > slack:
        refuse(ledger, "tokens: a share of %d blocks cannot be kept" % share, bound + common, slack)
    state[_BUSY] = 1
    ledger.share[row] = share
    if bool(share) != bool(old):
        for i in holds:
            ledger.common[i] += 1 if old else -1
    state[_BOUND] += bound
    state[_COMMON] += common
    state[_BUSY] = 0


def fork(request, task, reserve_tokens, limit_tokens, priority):
    """As Request.fork."""
    ledger = request.ledger
    row = request.row
    g = ledger.geometry
    if request.pending():
        raise StepError("fork within a step: commit or abort it first")
    if task is None:
        task = ledger.owner[row]
    if priority is None:
        priority = ledger.priority[row]
    if limit_tokens is None:
        limit_tokens = ledger.limit[row] * g.block_tokens
    root = ledger.root[row]
    salt = ledger.salts[root]
    asked = checked(ledger, task, reserve_tokens, None, limit_tokens, priority, None, salt)
    base = row * g.pages
    none = ledger.n
    cells = [e for e in range(g.pages) if ledger.table[base + e] != none]
    if len(cells) > asked[2]:
        raise BadArgument(
            "limit_tokens %d is less than the %d blocks the request holds" % (limit_tokens, len(cells))
        )
    state = ledger.state
    slack = ledger.available_blocks()
    if asked[1]:
        needed = max(asked[1], len(cells))
    else:
        needed = len([e for e in cells if ledger.common[ledger.table[base + e]] == 0])
    if needed > slack:
        refuse(ledger, "no room for a fork: close requests or give more blocks", needed, slack)
    new = free_row(ledger, 0, ledger.max_requests, "max_requests")
    try:
        state[_BUSY] = 1
        claim(ledger, new, root, asked, None)
        for e in cells:
            i = ledger.table[base + e]
            ledger.table[new * g.pages + e] = i
            ledger.hold(new, i)
        child = Request(ledger, new, 0, root)
        child.take_over(request)
        ledger.open_rows[new] = OPEN
        state[_OPENED] += 1
        state[_BUSY] = 0
        return child
    except BaseException:
        ledger.open_rows[new] = CLOSED
        state[_BUSY] = 1
        ledger.mend()
        raise


def pin(ledger, request, tokens):
    """As Requests.pin."""
    check_own(ledger, request)
    if request.closed():
        raise BadHandle("the request is closed: pin before close")
    g = ledger.geometry
    row = request.row
    base = row * g.pages
    t = g.block_tokens
    if tokens is None:
        count = request.length // t
    else:
        whole("tokens", tokens, 1, max(request.length, 1))
        count = tokens // t
    serial = ledger.blocks.serial
    table = ledger.table
    kept = []
    under = -1 - ledger.root[row]
    for j in range(min(count, g.pages)):
        i = table[base + g.entry(j)]
        if i == ledger.n or not serial[i] or ledger.blocks.parent[i] != under:
            break  # left the window, or its tokens have no ids
        kept.append(i)
        under = i
    if count == 0 or len(kept) < count:
        raise BadArgument(
            "tokens %r: only the first %d, whole blocks with ids in the window, can be pinned"
            % (tokens, len(kept) * t)
        )
    if ledger.pinned[row] + count > ledger.pin_limit[row]:
        refuse(
            ledger,
            "pin_tokens allows %d blocks" % ledger.pin_limit[row],
            count,
            ledger.pin_limit[row] - ledger.pinned[row],
        )
    state = ledger.state
    if state[_PINNED] + count > ledger.pin_blocks:
        refuse(
            ledger,
            "pin_blocks allows %d in all" % ledger.pin_blocks,
            count,
            ledger.pin_blocks - state[_PINNED],
        )
    slack = ledger.available_blocks()
    needed = len([i for i in kept if ledger.common[i] == 0])
    if needed > slack:
        refuse(ledger, "no room for a pin: close requests or give more blocks", needed, slack)
    new = free_row(ledger, ledger.max_requests, ledger.rows, "max_pins")
    try:
        state[_BUSY] = 1
        ledger.share[new] = ledger.held[new] = 0
        ledger.pin_row[new] = row
        ledger.pin_gen[new] = ledger.gen[row]
        ledger.root[new] = ledger.root[row]
        for j in range(count):
            table[new * g.pages + j] = kept[j]
            ledger.hold(new, kept[j])
        ledger.pinned[row] += count
        state[_PINNED] += count
        ledger.open_rows[new] = PIN
        state[_BUSY] = 0
        return new | (ledger.gen[new] & 0x7FFFF) << 10
    except BaseException:
        ledger.open_rows[new] = CLOSED
        state[_BUSY] = 1
        ledger.mend()
        raise
