"""A staggered schedule: the memory bus is a model's or the others', by turns, a slot at a time.

A step of a model is made of slots: weights are read, keys and values written, keys and values read, for each
layer. Between any two there is a gap in which others (I/O) may have a burst each. Built by slots.make() from
a model and a board:

    schedule = Schedule(load_module("mpy_kv.bus.staggering.setup").make(image, board))
    radio = schedule.task(512)                 # bytes of its bursts
    schedule.enter(WEIGHTS, now)               # the model's side: 0: begin; else microseconds to ask again in
    schedule.enter(IO, now)                    # it has no more to do for now
    schedule.may(now, radio, 512)              # the others' side: 0: go; else microseconds to ask again in

The bound. A burst is over no later than bound_us() after it is first asked for, where a task asks for the
next when the last is over, and again when it was told to: the longest slot of the model and one burst of
each task. Proof. Who asks in a slot gets the first time behind it that nobody was promised: the rest of the
slot, a burst of each task that asked before, and its own. Who asks in a gap waits for what is promised in
it, a burst a task at most, and goes next. Once the model wants to go on, each task has one burst more in the
gap, one that runs counted; a task that asks for another waits for those of the gap that are not over, for
the slot, and for those that asked for another before it did: no task is in two of these, as one whose burst
is not over does not ask. The model waits for those bursts, one of each task at most.

A slot that ends early leaves its promises as they are, and the model waits for them; whoever asks before the
first, and is done by then, may go. One that takes longer than it was planned is planned as long from then
on, and those who were promised its end ask again, each after a burst of its own, so that this once a wait
may be longer by a burst of each. Nothing is preempted: a slot is a call of a kernel.

Times are microseconds of period 2^30, always passed in. Nothing is allocated after construction, where there
is native code. Not for two threads at once: who asks from an interrupt or another core does so where the
model's side is not within enter().
"""

from ..transient import load_module

try:
    from micropython import const
except ImportError:
    from ..cpython import const

KV_READ = 0
KV_WRITE = 1
WEIGHTS = 2
IO = 3

# fields: schedule, schedule task
_WAITING = const(4)
_LONGEST = const(10)
_TASKS = const(11)
_BURSTS_US = const(13)
_BYTES = const(14)
_US = const(18)
_PLACES = const(22)
_WAITS = const(2)
_TASK_WORDS = const(5)
# end of fields


class Schedule:
    """slots: (bytes, microseconds) of KV_READ, KV_WRITE and WEIGHTS, the longest of each, and of IO: a burst
    of all tasks together. tasks: how many there may be. slots.make() makes them."""

    def __init__(self, slots, tasks=8):
        setup = load_module("mpy_kv.bus.staggering.setup")
        self._s = setup.made(slots, tasks)
        self._enter, self._may = setup.calls()

    def task(self, burst):
        """The number of another task, whose bursts have so many bytes at most. BadArgument where the bursts
        of all are more than that of IO."""
        return load_module("mpy_kv.bus.staggering.setup").add_task(self._s, burst)

    def bound_us(self):
        """What no burst takes longer than, from when it is first asked for until it is over."""
        return self._s[_LONGEST] + self._s[_BURSTS_US]

    def slot(self, kind):
        """(bytes, microseconds) of a slot as planned, or as it was seen if that was longer."""
        return self._s[_BYTES + kind], self._s[_US + kind]

    # A frame of more than 11 words would lie on the heap.

    def enter(self, slot, now):
        """The model's side. Begin a slot, which ends the one before: 0, or, where a burst is to be over
        first, after how many microseconds to ask again. IO: nothing begins, others have the bus."""
        now = self._enter(self._s, slot, now)
        if now < 0:
            load_module("mpy_kv.bus.staggering.setup").refuse_slot(slot)
        return now

    def may(self, now, task, nbytes):
        """The others' side. Whether a task may use the bus for so many bytes, now: 0, or after how many
        microseconds to ask again. BadArgument: more than its burst."""
        now = self._may(self._s, now, task, nbytes)
        if now < 0:
            load_module("mpy_kv.bus.staggering.setup").refuse_burst(self._s, task, nbytes)
        return now

    def cancel(self, task):
        """A task that has been told to wait will not ask again."""
        s = self._s
        if not 0 <= task < s[_TASKS]:
            load_module("mpy_kv.bus.staggering.setup").refuse_burst(s, task, 1)
        at = _PLACES + task * _TASK_WORDS
        if s[at + _WAITS] == 1:
            s[_WAITING] -= 1
        s[at + _WAITS] = 0
