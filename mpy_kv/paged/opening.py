"""How requests and pins begin: arguments checked, a row found, a prefix claimed. Lent (mpy_kv/lend.py).

`requests` is the Requests. Nothing is changed before everything is checked; what is cut short after that the
caller mends.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from array import array

from ..errors import BadArgument, BadHandle, NoRoom, StepError
from .request import Request

# fields: blocks, requests
_REUSABLE = const(3)
_ORPHANS = const(9)
_BUSY = const(0)
_BOUND = const(1)
_COMMON = const(2)
_PINNED = const(3)
_OPENED = const(4)
# end of fields

_CLOSED, _OPEN, _PIN = 0, 1, 2  # of a row
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


def check_prefix(requests, tokens, salt):
    """What a prefix is looked for by. BadArgument."""
    if type(tokens) is int:
        raise BadArgument("tokens must be a list or array of ids, got %r" % (tokens,))
    check_ids(tokens, None, requests.wide_ids)
    if not isinstance(salt, (bytes, bytearray)):
        raise BadArgument("salt must be bytes, got %s" % type(salt).__name__)


def check_own(requests, request):
    """Whether a request is one of these. BadArgument."""
    if not isinstance(request, Request) or request.requests is not requests:
        raise BadArgument("request must be one of these Requests, got %r" % (request,))


def checked(requests, task, reserve_tokens, tokens, limit_tokens, priority, pin_tokens, salt):
    """The arguments of open(): (task, share, limit, priority, most pinned blocks, salt)."""
    g = requests.geometry
    whole("task", task, 0, PAST - 1)
    whole("reserve_tokens", reserve_tokens, 0, PAST)
    whole("priority", priority, 0, 255)
    check_prefix(requests, () if tokens is None else tokens, salt)
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


def free_row(requests, first, end, what):
    """A row nobody has."""
    for row in range(first, end):
        if requests.open_rows[row] == _CLOSED:
            return row
    raise NoRoom("all %d of %s are taken" % (end - first, what), 1, 0, unit="rows")


def find_salt(requests, salt):
    """Root of that salt, -1 if it has none."""
    for root in range(requests.rows):
        if requests.salts[root] == salt:
            return root
    return -1


def salt_row(requests, salt):
    """Root of that salt, made if need be in place of one that neither an open request nor a pin uses, the
    least recently used of them: its entries are found no more."""
    root = find_salt(requests, salt)
    if root < 0:
        used = bytearray(requests.rows)
        for row in range(requests.rows):
            if requests.open_rows[row] != _CLOSED:
                used[requests.root[row]] = 1
        # There is one at least: the row that opens has none yet.
        for i in range(requests.rows):
            if requests.salts[i] is None:
                root = i
                break
            if not used[i] and (root < 0 or requests.salt_used[i] < requests.salt_used[root]):
                root = i
        requests.salts[root] = None
        requests.salt_serial[root] += 1
        requests.blocks.meta[_ORPHANS] = 1
        requests.salts[root] = salt
    requests.salt_used[root] = requests.state[_OPENED]
    return root


def check_share(requests, share):
    """Whether so many blocks can be reserved. NoRoom."""
    slack = requests.n - requests.state[_BOUND] - requests.state[_COMMON]
    if share > slack:
        refuse(requests, "reserve_tokens: a share of %d blocks cannot be kept" % share, share, slack)


def claim(requests, row, root, asked, tokens):
    """Make the row a request's, holding the blocks of the prefix that are there; tokens found."""
    task, share, limit, priority, pins, _ = asked
    g = requests.geometry
    state = requests.state
    slack = requests.n - state[_BOUND] - state[_COMMON]
    found = 0
    if tokens is not None and len(tokens):
        most = limit if limit < g.pages or g.capacity is not None else requests.n
        found = requests.match(root, tokens, min(most, slack) if share else most, slack)
    requests.owner[row] = task
    requests.limit[row] = limit
    requests.priority[row] = priority
    requests.pin_limit[row] = pins
    requests.pinned[row] = 0
    requests.held[row] = 0
    requests.root[row] = root
    requests.locked[row] = 0
    requests.share[row] = share
    state[_BOUND] += share
    blocks = requests.blocks
    t = g.block_tokens
    under, under_serial, h = -1 - root, requests.salt_serial[root], requests.root_hash
    for j in range(found):
        h = blocks.hash_of(h, tokens, j * t)
        i = blocks.find(under, under_serial, h, tokens, j * t)
        under, under_serial = i, blocks.serial[i]
        if j < g.sink_pages or j >= found - g.ring_pages + 1 or g.capacity is not None:
            requests.table[row * g.pages + g.entry(j)] = i
            requests.hold(row, i)
    return found * t


def refuse(requests, why, needed, free):
    state = requests.state
    raise NoRoom(
        why,
        needed,
        max(free, 0),
        evictable=requests.blocks.meta[_REUSABLE],
        pinned=state[_PINNED],
        unit="blocks",
    )


