"""Queue: copies that are put together to few runs, and done chain by chain.

    from mpy_kv.bus import copying, queue
    regions = (cache.buffer, bytearray(4096))
    q = queue.Queue(32, regions)                  # of a DMA channel: queue.Queue(32, regions, backend.ctrl)
    backend = copying.Copying()                   # or rp2_dma.best()
    q.push(0, q.at(1), 64)                        # False: it is full, nothing has changed
    q.start(backend)                              # False: the chain before still runs
    while not q.done(): pass

An address is an offset in the regions, which lie one behind another, the first from 0 on. What is pushed is
done in the order of the pushes, with the result of copies one by one. A run that goes on where the last one
ends (or, on both sides, ends where that begins) is joined with it, unless a border of a region lies between
or it makes the last one slower: transfers are of 4 bytes where both sides and the length allow, else of 2 or
1. One chain runs while the next is filled. Regions may not overlap in memory, and stay where they are.

Memory: 32 bytes a descriptor (16, twice), some 200 more. Nothing allocates but the constructor, at(), shape()
and check().
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..transient import load_module
from .kernels import close as _close
from .kernels import push, push_rows

# fields: dma
_FILLED = const(1)
_OTHER = const(3)
_RUN_BYTES = const(6)
_JOINED = const(10)
# end of fields


class Queue:
    """descriptors: most runs of a chain. regions: buffers of bytes, also read-only ones. ctrl: what a
    channel's CTRL is for transfers of 1, 2 and 4 bytes, in an array of words; by default only the size in its
    place. spare: transfers that joining two runs may cost, which is what a descriptor takes beside its own.
    """

    def __init__(self, descriptors, regions, ctrl=None, spare=16):
        make = load_module("mpy_kv.bus.make_queue")
        # Bound once: a look-up in the class takes a quarter of a push. What a push asks for comes first.
        self.push = self.push
        self.push_rows = self.push_rows
        self.regions = views = make.views(regions)
        self.words = words = make.words(descriptors, views, ctrl, spare)
        self.words_at = make.address(words)
        self.how = make.how()
        self.started = 0  # chains, modulo 2^30
        self.passed = 0  # of them
        self.descriptors = 0  # started, modulo 2^30
        self._backend = None  # of the chain that runs
        self._chain = 0  # its descriptors

    def at(self, region):
        """Address of a region's first byte."""
        return sum([len(view) for view in self.regions[:region]])

    # push(read, write, nbytes): copy so many bytes. True, or False where the queue is full, unchanged.
    # BadArgument where a side is in no region or may not be written, or bytes would be read that it wrote.
    push = push

    # push_rows(read, write, rows): the first of so many rows of the last shape(). All or none, as push().
    push_rows = push_rows

    def shape(self, nbytes, read_step, write_step):
        """Of the rows that are pushed next: bytes of each, and from row to row on either side."""
        load_module("mpy_kv.bus.make_queue").shape(self.how, nbytes, read_step, write_step)

    def refuse(self, read, write, nbytes):
        """BadArgument that tells why."""
        load_module("mpy_kv.bus.make_queue").refuse(self, read, write, nbytes)

    @micropython.native
    def start(self, backend):
        """Have it done by the backend. False while the chain before is not done; nothing has changed then."""
        if self._backend is not None and not self.done():
            return False
        n = _close(self.words)
        if n == 0:
            return True
        self.started = self.started + 1 & 0x3FFFFFFF
        self.descriptors = self.descriptors + n & 0x3FFFFFFF
        self._chain = n
        self.redo(backend)
        return True

    @micropython.native
    def redo(self, backend):
        """Have the chain that was started last done once more, from its begin."""
        self._backend = backend
        try:
            backend.begin(self, self.words[_OTHER], self._chain)
        except Exception as error:
            self.give_up()
            raise error

    @micropython.native
    def done(self):
        """Whether the chain that was started is done, or none was. What the backend raises ends the chain: of
        it any part may be done; what was pushed since is there."""
        backend = self._backend
        if backend is None:
            return True
        try:
            if not backend.done():
                return False
        except Exception as error:
            self.give_up()
            raise error
        self._backend = None
        self.passed = self.started
        return True

    def give_up(self):
        """End the chain that runs, whatever of it is done."""
        backend = self._backend
        self._backend = None
        self.passed = self.started
        if backend is not None:
            backend.stop()

    def clear(self):
        """Forget what is pushed and not started; how many descriptors that was. What runs goes on."""
        n = self.words[_FILLED]
        self.words[_FILLED] = self.words[_RUN_BYTES] = 0
        return n

    def waiting(self):
        """Descriptors pushed and not started."""
        return self.words[_FILLED]

    def pushes(self):
        """Pushes accepted, less what clear() forgot; of push_rows() each row, of Rows each run."""
        return self.words[_JOINED] + self.descriptors + self.words[_FILLED]

    def check(self):
        """How many invariants are broken. Allocates."""
        return load_module("mpy_kv.bus.make_queue").check(self)
