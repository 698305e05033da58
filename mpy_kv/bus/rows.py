"""Rows: the tokens of a KV cache as pushes: of each layer one run a plane, however many tokens.

    pack = Rows(q, cache, 0, q.at(1), 64)          # from the cache, region 0, into a record of 64 tokens
    for layer in range(layers):
        pack.push(layer, first, n)                 # positions first .. first + n - 1 to slot 0 .. n - 1
        q.start(backend)                           # a chain a layer

A plane is what one head's codes or one group's scales take, slot by slot (snapshot/planes.py). Where the ring
ends between two of the tokens each plane is two runs. push() allocates nothing.
"""

from ..transient import load_module
from .kernels import push_slots


class Rows:
    """cache: a KVCache or a MixedCache, whose buffer begins at address `at` of the queue. to: address of a
    record for `tokens` tokens, `bytes` long, with the planes one behind another, each on a word; None: of
    a buffer that lies as the cache's. back: copy the other way, into the cache. BadArgument for other
    caches, and for a queue that has no room for a layer's tokens where the ring ends between them.
    """

    def __init__(self, queue, cache, at, to, tokens=None, back=False):
        make = load_module("mpy_kv.bus.make_rows")
        self.push = self.push  # bound once, and what a push asks for first
        self.words_at = queue.words_at
        self.plan, self.bytes = make.plan(queue, cache, at, to, tokens, back)
        self.plan_at = make.address(self.plan)
        self.words = queue.words
        self.queue = queue
        self.tokens = tokens  # of a record
        self.back = back

    # push(layer, first, n): n tokens of a layer from position `first` on. True, or False where the queue is
    # full, unchanged. BadArgument where cache or record have no such tokens.
    push = push_slots

    def move(self, to, slot=0):
        """From now on the record is at that address, and what is pushed begins with that slot of it."""
        load_module("mpy_kv.bus.make_rows").move(self, to, slot)

    def refuse(self, layer, first, n):
        """BadArgument that tells why."""
        load_module("mpy_kv.bus.make_rows").refuse(self, layer, first, n)
