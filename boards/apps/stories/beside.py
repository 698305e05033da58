"""A story as an asyncio task: between two layers of a token, whatever else there is to do has its turn.
Imported only where it is asked for.

    task = Task(llama, Sampler(llama), write)
    asyncio.create_task(task.tell(200, prompt))     # prompt: a list of tokens, BOS first

boards/apps/story_task.py is a whole program. The text is the one that Teller tells. A turn allocates nothing
beside what asyncio takes for each. On a port without asyncio whoever drives tell() is the scheduler.
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

try:
    import asyncio.core as _scheduler
except ImportError:  # CPython's takes what is yielded for a turn given away
    _scheduler = None

try:
    import time
except ImportError:  # a port without a clock has no schedule
    time = None

from .layered import DONE, WEIGHTS, Layered
from .telling import Teller

_IO = 3  # of mpy_kv/bus/schedule.py: the bus is the others'


class Turn:
    """What a task awaits to give its turn away: as asyncio.sleep_ms(0), without an object each time. Of one
    task alone."""

    def __init__(self):
        self._given = False
        self._over = StopIteration()

    def __iter__(self):
        self._given = False
        return self

    __await__ = __iter__

    @micropython.native
    def __next__(self):
        if self._given:
            self._over.__traceback__ = None
            raise self._over
        self._given = True
        if _scheduler:
            _scheduler._task_queue.push(_scheduler.cur_task, _scheduler.ticks())


def ticks_us():
    """Microseconds of period 2^30, as a schedule takes them."""
    return (time.ticks_us() if hasattr(time, "ticks_us") else time.monotonic_ns() // 1000) & 0x3FFFFFFF


class Burst:
    """Transfers of another task beside a story that goes by a schedule, so many bytes at most each: a tracker
    of the bus admits them (`number`: of its task there), if there is one, then the schedule says when.

        radio = Burst(schedule, 512)
        await radio.of(300)         # then begin the transfer

    One object, as often as wanted, by one task at a time; cancelled, it is waited for no more."""

    def __init__(self, schedule, nbytes, tracker=None, number=0, now=ticks_us):
        self._schedule = schedule
        self._task = schedule.task(nbytes)
        self._tracker = tracker
        self._number = number
        self._now = now
        self._nbytes = nbytes
        self._admitted = False
        self._over = StopIteration()

    def of(self, nbytes):
        """To be awaited: that many bytes may go."""
        self._nbytes = nbytes
        self._admitted = self._tracker is None
        return self

    def __iter__(self):
        return self

    __await__ = __iter__

    @micropython.native
    def __next__(self):
        now = self._now()
        wait = 0
        if not self._admitted:
            wait = self._tracker.request(now, self._number, self._nbytes)
            self._admitted = wait == 0
        if wait == 0:
            wait = self._schedule.may(now, self._task, self._nbytes)
        if wait == 0:
            self._over.__traceback__ = None
            raise self._over
        if _scheduler:
            at = _scheduler.ticks_add(_scheduler.ticks(), wait // 1000)
            _scheduler._task_queue.push(_scheduler.cur_task, at)

    def throw(self, error, *_):
        """The task that waits is cancelled."""
        self._schedule.cancel(self._task)
        if not self._admitted:
            self._tracker.cancel(self._number)
        raise error

    def send(self, _value):
        return self.__next__()

    def close(self):
        self._schedule.cancel(self._task)


class Task(Teller):
    """Tells one endless text. schedule (mpy_kv/bus/schedule.py): told of each slot, as it waits for the bus;
    now: microseconds for it, see ticks_us()."""

    def __init__(self, llama, sampler, write, stop=False, schedule=None, now=ticks_us):
        super().__init__(llama, sampler, write, stop)
        self.step = Layered(llama)
        self.turn = Turn()
        self._schedule = schedule
        self._now = now
        self._prompt = ()
        self._fed = 0  # tokens of it
        self._token = -1  # to be run: chosen, printed, not yet in the cache
        self._logits = True

    async def tell(self, n, prompt=None):
        """Run and print the tokens of `prompt`, if given; then tell n more, or with stop up to the end of the
        story. How many were told.

        Cancelled, or cut off by whatever raises, it leaves the cache as it was before the step at hand;
        told on, without a prompt, the text goes on where it was.
        """
        if prompt is not None:
            self._prompt = prompt
            self._fed = 0
        step = self.step
        turn = self.turn
        start = self.told
        try:
            while not self.ended:
                if self._token < 0:
                    if not self.take(start + n):
                        break
                    await turn
                    if self.ended:
                        break
                step.begin(self._token, self._logits)
                while step.slot != DONE:
                    if self._schedule is None:
                        step.next()
                        await turn
                        continue
                    while self._schedule.enter(step.slot, self._now()):
                        await turn
                    if step.part() >= WEIGHTS or step.sealing:
                        self._schedule.enter(_IO, self._now())
                        await turn
                step.commit()
                self._token = -1
                await turn
        finally:
            step.cancel()
        return self.told - start

    def take(self, goal):
        """Choose and print the token that is to be run: the prompt's next, or one sampled, which may end the
        story. Whether there is one before `goal` are told."""
        if self._fed < len(self._prompt):
            token = self._prompt[self._fed]
            self._fed += 1
            self._logits = self._fed == len(self._prompt)
            self._print(token)
        elif self.told < goal:
            token = self.sampler.sample()
            self.told += 1
            self._logits = True
            if token == self.tokenizer.bos or token == self.tokenizer.eos:
                if self._stop:
                    self.ended = True
                    return True
                token = self.tokenizer.bos
                self.stories += 1
                self._write(b"\n\n")
                self.last = token
            else:
                self._print(token)
        else:
            return False
        self._token = token
        return True
