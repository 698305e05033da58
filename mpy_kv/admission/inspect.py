"""What an admission queue says: counts, broken invariants, refusals. Transient (mpy_kv/transient.py); changes
nothing.

`queue`: an Admission, whose arrays are described in admission.py.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, BadHandle, NeverFits, QueueFull, StepError
from .admission import MOST_TASK, MOST_TOKENS

# fields: admission
_RESERVED = const(0)
_HIGH = const(1)
_WAITING = const(2)
_RUNNING = const(3)
_SUBMITTED = const(5)
_REFUSED = const(6)
_ADMITTED = const(7)
_PREEMPTED = const(8)
_FINISHED = const(9)
_CANCELLED = const(10)
# end of fields


def stats(queue):
    """As Admission.stats."""
    meta = queue._meta
    return {
        "total_blocks": queue.total_blocks,
        "reserved_blocks": meta[_RESERVED],
        "high_water_blocks": meta[_HIGH],
        "tickets": queue.tickets,
        "waiting": meta[_WAITING],
        "running": meta[_RUNNING],
        "submitted": meta[_SUBMITTED],
        "refused": meta[_REFUSED],
        "admitted": meta[_ADMITTED],
        "preempted": meta[_PREEMPTED],
        "finished": meta[_FINISHED],
        "cancelled": meta[_CANCELLED],
    }


def check(queue):
    """As Admission.check."""
    bad = 0
    meta = queue._meta
    seen = bytearray(queue.tickets)
    waiting = running = free = reserved = 0
    for head in range(queue.tickets, queue._free + 1):
        ring = _ring(queue, head)
        if ring is None:
            return bad + 1
        last = None
        for i in ring:
            bad += seen[i]  # in two rings
            seen[i] = 1
            if head == queue._free:
                free += 1
                bad += queue._word[i] >= 0
                continue
            level = (head - queue.tickets) % queue.levels
            runs = head - queue.tickets >= queue.levels
            bad += queue._word[i] < 0 or queue._level[i] != level or queue._running[i] != runs
            bad += not 1 <= queue._blocks[i] <= queue._most[i] <= queue.limit_blocks
            if runs:
                running += 1
                reserved += queue._blocks[i]
            else:
                waiting += 1
                if last is not None and (queue._arrival[i] - last) & 0x3FFFFFFF > 0x1FFFFFFF:
                    bad += 1  # before an earlier one
                last = queue._arrival[i]
    for i in range(queue.tickets):
        bad += not seen[i]  # lost
        word = queue._word[i]
        ticket = word if word >= 0 else -1 - word
        bad += ticket & ((8 << queue._bits) - 1) != queue._tag | i
    bad += (waiting, running) != (meta[_WAITING], meta[_RUNNING])
    bad += waiting + running + free != queue.tickets
    bad += reserved != meta[_RESERVED] or reserved > meta[_HIGH] or meta[_HIGH] > queue.total_blocks
    ended = meta[_FINISHED] + meta[_CANCELLED]
    bad += (meta[_SUBMITTED] - ended) & 0x3FFFFFFF != waiting + running
    bad += (meta[_ADMITTED] - meta[_PREEMPTED]) & 0x3FFFFFFF < running
    return bad


def _ring(queue, head):
    """The nodes of a ring without its head; None if its links are broken."""
    ring = []
    before, at = head, queue._nxt[head]
    while at != head:
        if at >= queue.tickets or queue._prv[at] != before:
            return None
        ring.append(at)
        before, at = at, queue._nxt[at]
    return ring if queue._prv[head] == before else None


def refuse_request(task, prompt_tokens, max_tokens, priority, levels):
    """BadArgument for the first argument that is wrong."""
    for name, value, least, most in (
        ("task", task, 0, MOST_TASK),
        ("prompt_tokens", prompt_tokens, 1, MOST_TOKENS),
        ("max_tokens", max_tokens, 1, MOST_TOKENS),
        ("priority", priority, 0, levels - 1),
    ):
        if type(value) is not int or not least <= value <= most:
            break  # the last one, if none before it is wrong
    raise BadArgument("%s must be %d..%d, got %r" % (name, least, most, value))


def refuse_room(queue, most):
    """NeverFits for a worst case above the limit, else QueueFull."""
    free = queue.total_blocks - queue._meta[_RESERVED]
    if most > queue.limit_blocks:
        raise NeverFits(
            "prompt_tokens + max_tokens never fit limit_blocks %d of %d blocks of %d tokens"
            % (queue.limit_blocks, queue.total_blocks, queue.block_tokens),
            most,
            free,
            queue.limit_blocks,
            unit="blocks",
        )
    raise QueueFull("all %d tickets are out: try again later" % queue.tickets, 1, 0, unit="tickets")


def refuse_growth(queue, blocks, held, most):
    if type(blocks) is not int or blocks < 1:
        raise BadArgument("blocks must be at least 1, got %r" % (blocks,))
    raise NeverFits(
        "a growth by %d blocks goes beyond prompt_tokens + max_tokens of the ticket, %d blocks"
        % (blocks, most),
        held + blocks,
        queue.total_blocks - queue._meta[_RESERVED],
        most,
        unit="blocks",
    )


def refuse_state(ticket, why):
    raise StepError("ticket %d %s" % (ticket, why))


def refuse_ticket(queue, ticket):
    if type(ticket) is int and ticket >= 0:
        i = ticket & ((1 << queue._bits) - 1)
        if ticket < 1 << 29 and i < queue.tickets and ticket & (7 << queue._bits) == queue._tag:
            raise BadHandle("ticket %d is stale: it was finished or cancelled" % ticket)
    raise BadHandle("ticket %r is not of this queue of %d tickets" % (ticket, queue.tickets))
