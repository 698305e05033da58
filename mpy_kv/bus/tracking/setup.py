"""What the bus tracker does once, and what it refuses. Transient, see transient.py."""

from .. import tracker as _tracker
from ... import port
from ...errors import BadArgument
from ...transient import load_module

try:
    from micropython import const
except ImportError:
    from ...cpython import const

# fields: bus, bus task
_SLICE_US = const(3)
_MOST = const(5)
_TASKS = const(6)
_LIMIT = const(7)
_TOTAL_LOW = const(11)
_TOTAL_HIGH = const(15)
_SLICES = const(19)
_RECORDS = const(36)
_KIND = const(0)
_GUARANTEE = const(1)
_CAP = const(2)
_OWN_LIMIT = const(3)
_OPTIONAL = const(4)
_BURST_LOW = const(5)
_BURST_HIGH = const(6)
_RECORD_WORDS = const(12)
# end of fields

MOST = (1 << 30) - 1 if port.MICROPYTHON else 1 << 50  # of rates, and of the bytes in a window
MOST_RECORDED = 1 << 29 if port.MICROPYTHON else 1 << 50
MOST_BURST = 1 << 28 if port.MICROPYTHON else 1 << 40
MOST_WINDOW_MS = 1000000
MOST_TASKS = 64

_ALL = ("step", "pour", "take", "wait", "used", "yields", "note")
_TRACKER = _ALL[:-1]


def _whole(name, value, least, most, hint=""):
    if type(value) is not int or not least <= value <= most:
        raise BadArgument("%s must be %d..%d, got %r%s" % (name, least, most, value, hint))


def make(self, peak, limit, window_ms, tasks):
    """Fill in a new Tracker."""
    _whole("peak", peak, 1, MOST)
    if limit is None:
        limit = max(1, peak * 95 // 100)
    _whole("limit", limit, 1, peak, "; a bus brings no more than its peak")
    _whole("window_ms", window_ms, 1, MOST_WINDOW_MS)
    _whole("tasks", tasks, 1, MOST_TASKS)
    slice_us = (1000 * window_ms + 15) // 16
    if 17 * slice_us * peak // 1000000 > MOST:
        most = MOST * 1000 // peak * 16 // 17
        raise BadArgument("window_ms must be at most %d with that peak, got %d" % (max(1, most), window_ms))
    self.peak = peak
    self.limit = limit
    self.tasks = 0
    self.most_tasks = tasks
    self.most_recorded = MOST_RECORDED
    self.optional_part = 16
    self._most = MOST
    self._stats = _tracker.Stats(peak, window_ms)
    self._bursts = port.ints((), tasks)
    self._bus = port.ints((), _RECORDS + tasks * _RECORD_WORDS)
    self._bus[_SLICE_US] = slice_us
    self._bus[_MOST] = MOST
    self._bus[_LIMIT] = limit
    found = calls(_TRACKER)
    self._hot = (self._bus, self._bursts, found["step"], found["pour"], found["take"])
    self._wait, self._used, self._yields = found["wait"], found["used"], found["yields"]


def words(n):
    """So many numbers, each below 2^30 where ints must be small."""
    return port.ints((), n)


def calls(names):
    """The functions of plain.py of these names; where there is native code their twins."""
    if not port.EMITTER:
        return load_module("mpy_kv.bus.tracking.plain").__dict__
    path = __file__[: __file__.rfind("/") + 1] + "viper.py"
    return port.load_native(path, "mpy_kv.bus.tracking", [name for name in _ALL if name not in names])


def add_task(self, kind, guarantee, burst, limit, optional):
    """A new task of a Tracker; nothing is changed if it is refused."""
    if self.tasks == self.most_tasks:
        raise BadArgument("tasks: all %d are there: give the Tracker more" % self.tasks)
    if type(kind) is not int or not 0 <= kind < _tracker.KINDS:
        refuse_kind(kind)
    _whole("guarantee", guarantee, 0, self.limit)
    _whole("burst", burst, 1, MOST_BURST)
    _whole("limit", limit, 0, self.limit, "; 0: none of its own")
    if limit and limit < guarantee:
        raise BadArgument("limit must be at least the guarantee, %d, got %d" % (guarantee, limit))
    found = self._stats
    rest = self.limit - found.bandwidth_allocated - guarantee
    if rest < 0:
        raise BadArgument(
            "guarantee must be at most %d, which the limit leaves, got %d: lower it or another task's"
            % (self.limit - found.bandwidth_allocated, guarantee)
        )
    bus = self._bus
    n = self.tasks
    ends = range(_RECORDS, _RECORDS + n * _RECORD_WORDS, _RECORD_WORDS)
    if rest < n + 1 and not (guarantee and all([bus[at + _GUARANTEE] for at in ends])):
        raise BadArgument(
            "guarantee must not be 0 while guarantees leave only %d of the limit: such a task could wait for "
            "ever; give it one, or lower another task's" % rest
        )
    at = _RECORDS + n * _RECORD_WORDS
    bus[at + _KIND] = kind
    bus[at + _GUARANTEE] = guarantee
    bus[at + _OWN_LIMIT] = limit or self.limit
    bus[at + _CAP] = limit or self.limit
    bus[at + _OPTIONAL] = 1 if optional else 0
    bus[at + _BURST_LOW] = burst * 1000000 & 0x3FFFFFFF
    bus[at + _BURST_HIGH] = burst * 1000000 >> 30
    self._bursts[n] = burst
    found.bandwidth_allocated += guarantee
    self.tasks = bus[_TASKS] = n + 1
    self._yields(bus, self.optional_part)
    return n


def total(self, kind):
    return self._bus[_TOTAL_HIGH + kind], self._bus[_TOTAL_LOW + kind]


def reset(self):
    bus = self._bus
    for i in range(_tracker.KINDS):
        bus[_TOTAL_LOW + i] = bus[_TOTAL_HIGH + i] = 0
    for i in range(17):
        bus[_SLICES + i] = 0
    self._stats.bandwidth_used = 0


def refuse_task(self, task):
    raise BadArgument("task must be a number that task() gave, 0..%d, got %r" % (self.tasks - 1, task))


def refuse_bytes(self, task, nbytes):
    raise BadArgument(
        "nbytes must be 1..%d, the task's burst, got %r: ask for parts, or give the task a larger burst"
        % (self._bursts[task], nbytes)
    )


def refuse_recorded(self, nbytes):
    raise BadArgument("nbytes must be 0..%d, got %r: record parts" % (self.most_recorded, nbytes))


def refuse_kind(kind):
    raise BadArgument("kind must be KV_READ, KV_WRITE, WEIGHTS or IO, 0..3, got %r" % (kind,))


def refuse_part(part):
    raise BadArgument("part must be 1..16, got %r" % (part,))