def reserve(request, tokens):
    """As Request.reserve."""
    requests = request.requests
    g = requests.geometry
    row = request.row
    share = g.blocks_of(whole("tokens", tokens, 0, g.capacity if g.capacity is not None else PAST))
    if share > requests.limit[row]:
        raise BadArgument(
            "tokens %d (%d blocks) is more than limit_tokens allows (%d blocks)"
            % (tokens, share, requests.limit[row])
        )
    state = requests.state
    none = requests.n
    cells = range(row * g.pages, (row + 1) * g.pages)
    holds = [requests.table[c] for c in cells if requests.table[c] < none]
    holds += [requests.undo[c] for c in cells if requests.undo[c] < none]
    old, held = requests.share[row], requests.held[row]
    bound = (max(share, held) if share else 0) - (max(old, held) if old else 0)
    common = 0
    if share and not old:  # what it holds is its own to pay for from now on
        common = -len([i for i in set(holds) if requests.common[i] == holds.count(i)])
    elif old and not share:
        common = len([i for i in set(holds) if requests.common[i] == 0])
    slack = none - state[_BOUND] - state[_COMMON]
    if bound + common > slack:
        refuse(requests, "tokens: a share of %d blocks cannot be kept" % share, bound + common, slack)
    state[_BUSY] = 1
    requests.share[row] = share
    if bool(share) != bool(old):
        for i in holds:
            requests.common[i] += 1 if old else -1
    state[_BOUND] += bound
    state[_COMMON] += common
    state[_BUSY] = 0


def fork(request, task, reserve_tokens, limit_tokens, priority):
    """As Request.fork."""
    requests = request.requests
    row = request.row
    g = requests.geometry
    if request.pending():
        raise StepError("fork within a step: commit or abort it first")
    if task is None:
        task = requests.owner[row]
    if priority is None:
        priority = requests.priority[row]
    if limit_tokens is None:
        limit_tokens = requests.limit[row] * g.block_tokens
    root = requests.root[row]
    salt = requests.salts[root]
    asked = checked(requests, task, reserve_tokens, None, limit_tokens, priority, None, salt)
    base = row * g.pages
    none = requests.n
    cells = [e for e in range(g.pages) if requests.table[base + e] != none]
    if len(cells) > asked[2]:
        raise BadArgument(
            "limit_tokens %d is less than the %d blocks the request holds" % (limit_tokens, len(cells))
        )
    state = requests.state
    slack = none - state[_BOUND] - state[_COMMON]
    if asked[1]:
        needed = max(asked[1], len(cells))
    else:
        needed = len([e for e in cells if requests.common[requests.table[base + e]] == 0])
    if needed > slack:
        refuse(requests, "no room for a fork: close requests or give more blocks", needed, slack)
    new = free_row(requests, 0, requests.max_requests, "max_requests")
    try:
        state[_BUSY] = 1
        claim(requests, new, root, asked, None)
        for e in cells:
            i = requests.table[base + e]
            requests.table[new * g.pages + e] = i
            requests.hold(new, i)
        child = Request(requests, new, 0, root)
        child.take_over(request)
        requests.open_rows[new] = _OPEN
        state[_OPENED] += 1
        state[_BUSY] = 0
        return child
    except BaseException:
        requests.open_rows[new] = _CLOSED
        state[_BUSY] = 1
        requests.mend()
        raise


def pin(requests, request, tokens):
    """As Requests.pin."""
    check_own(requests, request)
    if request.closed():
        raise BadHandle("the request is closed: pin before close")
    g = requests.geometry
    row = request.row
    base = row * g.pages
    t = g.block_tokens
    if tokens is None:
        count = request.length // t
    else:
        whole("tokens", tokens, 1, max(request.length, 1))
        count = tokens // t
    serial = requests.blocks.serial
    table = requests.table
    kept = []
    under = -1 - requests.root[row]
    for j in range(min(count, g.pages)):
        i = table[base + g.entry(j)]
        if i == requests.n or not serial[i] or requests.blocks.parent[i] != under:
            break  # left the window, or its tokens have no ids
        kept.append(i)
        under = i
    if count == 0 or len(kept) < count:
        raise BadArgument(
            "tokens %r: only the first %d, whole blocks with ids in the window, can be pinned"
            % (tokens, len(kept) * t)
        )
    if requests.pinned[row] + count > requests.pin_limit[row]:
        refuse(
            requests,
            "pin_tokens allows %d blocks" % requests.pin_limit[row],
            count,
            requests.pin_limit[row] - requests.pinned[row],
        )
    state = requests.state
    if state[_PINNED] + count > requests.pin_blocks:
        refuse(
            requests,
            "pin_blocks allows %d in all" % requests.pin_blocks,
            count,
            requests.pin_blocks - state[_PINNED],
        )
    slack = requests.n - state[_BOUND] - state[_COMMON]
    needed = len([i for i in kept if requests.common[i] == 0])
    if needed > slack:
        refuse(requests, "no room for a pin: close requests or give more blocks", needed, slack)
    new = free_row(requests, requests.max_requests, requests.rows, "max_pins")
    try:
        state[_BUSY] = 1
        requests.share[new] = requests.held[new] = 0
        requests.pin_row[new] = row
        requests.pin_gen[new] = requests.gen[row]
        requests.root[new] = requests.root[row]
        for j in range(count):
            table[new * g.pages + j] = kept[j]
            requests.hold(new, kept[j])
        requests.pinned[row] += count
        state[_PINNED] += count
        requests.open_rows[new] = _PIN
        state[_BUSY] = 0
        return new | (requests.gen[new] & 0x7FFFF) << 10
    except BaseException:
        requests.open_rows[new] = _CLOSED
        state[_BUSY] = 1
        requests.mend()
        raise
