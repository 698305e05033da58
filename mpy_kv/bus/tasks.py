"""The two tasks of copies over the bus, for asyncio: who writes keys and values, and who has them copied.

    copies = Copies(q, backend)
    asyncio.create_task(copies.serve())                     # starts a chain as soon as the last one is done
    while not q.push(read, write, n): await copies.freed    # a full queue holds its writers back
    fence = copies.fence()                                  # one for each writer, made once
    fence.mark()
    await fence                                             # what was pushed before mark() is done

    writer = KVWriter(copies, pack, cache, (record,), ready)
    asyncio.create_task(writer.run())
    writer.appended()                                       # after each commit() of the cache

No await here allocates beside what the scheduler does in a round. A task that is cancelled ends no chain half
way: serve() waits for it, writers leave what they have pushed. Where serve() has ended, by an error of the
backend too, whoever waits gets a StepError, and so does who comes later; it may be started again.
"""

from asyncio import core

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..errors import BadArgument, StepError

# fields: dma
_FILLED = const(1)
# end of fields


class Waiting:
    """Awaited as an object that is made once: each that awaits it waits while ready() is False."""

    def __init__(self, copies):
        self.copies = copies
        self.tasks = core.TaskQueue()
        self.end = StopIteration()
        copies.all.append(self)

    def ready(self):
        """Whether there is nothing to wait for."""
        return True

    def __iter__(self):
        return self

    def __next__(self):
        copies = self.copies
        if self.ready():
            self.end.__traceback__ = None
            raise self.end
        if copies.over is not None:
            raise StepError(copies.over)
        task = core.cur_task
        self.tasks.push(task)
        task.data = self.tasks  # from where cancel() takes it
        copies.wake()

    def go(self):
        """Have all that wait look again."""
        tasks = self.tasks
        while tasks.peek():
            core._task_queue.push(tasks.pop())


class Work(Waiting):
    """For serve(): something is pushed."""

    def ready(self):
        return self.copies.words[_FILLED] > 0


class Freed(Waiting):
    """For writers: nothing is in the bank that is filled."""

    def ready(self):
        return self.copies.words[_FILLED] == 0


class Fence(Waiting):
    """For a writer: what it had pushed when it called mark() is done."""

    number = 0

    def mark(self):
        queue = self.copies.queue
        self.number = queue.started + (queue.waiting() > 0) & 0x3FFFFFFF

    def ready(self):
        return self.copies.queue.passed - self.number & 0x20000000 == 0


class Again(Waiting):
    """Awaited once a round, by serve() alone: the others' turn."""

    gone = False

    def __next__(self):
        self.gone = not self.gone
        if self.gone:
            core._task_queue.push(core.cur_task)
        else:
            self.end.__traceback__ = None
            raise self.end


class Copies:
    """queue: a Queue; backend: what does its chains. spare: a backend that does a chain anew in which the
    first one met an error; only for chains of which no push reads what another one writes."""

    def __init__(self, queue, backend, spare=None):
        self.queue = queue
        self.words = queue.words
        self.backend = backend
        self.spare = spare
        self.over = None  # why nothing is served any more; before serve() begins one waits for it
        self.serving = False
        self.all = []  # that can be awaited
        self.work = Work(self)
        self.freed = Freed(self)
        self.again = Again(self)
        self.failed = 0  # chains that the backend met an error in

    def fence(self):
        """A new Fence. It is kept: make one for each writer."""
        return Fence(self)

    def wake(self):
        """Something is pushed: start it. Awaiting `freed` or a fence does so, too."""
        if self.words[_FILLED] > 0:
            self.work.go()

    async def serve(self):
        """The task that has chains done. Ends when it is cancelled or the backend fails."""
        if self.serving:
            raise StepError("serve() runs already")
        self.serving = True
        self.over = None
        queue = self.queue
        try:
            while True:
                await self.work
                self._begin(queue)
                self.freed.go()
                while not self._done(queue):
                    await self.again
                self._tell()
        except BaseException as error:
            self._finish(queue, error)
            raise

    @micropython.native
    def _begin(self, queue):
        try:
            queue.start(self.backend)
        except OSError as error:
            self._redo(queue, error)

    @micropython.native
    def _done(self, queue):
        try:
            return queue.done()
        except OSError as error:
            self._redo(queue, error)
            return queue.done()

    def _redo(self, queue, error):
        self.failed += 1
        if self.spare is None:
            raise error
        queue.redo(self.spare)

    def _tell(self):
        for waiting in self.all:
            waiting.go()

    def _finish(self, queue, error):
        """Nothing is served any more: a chain that runs is waited for, and all that wait are told."""
        self.again.gone = self.serving = False
        self.over = "serve() has ended: %s" % (error if str(error) else type(error).__name__)
        while not queue.done():
            pass
        self._tell()


class KVWriter:
    """Rows of a cache to records, a block of tokens at a time: `rows` copies them, in blocks of its record's
    length, to the addresses `records` in turn; ready(first, n, i) is called once record i holds positions
    first .. first + n - 1. It returns before the next block is full, or the tokens wait in the cache: a block
    and what is appended meanwhile must fit its window."""

    def __init__(self, copies, rows, cache, records, ready):
        if not records or rows.tokens is None or rows.back:
            raise BadArgument("rows to records, from the cache, and at least one record")
        self.copies = copies
        self.rows = rows
        self.cache = cache
        self.records = records
        self.ready = ready
        self.first = cache.length  # position that the next block begins with
        self.seen = cache.length
        self.blocks = 0
        self.block = rows.tokens
        self.full = Full(copies, self)
        self.fence = copies.fence()

    @micropython.native
    def appended(self):
        """The cache has committed: call it after each step, or now and then."""
        self.seen = self.cache.length
        if self.seen - self.first >= self.block:
            self.full.go()

    async def run(self):
        """The task that pushes: of each layer a chain, started once."""
        rows, copies = self.rows, self.copies
        layers = self.cache.geometry.layers
        while True:
            await self.full
            record = self.blocks % len(self.records)
            rows.move(self.records[record])
            layer = 0
            while layer < layers:
                while not rows.push(layer, self.first, self.block):
                    await copies.freed
                await copies.freed
                layer += 1
            self.fence.mark()
            await self.fence
            self.ready(self.first, self.block, record)
            self.first += self.block
            self.blocks += 1


class Full(Waiting):
    """For a KVWriter: its block is full."""

    def __init__(self, copies, writer):
        Waiting.__init__(self, copies)
        self.writer = writer

    def ready(self):
        writer = self.writer
        return writer.seen - writer.first >= writer.block
