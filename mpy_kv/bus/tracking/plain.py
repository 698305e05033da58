"""What the bus tracker does at a call, in plain Python: the definition. Amounts are in micro-bytes.

`bus`: the tracker's words, see the tables bus and bus task of tools/fields.py. Nothing is checked here. On
boards with native code viper.py takes this module's place.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

from .setup import MOST

# fields: bus, bus task, rates, tier
_CLOCK = const(0)
_STARTED = const(1)
_INTO = const(2)
_SLICE_US = const(3)
_RUNNING = const(4)
_MOST = const(5)
_TASKS = const(6)
_LIMIT = const(7)
_CARRY = const(8)
_MISSING_LOW = const(9)
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
_LEVEL_LOW = const(7)
_LEVEL_HIGH = const(8)
_ROOM_LOW = const(9)
_ABOVE = const(11)
_RECORD_WORDS = const(12)
_SLOW_TIERS = const(0)
_TIER_RECORDS = const(1)
_BELOW = const(0)
_FROM = const(1)
_SLOW = const(2)
_AVERAGE = const(3)
_EIGHTHS = const(4)
_TIER_LOW = const(5)
_TIER_US_LOW = const(7)
_TIER_WORDS = const(9)
# end of fields

# A tick that is behind the last one by less than this comes from a caller that was overtaken.
_LATE = const(0x100000)


def step(bus, now):
    """Move the clock on and begin new slices. Microseconds since the call before, which are to be poured; 0:
    nothing is."""
    now &= 0x3FFFFFFF
    if not bus[_STARTED]:
        bus[_STARTED] = 1
        bus[_CLOCK] = now
        return 0
    since = (now - bus[_CLOCK]) & 0x3FFFFFFF
    if since == 0 or since > 0x3FFFFFFF - _LATE:
        return 0
    bus[_CLOCK] = now
    steps, bus[_INTO] = divmod(bus[_INTO] + since, bus[_SLICE_US])
    for _ in range(min(steps, 17)):
        bus[_RUNNING] = (bus[_RUNNING] + 1) % 17
        bus[_SLICES + bus[_RUNNING]] = 0
    return since


def pour(bus, since):
    """Pour what the limit has brought in so many us: to each task its guarantee, then the rest in equal parts
    to those that have room, until nobody has or it does not go round."""
    everything = bus[_LIMIT] * since
    pool = everything + bus[_CARRY]
    takers = 0
    for at in range(_RECORDS, _RECORDS + bus[_TASKS] * _RECORD_WORDS, _RECORD_WORDS):
        level = _amount(bus, at + _LEVEL_LOW)
        given = min(level, bus[at + _GUARANTEE] * since)
        cap = everything if bus[at + _CAP] == bus[_LIMIT] else bus[at + _CAP] * since
        pool -= given
        room = min(level - given, cap - given)
        _put(bus, at + _LEVEL_LOW, level - given)
        _put(bus, at + _ROOM_LOW, room)
        if room:
            takers += 1
    while takers and pool >= takers:
        part = pool // takers
        for at in range(_RECORDS, _RECORDS + bus[_TASKS] * _RECORD_WORDS, _RECORD_WORDS):
            room = _amount(bus, at + _ROOM_LOW)
            if room:
                given = min(part, room)
                _put(bus, at + _ROOM_LOW, room - given)
                _put(bus, at + _LEVEL_LOW, _amount(bus, at + _LEVEL_LOW) - given)
                pool -= given
                if given == room:
                    takers -= 1
    bus[_CARRY] = pool if takers else 0


def take(bus, task, nbytes, owed):
    """Take bytes from a task's bucket, and count them. 1: they are not there, nothing is taken, and wait() is
    to be asked; if they are `owed`, all are taken."""
    at = _RECORDS + task * _RECORD_WORDS
    level = _amount(bus, at + _LEVEL_LOW) + (nbytes * 1000000 | 0)  # TypeError where it is no int
    missing = level - _amount(bus, at + _BURST_LOW)
    if missing > 0 and not owed:
        _put(bus, _MISSING_LOW, missing)
        return 1
    _put(bus, at + _LEVEL_LOW, min(level, (1 << 58) - 1))
    running = _SLICES + bus[_RUNNING]
    bus[running] = min(bus[_MOST], bus[running] + nbytes)
    low = bus[_TOTAL_LOW + bus[at + _KIND]] + nbytes
    bus[_TOTAL_LOW + bus[at + _KIND]] = low & 0x3FFFFFFF
    bus[_TOTAL_HIGH + bus[at + _KIND]] += low >> 30
    return 0


def wait(bus, task):
    """Microseconds until what take() did not find is there, if all buckets go on as they do."""
    own = _RECORDS + task * _RECORD_WORDS
    free = bus[_LIMIT]
    takers = 0
    for at in range(_RECORDS, _RECORDS + bus[_TASKS] * _RECORD_WORDS, _RECORD_WORDS):
        bus[at + _ABOVE] = 0
        if bus[at + _LEVEL_LOW] or bus[at + _LEVEL_HIGH]:
            free -= bus[at + _GUARANTEE]
            takers += 1
            bus[at + _ABOVE] = bus[at + _CAP] - bus[at + _GUARANTEE] + 1
    # Those that cannot take an equal part take what they can, and leave the rest to the others.
    bus[own + _ABOVE] = 0
    part = -1
    while part != free // takers:
        part = free // takers
        for at in range(_RECORDS, _RECORDS + bus[_TASKS] * _RECORD_WORDS, _RECORD_WORDS):
            if 0 < bus[at + _ABOVE] <= part:
                free -= bus[at + _ABOVE] - 1
                takers -= 1
                bus[at + _ABOVE] = 0
    rate = min(bus[own + _CAP], bus[own + _GUARANTEE] + part)
    return min(0x1FFFFFFF, (_amount(bus, _MISSING_LOW) + rate - 1) // rate)


def used(bus):
    """Bytes of the last 16 slices and of the running one."""
    return min(bus[_MOST], sum(bus[_SLICES + i] for i in range(17)))


def yields(bus, part):
    """Optional tasks get, above their guarantees, so many 16ths of what they may; rounded up, so never 0."""
    for at in range(_RECORDS, _RECORDS + bus[_TASKS] * _RECORD_WORDS, _RECORD_WORDS):
        if bus[at + _OPTIONAL]:
            guarantee = bus[at + _GUARANTEE]
            bus[at + _CAP] = guarantee + ((bus[at + _OWN_LIMIT] - guarantee) * part + 15) // 16


def note(rates, tier, nbytes, elapsed):
    """Count a transfer, and learn from it. Its bytes/s, or the most there may be; -1: no time went by."""
    own = _TIER_RECORDS + tier * _TIER_WORDS
    _put(rates, own + _TIER_LOW, _amount(rates, own + _TIER_LOW) + nbytes)
    _put(rates, own + _TIER_US_LOW, _amount(rates, own + _TIER_US_LOW) + elapsed)
    if elapsed == 0:
        return -1
    found = min(MOST, nbytes * 1000000 // elapsed)
    if nbytes:
        average = rates[own + _AVERAGE] - 1
        if average < 0:
            average = found
        else:
            # Of the eighths that are left over none is lost, or the average would stop short of a rate.
            rest = rates[own + _EIGHTHS] + ((found - average) & 7)
            average += ((found - average) >> 3) + (rest >> 3)
            rates[own + _EIGHTHS] = rest & 7
        rates[own + _AVERAGE] = average + 1
        slow = rates[own + _SLOW]
        if average < rates[own + _BELOW]:
            slow = 1
        elif average >= rates[own + _FROM]:
            slow = 0
        rates[_SLOW_TIERS] += slow - rates[own + _SLOW]
        rates[own + _SLOW] = slow
    return found


def _amount(words, low):
    """The amount whose words are at `low` and behind it."""
    return words[low + 1] << 30 | words[low]


def _put(words, low, amount):
    words[low] = amount & 0x3FFFFFFF
    words[low + 1] = amount >> 30
