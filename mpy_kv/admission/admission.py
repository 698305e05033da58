"""Admission: which requests may run now, so that those that run find the blocks they were promised.

A request is a ticket. It asks for blocks and waits, is admitted and runs, may grow, may be preempted (it then
waits again, its blocks given back), and ends by finish or cancel. Only numbers are kept here: after step() or
growth() the caller gives back the blocks of the tickets in `preempted`, then starts those in `admitted`.

Rules.
1. What can never fit is refused at once: a request whose worst case, prompt + max_tokens tokens, needs more
   blocks than there are, or than one request may have. So each one that is taken can run alone to its end.
2. Higher priority first; within one the earlier arrival first. The first of a priority that does not fit
   holds up those behind it. Lower priorities may take what it cannot use: it can be taken back from them.
3. Who does not fit preempts running tickets of strictly lower priority: lowest priority first, newest
   admitted first, until their blocks suffice, sparing those that turn out not to be needed. If all of them
   do not suffice, none is touched. A preempted ticket waits at the place of its arrival, before later ones.
4. A running ticket that grows goes by the same rules, and if they give it nothing it is preempted itself: a
   running ticket never waits, so no two wait for each other.

Nobody starves. No later ticket of its priority overtakes a waiting one, and what lower priorities hold can
be taken back: it waits for running tickets of its own or a higher priority only. Each of those ends, or gives
way by rule 4; and it gives way finitely often, as each time raises what it asks for next by a block or more,
up to its worst case. So while higher priorities bring finitely many tickets, everyone gets in; that those who
bring them without end go first for ever is what a priority means.

A step costs O(tickets * priorities) at most, every other call O(tickets); nothing is tried twice within one.
Nothing is allocated after construction but by refusals, stats and check. Not for two threads.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..errors import BadArgument
from ..eviction.linked_list import touch
from ..transient import load_module

# fields: admission
_RESERVED = const(0)
_HIGH = const(1)
_WAITING = const(2)
_RUNNING = const(3)
_ARRIVAL = const(4)
_SUBMITTED = const(5)
_REFUSED = const(6)
_ADMITTED = const(7)
_PREEMPTED = const(8)
_FINISHED = const(9)
_CANCELLED = const(10)
_PLACES = const(11)
# end of fields

MOST_TICKETS = 65000
MOST_TOKENS = 1 << 28
MOST_TASK = (1 << 29) - 1

# State of a ticket.
WAITING = 0
RUNNING = 1

_WRAP = const(0x3FFFFFFF)

_serial = 0


@micropython.native
def place(nxt, arrival, head, i):
    """The node before which ticket i belongs by its arrival, in the waiting ring of that head.

    Walks past earlier arrivals only, which are those that were preempted too.
    """
    at = nxt[head]
    while at != head and (arrival[at] - arrival[i]) & 0x3FFFFFFF > 0x1FFFFFFF:
        at = nxt[at]
    return at


@micropython.native
def choose(prv, blocks, chosen, first, level, missing):
    """Tickets to preempt for one of `level` that misses so many blocks: their number, into `chosen`.

    0 where all lower levels together do not have them. first: head of level 0's running ring. No ticket
    chosen could be left out: the others' blocks alone would not suffice.
    """
    n = 0
    head = first
    while head < first + level and missing > 0:
        at = prv[head]
        while at != head and missing > 0:
            chosen[n] = at
            n += 1
            missing -= blocks[at]
            at = prv[at]
        head += 1
    if missing > 0:
        return 0
    spare = 0 - missing
    # The last one is needed: without it blocks were missing. Of the rest spare the most important first.
    k = n - 2
    while k >= 0:
        at = chosen[k]
        if blocks[at] <= spare:
            spare -= blocks[at]
            chosen[k] = -1
        k -= 1
    kept = 0
    k = 0
    while k < n:
        at = chosen[k]
        if at >= 0:
            chosen[kept] = at
            kept += 1
        k += 1
    return kept


class Admission:
    """A queue of at most `tickets` requests for `total_blocks` blocks of `block_tokens` tokens.

    levels: priorities 0 .. levels - 1, the highest goes first (1..8). limit_blocks: most that one request may
    have (default: all). reserve: what a request asks for beyond its prompt when it comes:
    "maximum" its max_tokens, "nothing" one token, a LengthPredictor what that says, which learns at finish.

    admitted, preempted: array('i') of tickets; the first n_admitted and n_preempted are those of the last
    step or growth.
    """

    def __init__(
        self, total_blocks, block_tokens, tickets=16, levels=4, limit_blocks=None, reserve="maximum"
    ):
        global _serial
        _whole("total_blocks", total_blocks, 1, 1 << 28)
        _whole("block_tokens", block_tokens, 1, 1 << 16)
        _whole("tickets", tickets, 1, MOST_TICKETS)
        _whole("levels", levels, 1, 8)
        if limit_blocks is None:
            limit_blocks = total_blocks
        _whole("limit_blocks", limit_blocks, 1, total_blocks)
        if reserve not in ("maximum", "nothing") and not hasattr(reserve, "predict"):
            raise BadArgument(
                "reserve must be 'maximum', 'nothing' or a LengthPredictor, got %r" % (reserve,)
            )
        self.total_blocks = total_blocks
        self.block_tokens = block_tokens
        self.tickets = tickets
        self.levels = levels
        self.limit_blocks = limit_blocks
        self.predictor = None if isinstance(reserve, str) else reserve
        self._at_once = reserve == "maximum"
        # A ticket is generation | tag of this queue | index: as the handles of a pool (mpy_kv/pools).
        bits = 1
        while 1 << bits < tickets:
            bits += 1
        self._bits = bits
        self._tag = (_serial & 7) << bits
        _serial += 1
        self._generations = (1 << min(16, 26 - bits)) - 1
        # Each ticket is in one ring: free, waiting of its level, running of its level. A ring's head is a
        # node behind the tickets: [tickets][waiting by level][running by level][free].
        self._free = tickets + 2 * levels
        self._nxt = array("H", range(self._free + 1))
        self._prv = array("H", range(self._free + 1))
        self._word = array("i", [-1 - (self._tag | i) for i in range(tickets)])
        self._running = bytearray(tickets)
        self._level = bytearray(tickets)
        self._task, self._arrival, self._prompt, self._output, self._most, self._blocks = [
            array("i", bytes(4 * tickets)) for _ in range(6)
        ]
        # _prompt, _output: tokens asked for. _most: blocks of the worst case. _blocks: reserved or asked for.
        self._chosen = array("i", bytes(4 * tickets))
        self.admitted = array("i", bytes(4 * tickets))
        self.preempted = array("i", bytes(4 * tickets))
        self.n_admitted = 0
        self.n_preempted = 0
        self._meta = array("i", [0] * _PLACES)
        for i in range(tickets):
            touch(self._nxt, self._prv, self._free, i)

    def memory_bytes(self):
        """Bytes of all its arrays, without the predictor's."""
        return 46 * self.tickets + 4 * (2 * self.levels + 1) + 44

    @micropython.native
    def submit(self, task, prompt_tokens, max_tokens, priority=0):
        """A new ticket, which waits. task: 0 .. 2^29 - 1, whose answers the predictor compares.

        NeverFits: rule 1; QueueFull: all tickets are out, whatever their priorities. Nothing changes then but
        `refused` in stats().
        """
        if (
            type(task) is not int
            or type(prompt_tokens) is not int
            or type(max_tokens) is not int
            or type(priority) is not int
            or not 0 <= task <= MOST_TASK
            or not 1 <= prompt_tokens <= MOST_TOKENS
            or not 1 <= max_tokens <= MOST_TOKENS
            or not 0 <= priority < self.levels
        ):
            load_module("mpy_kv.admission.inspect").refuse_request(
                task, prompt_tokens, max_tokens, priority, self.levels
            )
        size = self.block_tokens
        meta = self._meta
        most = (prompt_tokens + max_tokens + size - 1) // size
        i = self._nxt[self._free]
        if most > self.limit_blocks or i == self._free:
            meta[_REFUSED] = (meta[_REFUSED] + 1) & _WRAP
            load_module("mpy_kv.admission.inspect").refuse_room(self, most)
        output = 1
        if self._at_once:
            output = max_tokens
        elif self.predictor is not None:
            output = self.predictor.predict(task, max_tokens)
        self._task[i] = task
        self._arrival[i] = meta[_ARRIVAL]
        self._prompt[i] = prompt_tokens
        self._output[i] = max_tokens
        self._most[i] = most
        self._blocks[i] = (prompt_tokens + output + size - 1) // size
        self._level[i] = priority
        self._running[i] = 0
        meta[_ARRIVAL] = (meta[_ARRIVAL] + 1) & _WRAP
        meta[_SUBMITTED] = (meta[_SUBMITTED] + 1) & _WRAP
        meta[_WAITING] += 1
        ticket = -1 - self._word[i]
        self._word[i] = ticket
        touch(self._nxt, self._prv, self.tickets + priority, i)
        return ticket

    @micropython.native
    def step(self, available_blocks=None):
        """Admit, and preempt for it, all that the rules allow; returns n_admitted.

        available_blocks: how many of the blocks that no ticket has reserved can be had now (default: all).
        """
        room = self._room(available_blocks)
        self.n_admitted = 0
        self.n_preempted = 0
        level = self.levels - 1
        while level >= 0:
            head = self.tickets + level
            i = self._nxt[head]
            while i != head:
                missing = self._blocks[i] - room
                if missing > 0:
                    room += self._preempt_for(level, missing)
                    if self._blocks[i] > room:
                        break
                room -= self._blocks[i]
                self._admit(i)
                i = self._nxt[head]
            level -= 1
        return self.n_admitted

    @micropython.native
    def growth(self, ticket, blocks, available_blocks=None):
        """A running ticket needs that many blocks more. True: it has them. False: it is preempted itself,
        and waits for what it had and these (rule 4).

        NeverFits: more than its worst case. available_blocks: as in step.
        """
        i = self._index(ticket)
        if not self._running[i]:
            load_module("mpy_kv.admission.inspect").refuse_state(ticket, "waits: only a running one grows")
        if type(blocks) is not int or not 1 <= blocks <= self._most[i] - self._blocks[i]:
            load_module("mpy_kv.admission.inspect").refuse_growth(self, blocks, self._blocks[i],
            self._most[i])
        room = self._room(available_blocks)
        self.n_admitted = 0
        self.n_preempted = 0
        if blocks > room:
            room += self._preempt_for(self._level[i], blocks - room)
        if blocks > room:
            self._preempt(i)
            self._blocks[i] += blocks
            return False
        self._blocks[i] += blocks
        self._reserve(blocks)
        return True

    @micropython.native
    def wanted(self, ticket, tokens):
        """Blocks that a growth should ask for when `tokens` tokens of the answer are there: by the rule of
        `reserve`, at least 1; 0 when the ticket has its worst case already.
        """
        i = self._index(ticket)
        left = self._most[i] - self._blocks[i]
        _whole("tokens", tokens, 0, self._output[i])
        output = tokens + 1
        if self._at_once:
            output = self._output[i]
        elif self.predictor is not None and tokens < self._output[i]:
            output = self.predictor.predict(self._task[i], self._output[i], tokens)
        size = self.block_tokens
        more = (self._prompt[i] + output + size - 1) // size - self._blocks[i]
        return min(left, max(1, more))

    def finish(self, ticket, tokens=None):
        """A running ticket's answer has ended; its blocks are free. tokens: its length, to learn from."""
        i = self._index(ticket)
        if not self._running[i]:
            load_module("mpy_kv.admission.inspect").refuse_state(ticket, "waits: cancel it")
        if tokens is not None:
            _whole("tokens", tokens, 0, self._output[i])
            if self.predictor is not None:
                self.predictor.observe(self._task[i], tokens)
        self._end(i, _FINISHED)

    def cancel(self, ticket):
        """Give a ticket up, waiting or running: its place and its blocks are free."""
        self._end(self._index(ticket), _CANCELLED)

    def state(self, ticket):
        """WAITING or RUNNING; BadHandle when it has ended."""
        return self._running[self._index(ticket)]

    def blocks(self, ticket):
        """Blocks reserved for a running ticket; of a waiting one, those it asks for."""
        return self._blocks[self._index(ticket)]

    def slot(self, ticket):
        """Index of a ticket, 0 .. tickets - 1, no two alike at a time: for tables beside this one."""
        return self._index(ticket)

    def stats(self):
        """Counts; a new dict (allocates)."""
        return load_module("mpy_kv.admission.inspect").stats(self)

    def check(self):
        """Number of broken invariants (0 = sound). Allocates."""
        return load_module("mpy_kv.admission.inspect").check(self)

    def _index(self, ticket):
        if type(ticket) is int and ticket >= 0:
            i = ticket & ((1 << self._bits) - 1)
            if i < self.tickets and self._word[i] == ticket:
                return i
        load_module("mpy_kv.admission.inspect").refuse_ticket(self, ticket)

    def _room(self, available_blocks):
        room = self.total_blocks - self._meta[_RESERVED]
        if available_blocks is None:
            return room
        _whole("available_blocks", available_blocks, 0, MOST_TOKENS)
        return min(room, available_blocks)

    def _reserve(self, blocks):
        self._meta[_RESERVED] += blocks
        if self._meta[_RESERVED] > self._meta[_HIGH]:
            self._meta[_HIGH] = self._meta[_RESERVED]

    def _admit(self, i):
        meta = self._meta
        touch(self._nxt, self._prv, self.tickets + self.levels + self._level[i], i)
        self._running[i] = 1
        self._reserve(self._blocks[i])
        meta[_WAITING] -= 1
        meta[_RUNNING] += 1
        meta[_ADMITTED] = (meta[_ADMITTED] + 1) & _WRAP
        self.admitted[self.n_admitted] = self._word[i]
        self.n_admitted += 1

    @micropython.native
    def _preempt_for(self, level, missing):
        """Take that many blocks from lower levels; what was gained, 0 if they do not have them."""
        n = choose(self._prv, self._blocks, self._chosen, self.tickets + self.levels, level, missing)
        gained = 0
        while n > 0:
            n -= 1
            i = self._chosen[n]
            gained += self._blocks[i]
            self._preempt(i)
        return gained

    def _preempt(self, i):
        # One call a line: a call within a call would need a larger frame, which is allocated.
        before = self.tickets + self._level[i]
        before = place(self._nxt, self._arrival, before, i)
        touch(self._nxt, self._prv, before, i)
        meta = self._meta
        self._running[i] = 0
        meta[_RESERVED] -= self._blocks[i]
        meta[_RUNNING] -= 1
        meta[_WAITING] += 1
        meta[_PREEMPTED] = (meta[_PREEMPTED] + 1) & _WRAP
        self.preempted[self.n_preempted] = self._word[i]
        self.n_preempted += 1

    def _end(self, i, why):
        meta = self._meta
        if self._running[i]:
            meta[_RESERVED] -= self._blocks[i]
            meta[_RUNNING] -= 1
        else:
            meta[_WAITING] -= 1
        meta[why] = (meta[why] + 1) & _WRAP
        generation = (self._word[i] >> self._bits + 3) + 1 & self._generations
        self._word[i] = -1 - (generation << self._bits + 3 | self._tag | i)
        touch(self._nxt, self._prv, self._free, i)


def _whole(name, value, least, most):
    if type(value) is not int or not least <= value <= most:
        raise BadArgument("%s must be %d..%d, got %r" % (name, least, most, value))
