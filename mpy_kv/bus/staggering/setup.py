"""What a staggered schedule does once, and what it refuses. Transient (mpy_kv/transient.py)."""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

from ... import port
from ...errors import BadArgument
from ...transient import load_module
from ..schedule import IO

# fields: schedule, schedule task
_SLOT_NOW = const(0)
_LONGEST = const(10)
_TASKS = const(11)
_TAKEN = const(12)
_BURSTS_US = const(13)
_BYTES = const(14)
_US = const(18)
_PLACES = const(22)
_BURST = const(0)
_BURST_US = const(1)
_TASK_WORDS = const(5)
# end of fields

MOST_US = 0x3FFFFFF  # of a slot, of a burst of all tasks
MOST_BYTES = (1 << 30) - 1
MOST_TASKS = 32


def _whole(name, value, least, most):
    if type(value) is not int or not least <= value <= most:
        raise BadArgument("%s must be %d..%d, got %r" % (name, least, most, value))


def made(slots, tasks):
    """The array of a new Schedule."""
    if len(slots) != 4:
        raise BadArgument("slots must be four pairs (bytes, us), got %d" % len(slots))
    _whole("tasks", tasks, 1, MOST_TASKS)
    s = port.ints((), _PLACES + _TASK_WORDS * tasks)
    for kind in range(4):
        nbytes, us = slots[kind]
        _whole("slots: bytes", nbytes, 0, MOST_BYTES)
        _whole("slots: microseconds", us, 1, MOST_US)
        s[_BYTES + kind] = nbytes
        s[_US + kind] = us
        if kind < IO:
            s[_LONGEST] = max(s[_LONGEST], us)
    s[_SLOT_NOW] = IO
    return s


def calls():
    """enter and may: those of plain.py, or their twins where there is native code."""
    if port.EMITTER:
        path = __file__[: __file__.rfind("/") + 1] + "viper.py"
        found = port.load_native(path, "mpy_kv.bus.staggering")
    else:
        found = load_module("mpy_kv.bus.staggering.plain").__dict__
    return found["enter"], found["may"]


def add_task(s, burst):
    """As Schedule.task."""
    io = IO
    _whole_burst(burst, s[_BYTES + io] - s[_TAKEN])
    n = s[_TASKS]
    if n == (len(s) - _PLACES) // _TASK_WORDS:
        raise BadArgument("no more tasks than %d" % n)
    us = (burst * s[_US + io] + s[_BYTES + io] - 1) // s[_BYTES + io]
    if burst * us >= 1 << 29:
        raise BadArgument("burst of %d bytes, %d us, is too long: make it smaller" % (burst, us))
    at = _PLACES + n * _TASK_WORDS
    s[at + _BURST] = burst
    s[at + _BURST_US] = us
    s[_TAKEN] += burst
    s[_BURSTS_US] += us
    s[_TASKS] = n + 1
    return n


def _whole_burst(burst, free):
    if type(burst) is not int or not 0 < burst <= free:
        raise BadArgument("burst must be 1..%d bytes, what other tasks leave, got %r" % (free, burst))


def refuse_slot(slot):
    raise BadArgument("slot must be KV_READ, KV_WRITE, WEIGHTS or IO, 0..3, got %r" % (slot,))


def refuse_burst(s, task, nbytes):
    if not 0 <= task < s[_TASKS]:
        raise BadArgument("no task %r: there are %d" % (task, s[_TASKS]))
    most = s[_PLACES + task * _TASK_WORDS + _BURST]
    raise BadArgument("task %d may ask for 1..%d bytes at a time, got %r" % (task, most, nbytes))
