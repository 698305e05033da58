"""Bus: the tracker for asyncio. A task is suspended until its bytes are admitted.

    bus = Bus(tracker)
    await bus.use(weights, 8192)

Who waits is on the scheduler's own queue, for as long as the tracker says, and is asked for by nobody
meanwhile. Waiters of one tracker's task come in in the order of their first asking; only the first of them
asks the tracker, so that each waits for those before it and then as long as the tracker proves. The scheduler
counts in milliseconds and runs others first: each wait is longer by up to 1 ms and by what they take. So that
none of the bandwidth is lost meanwhile, a burst should have room for what comes in that time.

`await` returns at once, without a round of the scheduler, where the bytes are there. The awaitables are made
at set-up, and `use` and `await` allocate nothing. A cancelled task gives its place back, as one that
wait_for() gives up does. Without a tracker, Bus(None), all is admitted and no time is asked for.
"""

try:
    from asyncio import core
    from time import ticks_us
except ImportError:
    from ..cpython import Scheduler, ticks_us

    core = Scheduler()

from ..errors import BadArgument, QueueFull

_FREE, _TAKEN, _BEHIND, _FIRST = range(4)


class _Waiter:
    """What `use` returns: to be awaited once. It is in the list of the free ones, or in its task's queue."""

    def __init__(self, bus, after):
        self.bus = bus
        self.state = _FREE
        self.after = after  # the next in its list
        self.task = 0
        self.nbytes = 0
        self.coroutine = None

    def __iter__(self):
        return self

    def __await__(self):
        """CPython's way to await."""
        return core.awaited(self)

    def __next__(self):
        if not self.bus._goes(self):
            return None
        done = self.bus._done
        done.__traceback__ = None  # what a raise leaves is then used again
        raise done

    def send(self, _value):
        return self.__next__()

    def throw(self, error):
        self.bus._leave(self)
        raise error

    def close(self):
        self.bus._leave(self)

    def remove(self, _coroutine):
        """The scheduler cancels one that is behind others: it puts it on its own queue, where none may be
        twice, so nobody may wake it any more. throw() follows."""
        self.bus._unlink(self)
        self.state = _TAKEN


def _sleep(ms):
    at = core.ticks_add(core.ticks(), ms)
    core._task_queue.push(core.cur_task, at)


class Bus:
    """waiters: how many may wait at a time. ticks: microseconds, of period 2^30."""

    def __init__(self, tracker, waiters=8, ticks=None):
        if type(waiters) is not int or waiters < 1:
            raise BadArgument("waiters must be 1 or more, got %r" % (waiters,))
        self.tracker = tracker
        self.waiters = waiters
        self._ticks = ticks or ticks_us
        self._done = StopIteration()
        self._free = None
        for _ in range(waiters):
            self._free = _Waiter(self, self._free)
        n = tracker.most_tasks if tracker else 0
        self._first = [None] * n
        self._last = [None] * n

    def use(self, task, nbytes):
        """To be awaited: returns when the tracker admits the bytes. BadArgument, as Tracker.request.

        QueueFull: all waiters are out; one that is not awaited stays so.
        """
        if self.tracker:
            self.tracker.allow(task, nbytes)
        waiter = self._free
        if waiter is None:
            raise QueueFull("waiters", 1, 0, unit="waiters")
        self._free = waiter.after
        waiter.state = _TAKEN
        waiter.after = None
        waiter.task = task
        waiter.nbytes = nbytes
        return waiter

    def waiting(self, task):
        """How many wait for their bytes."""
        n = 0
        waiter = self._first[task]
        while waiter:
            n += 1
            waiter = waiter.after
        return n

    def _goes(self, waiter):
        """Whether it is admitted; else it is where it will be woken."""
        if waiter.state == _FREE:
            return True  # a second await
        task = waiter.task
        if self.tracker is None:
            self._leave(waiter)
            return True
        if waiter.state == _TAKEN and self._first[task]:
            self._last[task].after = waiter
            self._last[task] = waiter
            waiter.state = _BEHIND
            waiter.coroutine = core.cur_task
            waiter.coroutine.data = waiter
            return False
        wait = self.tracker.request(self._ticks(), task, waiter.nbytes)
        if not wait:
            self._leave(waiter)
            return True
        if waiter.state == _TAKEN:
            self._first[task] = self._last[task] = waiter
            waiter.state = _FIRST
            waiter.coroutine = core.cur_task
        _sleep((wait + 999) // 1000)
        return False

    def _leave(self, waiter):
        """It goes to the free ones, from wherever it is; who was behind it asks next."""
        state = waiter.state
        if state == _FREE:
            return
        if state != _TAKEN:
            self._unlink(waiter)
        waiter.state = _FREE
        waiter.coroutine = None
        waiter.after = self._free
        self._free = waiter

    def _unlink(self, waiter):
        task = waiter.task
        if waiter.state == _FIRST:
            before = None
            following = self._first[task] = waiter.after
            if following:
                following.state = _FIRST
                core._task_queue.push(following.coroutine)
        else:
            before = self._first[task]
            while before.after is not waiter:
                before = before.after
            before.after = waiter.after
        if self._last[task] is waiter:
            self._last[task] = before
