"""Bytes that go over the bus, counted by the kernels' own code: what each stage reads and writes, by kind.

For measuring: slow, and it allocates. A program that does not ask loads none of it and runs the very code
that it runs without. One that asks has its kernels replaced by the plain twins, which make the same bits,
over arrays that count:

    book = Book()
    book.count_cache(cache)
    ...                         # append, attend, commit: as ever
    book.stop()                 # the kernels are those before
    book.stages["qk"].kv_read

A byte that a kernel reads counts once for each call, unless that call wrote it; one that it writes counts
once. Parameters of kernels and tables of constants do not count: a core has these at hand.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

import sys
from array import array

from ..errors import BadArgument
from ..transient import load_module
from . import of

# fields: attend
_SCORES = const(10)
_QUERY_BYTES = const(33)
_HEADS = const(37)
_QUERIES = const(44)
# end of fields

# Of each kernel: what its time is spent for, and what its arguments are, in order: b a cache's buffer, w
# weights, v a vector that is given or made; any other is not counted. Attention's are those of all element
# types whose tokens lie in rows; behind them the kernels of a model (boards/apps/stories/kernels).
KERNELS = {
    "encode": ("append", "bvv"),
    "query": ("qk", "bvv"),
    "scales": (None, "bb"),  # of K or of V, as its third argument says
    "qk": ("qk", "bb"),
    "score": ("qk", "bb"),
    "weights": ("av", "bb"),
    "av": ("av", "bb"),
    "emit": ("av", "b-v"),
    "embed": ("model", "wv"),
    "norm": ("model", "wv"),
    "quant": ("model", "v"),
    "matvec": ("model", "wv"),
    "rope_table": ("model", "-v"),
    "rotate": ("model", "vvv"),
    "narrow": ("model", "vv"),
    "widen": ("model", "vv"),
    "swiglu": ("model", "v"),
    "add": ("model", "v"),
    "argmax": ("sample", "v"),
    "softmax": ("sample", "v"),
    "pick": ("sample", "v"),
}
STAGES = ("append", "qk", "av", "model", "sample", "moves")

# Who moves blocks, if it is loaded: a request that makes a page its own, pools that compact or grow a block.
_MOVE = "move_down"
MOVERS = ("mpy_kv.paged.request", "mpy_kv.pools.region", "mpy_kv.pools.slab", "mpy_kv.pools.buddy")


class Bytes:
    """Of one stage. Vectors are what is neither of the cache nor a weight: what goes into a kernel and what
    comes out of it, scores and sums among them."""

    def __init__(self):
        self.kv_read = self.kv_write = self.weights = self.io_read = self.io_write = self.calls = 0


class Watched:
    """An array that counts the elements read and written since begin(): in [first, last), where vectors lie,
    and elsewhere, where keys and values do."""

    def __init__(self, data, size, first, last, weights):
        self.data = data
        self.size = size  # of an element, in bytes
        self.first = first
        self.last = last
        self.weights = weights
        self.call = 0
        self.read_in = array("i", bytes(4 * len(data)))  # the last call that read an element
        self.written_in = None if weights else array("i", bytes(4 * len(data)))

    def begin(self, call):
        self.call = call
        self.inside = self.outside = self.inside_written = self.outside_written = 0

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(i.start, i.stop)]
        call = self.call
        if self.read_in[i] != call:
            self.read_in[i] = call
            if self.weights or self.written_in[i] != call:
                if self.first <= i < self.last:
                    self.inside += 1
                else:
                    self.outside += 1
        return self.data[i]

    def __setitem__(self, i, value):
        if isinstance(i, slice):
            for k, x in enumerate(value):
                self[i.start + k] = x
            return
        if self.written_in[i] != self.call:
            self.written_in[i] = self.call
            if self.first <= i < self.last:
                self.inside_written += 1
            else:
                self.outside_written += 1
        self.data[i] = value

    def add_to(self, bytes):
        """What was counted since begin(), by kind."""
        size = self.size
        if self.weights:
            bytes.weights += size * self.inside
            return
        bytes.io_read += size * self.inside
        bytes.io_write += size * self.inside_written
        bytes.kv_read += size * self.outside
        bytes.kv_write += size * self.outside_written


class Counting:
    """A kernel set like `kernels`, whose calls `book` counts."""

    caller = None  # they are called by name

    def __init__(self, book, kernels, names):
        self.name = kernels.name
        self.codec = kernels.codec
        for name in names:
            if name in KERNELS:
                setattr(self, name, _counted(book, name, getattr(kernels, name)))
            else:
                setattr(self, name, getattr(kernels, name))


def _counted(book, name, kernel):
    stage, roles = KERNELS[name]

    def call(*given):
        return book.call(kernel, stage or ("av" if given[2] else "qk"), roles, given)

    return call


class Book:
    """Counts by stage in `stages`."""

    def __init__(self):
        self.stages = {stage: Bytes() for stage in STAGES}
        self._calls = 0
        self._watched = []
        self._replaced = []
        self._moved = []

    def clear(self):
        """Begin anew."""
        for bytes in self.stages.values():
            bytes.__init__()

    def count_cache(self, cache):
        """Count what its kernels do from now on, but for those of a token policy. Requests are
        counted each by itself. BadArgument for int4, whose tokens lie in sealed blocks."""
        found = []
        for one in cache.attention:
            if one.form:
                raise BadArgument("int4's sealed blocks are not counted: take another element type")
            if one not in found:
                found.append(one)
        for one in found:
            # What all layers share, from scores to queries, is no part of the cache.
            a = one.a
            self._watch(one.buffer, 1, a[_SCORES], a[_QUERIES] + a[_HEADS] * a[_QUERY_BYTES], False)
            family = of(one.kernels.codec)
            calls = load_module("mpy_kv.kernels.calls")
            self._replaced.append((one, one.kernels))
            calls.use(one, Counting(self, family.plain(), family.names))

    def count_moves(self):
        """Count the blocks that are copied or moved from now on, by what is loaded of MOVERS."""
        for name in MOVERS:
            module = sys.modules.get(name)
            if module:
                move_down = getattr(module, _MOVE)
                self._moved.append((module, move_down))
                setattr(module, _MOVE, self._moving(move_down))

    def _moving(self, move_down):
        bytes = self.stages["moves"]

        def moved(to, at, words, buffer):
            bytes.calls += 1
            bytes.kv_read += 4 * words
            bytes.kv_write += 4 * words
            move_down(to, at, words, buffer)

        return moved

    def kernels(self, family):
        """A set of the model's kernels that count: what a Family has as its plain twin."""
        return Counting(self, family.plain(), family.names)

    def stop(self):
        """Give each cache the kernels that it had, and moves their function."""
        while self._moved:
            module, move_down = self._moved.pop()
            setattr(module, _MOVE, move_down)
        while self._replaced:
            one, kernels = self._replaced.pop()
            load_module("mpy_kv.kernels.calls").use(one, kernels)
        self._watched = []

    def call(self, kernel, stage, roles, given):
        """kernel(*given), counted."""
        self._calls += 1
        arguments = list(given)
        used = []
        for at, role in enumerate(roles):
            if role != "-":
                watched = self._find(given[at], role)
                if watched not in used:
                    watched.begin(self._calls)
                    used.append(watched)
                arguments[at] = watched
        done = kernel(*arguments)
        bytes = self.stages[stage]
        bytes.calls += 1
        for watched in used:
            watched.add_to(bytes)
        return done

    def _find(self, data, role):
        for watched in self._watched:
            if watched.data is data:
                return watched
        if role == "w":
            return self._watch(data, 1, 0, len(data), True)
        return self._watch(data, _element(data), 0, len(data), False)

    def _watch(self, data, size, first, last, weights):
        watched = Watched(data, size, first, last, weights)
        self._watched.append(watched)
        return watched


def _element(data):
    """Bytes of an element."""
    return len(bytes(memoryview(data)[:1]))
