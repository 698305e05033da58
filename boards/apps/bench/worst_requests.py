"""Requests in one memory, for worst.py: what each call costs by what it finds.

A round opens, forks, rolls back or closes one of up to four requests, or takes a step of it: append, attend,
commit. They have a layer of stories260K's shape, a window of 8 tokens, blocks of 4, and 10 blocks in all
where their windows could fill 12: there are free blocks and reusable ones, and at times neither. Most tokens
are the next ones of a common text, so that prefixes are found and blocks filled that the index has already.
"""

import gc
from array import array

import micropython
from bench.tally import Record, begin, end, fill16, following
from mpy_kv.paged import PagedGeometry, Requests
from micropython import const

# fields: blocks
_TOP = const(1)
_ENTRIES = const(7)
# end of fields

SHIFT = 9  # values up to 64
BLOCKS = 10
OPEN = 4
TEXT = 64  # tokens
PROMPT = 13  # tokens at most

# What an append finds. WITHIN: a block of its own. FREE, EVICT, at the beginning of a page: a free block or
# its own oldest one, which the index does not find; one to be forgotten first. OWN: neither, so that its
# oldest one leaves the index and is written in place. COPY: a block that is shared or in the index, with
# tokens still needed. AGAIN: a step that is begun anew. FIRST: of a request, whose arrays are checked, which
# allocates. What a commit finds. PLAIN: at most an id to note. REPLACED: also a block to give up. FULL: one
# to enter. LIKE: one whose like is in the index, which is held instead.
WITHIN, FREE, EVICT, OWN, COPY, AGAIN, FIRST = range(7)
ATTEND, PLAIN, REPLACED, FULL, LIKE, ROLLBACK, ANEW, FOUND, FORK, CLOSE = range(7, 17)


class Paged:
    operations = (
        "requests_append",
        "requests_append_page",
        "requests_append_page_evict",
        "requests_append_page_own",
        "requests_append_copy",
        "requests_append_again",
        "requests_append_first",
        "requests_attend",
        "requests_commit",
        "requests_commit_replaced",
        "requests_commit_full",
        "requests_commit_full_known",
        "requests_rollback",
        "requests_open",
        "requests_open_found",
        "requests_fork",
        "requests_close",
    )

    def __init__(self):
        self.records = [Record() for _ in self.operations]
        g = self.geometry = PagedGeometry(1, 8, 4, 8, window=8, sinks=0, block_tokens=4)
        self.requests = Requests(g, BLOCKS, OPEN, kv_shift=SHIFT)
        self.arrays = tuple([array("h", [0] * n) for n in (32, 32, 64, 64)])  # k, v, q, out
        self.open = [None] * OPEN
        self.state = 1
        self.text = array("H", [self.draw() & 1 for _ in range(TEXT)])
        self.prompts = [self.text[: PROMPT - n] for n in range(8)]

    def first(self):
        micropython.heap_lock()
        for _ in range(64):
            self.round()
        micropython.heap_unlock()

    @micropython.native
    def draw(self):
        """A number at random below 2^22."""
        self.state = following(self.state)
        return self.state >> 8

    @micropython.native
    def round(self):
        random = self.draw()
        i = random % OPEN
        request = self.open[i]
        act = random >> 8 & 63
        if request is None:
            self.begin(i, random >> 4)
        elif act < 2:
            self.finish(i)
        elif act < 6 and request.length > 3:
            back = act & 3
            go, stop = begin, end
            start = go()
            request.rollback(back)
            n = stop(start)
            self.records[ROLLBACK].note(n)
        else:
            self.step(i, request, act)

    @micropython.native
    def begin(self, i, random):
        """Open request i, or make it by a fork, and take its first step: what allocates."""
        go, stop = begin, end
        requests = self.requests
        records = self.records
        share = random & 4
        other = self.open[random % OPEN]
        if requests.available_blocks() < self.geometry.pages:
            share = 0
            other = None
        micropython.heap_unlock()
        gc.collect()  # where the heap has room is not what is asked here
        if random & 16 or other is None:
            prompt = self.prompts[random >> 5 & 7]
            start = go()
            request = requests.open(i, share, prompt)
            n = stop(start)
            records[FOUND if request.length else ANEW].note(n)
        else:
            start = go()
            request = other.fork()
            n = stop(start)
            records[FORK].note(n)
        self.open[i] = request
        if self.kind(request) < 0:
            self.finish(i)
        else:
            k, v, q, out = self.arrays
            start = go()
            request.append(0, k, v)
            n = stop(start)
            records[FIRST].note(n)
            request.append(0, v, k)  # the other way round, too
            request.attend(0, q, out)
            request.commit(self.text[request.length % TEXT])
        micropython.heap_lock()

    @micropython.native
    def finish(self, i):
        request = self.open[i]
        go, stop = begin, end
        start = go()
        request.close()
        n = stop(start)
        self.records[CLOSE].note(n)
        self.open[i] = None

    @micropython.native
    def step(self, i, request, random):
        go, stop = begin, end
        kind = self.kind(request)
        if kind < 0:
            self.finish(i)
            return
        requests = self.requests
        records = self.records
        k, v, q, out = self.arrays
        state = fill16(k, 32, self.state)
        state = fill16(v, 32, state)
        fill16(q, 64, state)

        start = go()
        request.append(0, k, v)
        n = stop(start)
        records[kind].note(n)
        if random & 7 == 1:
            start = go()
            request.append(0, v, k)
            n = stop(start)
            records[AGAIN].note(n)
        start = go()
        request.attend(0, q, out)
        n = stop(start)
        records[ATTEND].note(n)

        token = self.text[request.length % TEXT]
        if not self.draw() & 7:
            token = 2
        cell = self.cell(request)
        block = requests._ledger.table[cell]
        entries = requests._ledger.blocks.meta[_ENTRIES]
        kind = PLAIN if requests._ledger.undo[cell] == requests._ledger.n + 1 else REPLACED
        start = go()
        request.commit(token)
        n = stop(start)
        if requests._ledger.blocks.meta[_ENTRIES] > entries:
            kind = FULL
        elif requests._ledger.table[cell] != block:
            kind = LIKE
        records[kind].note(n)

    @micropython.native
    def cell(self, request):
        """Where the tables have the page of its next token."""
        g = self.geometry
        return request.row * g.pages + g.entry(request.length // g.block_tokens)

    @micropython.native
    def kind(self, request):
        """What its next append will find; -1: no room for it."""
        requests = self.requests
        blocks = requests._ledger.blocks
        slot = request.length % self.geometry.block_tokens
        i = requests._ledger.table[self.cell(request)]
        if i != requests._ledger.n and blocks.ref[i] == 1 and blocks.serial[i] == 0:
            return WITHIN if slot else FREE
        ledger = requests._ledger
        if ledger.available_blocks() < 1 and ledger.held[request.row] >= ledger.share[request.row]:
            if i != requests._ledger.n and blocks.ref[i] == 1:
                return OWN
            return -1
        if slot:
            return COPY
        return EVICT if blocks.meta[_TOP] == requests._ledger.n else FREE

    def check(self):
        return self.requests.check()
