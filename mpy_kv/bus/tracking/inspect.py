"""What is proven of a bus tracker, and what must hold in it. Transient, see transient.py."""

from ...errors import BadArgument

try:
    from micropython import const
except ImportError:
    from ...cpython import const

# fields: bus, bus task
_INTO = const(2)
_SLICE_US = const(3)
_RUNNING = const(4)
_MOST = const(5)
_LIMIT = const(7)
_CARRY = const(8)
_TOTAL_LOW = const(11)
_SLICES = const(19)
_RECORDS = const(36)
_GUARANTEE = const(1)
_CAP = const(2)
_OWN_LIMIT = const(3)
_OPTIONAL = const(4)
_BURST_LOW = const(5)
_BURST_HIGH = const(6)
_LEVEL_LOW = const(7)
_LEVEL_HIGH = const(8)
_RECORD_WORDS = const(12)
# end of fields


def least_rate(tracker, task):
    """Bytes/s that the task's bucket gets at least while it is not full, yielding at its most."""
    bus = tracker._bus
    if type(task) is not int or not 0 <= task < tracker.tasks:
        raise BadArgument("task must be a number that task() gave, 0..%d, got %r" % (tracker.tasks - 1, task))
    at = _RECORDS + task * _RECORD_WORDS
    guarantee = bus[at + _GUARANTEE]
    above = bus[at + _OWN_LIMIT] - guarantee
    if bus[at + _OPTIONAL]:
        above = (above + 15) // 16
    rest = tracker.limit - tracker._stats.bandwidth_allocated
    return guarantee + min(above, rest // tracker.tasks)


def bound(tracker, task, nbytes):
    """Microseconds that a request may wait at most, from when it is first asked for. Proof: tracker.py.

    It holds for whoever asks again when the answer says so, and asks for nothing else of that task; what
    record() owes then counts to nbytes.
    """
    rate = least_rate(tracker, task)
    return (nbytes * 1000000 + rate - 1) // rate


def owed(tracker, task):
    """Bytes, rounded up, that the task has taken beyond its burst."""
    bus = tracker._bus
    at = _RECORDS + task * _RECORD_WORDS
    level = (bus[at + _LEVEL_HIGH] << 30 | bus[at + _LEVEL_LOW]) - (
        bus[at + _BURST_HIGH] << 30 | bus[at + _BURST_LOW]
    )
    return max(0, (level + 999999) // 1000000)


def check(tracker):
    """Number of broken invariants (0 = sound)."""
    bus = tracker._bus
    bad = 0
    guaranteed = 0
    for at in range(_RECORDS, _RECORDS + tracker.tasks * _RECORD_WORDS, _RECORD_WORDS):
        guaranteed += bus[at + _GUARANTEE]
        bad += not 0 <= bus[at + _LEVEL_LOW] < 1 << 30
        bad += not 0 <= bus[at + _LEVEL_HIGH] < 1 << 28
        bad += not bus[at + _GUARANTEE] <= bus[at + _CAP] <= bus[at + _OWN_LIMIT] <= bus[_LIMIT]
    bad += guaranteed != tracker._stats.bandwidth_allocated
    bad += guaranteed > tracker.limit
    bad += not 0 <= bus[_CARRY] < max(1, tracker.tasks)
    bad += not 0 <= bus[_INTO] < bus[_SLICE_US]
    bad += not 0 <= bus[_RUNNING] < 17
    bad += any([not 0 <= bus[_SLICES + i] <= bus[_MOST] for i in range(17)])
    bad += any([not 0 <= bus[_TOTAL_LOW + i] < 1 << 30 for i in range(4)])
    return bad
