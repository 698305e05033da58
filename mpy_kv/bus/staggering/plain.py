"""What a staggered schedule does at a call; the definition. `s` is its array, of ints never negative.

What a task waits for, in WAITS: 0 nothing, 1 its time in the next gap or in this one, 2 the slot that is to
begin, and then its time.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

# fields: schedule, schedule task
_SLOT_NOW = const(0)
_BEGAN = const(1)
_BASE = const(2)
_PROMISED = const(3)
_WAITING = const(4)
_BUSY = const(5)
_RUNS = const(6)
_WANTED = const(7)
_TO_COME = const(8)
_BEHIND = const(9)
_LONGEST = const(10)
_TASKS = const(11)
_BURSTS_US = const(13)
_US = const(18)
_PLACES = const(22)
_BURST = const(0)
_BURST_US = const(1)
_WAITS = const(2)
_OFFSET = const(3)
_SERVED = const(4)
_TASK_WORDS = const(5)
# end of fields

_IO = const(3)
_MOST_US = const(0x3FFFFFF)


def left(then, now):
    """Microseconds from now on, less than 0 where that was before: at most half the period."""
    d = (then - now) & 0x3FFFFFFF
    if d > 0x1FFFFFFF:
        d = d - 0x20000000 - 0x20000000
    return d


def free(s, now):
    """Microseconds until nobody is promised the bus, in a gap. What is over is forgotten, so that ticks may
    go round while nobody asks."""
    most = s[_LONGEST] + s[_BURSTS_US]
    busy = left(s[_BUSY], now)
    if busy <= 0 or busy > s[_BURSTS_US]:
        busy = 0
        s[_BUSY] = now
        s[_RUNS] = 0
    if s[_WAITING]:
        until = left(s[_BASE], now) + s[_PROMISED]
        if 0 < until <= most:
            if until < busy:
                return busy
            return until
        n = s[_TASKS]
        at = _PLACES
        while n > 0:
            if s[at + _WAITS] == 1:
                s[at + _WAITS] = 0
            at += _TASK_WORDS
            n -= 1
        s[_WAITING] = 0
    s[_BASE] = s[_BUSY]
    s[_PROMISED] = 0
    return busy


def end(s, now):
    """Of the slot: the gap begins."""
    kind = s[_SLOT_NOW]
    s[_SLOT_NOW] = _IO
    took = (now - s[_BEGAN]) & 0x3FFFFFFF
    if took >= s[_US + kind]:
        s[_BASE] = now
        if took < _MOST_US:
            s[_US + kind] = took + 1
            if took >= s[_LONGEST]:
                s[_LONGEST] = took + 1
    if s[_WAITING] == 0:
        s[_BASE] = now
        s[_PROMISED] = 0
    s[_BUSY] = now
    s[_RUNS] = 0


def over(s, begins):
    """The model's wish is over: those who wait for a slot wait for their time behind it, if one begins. Then
    nobody waits for a time in the gap: free() has found it over."""
    kept = 0
    n = s[_TASKS]
    at = _PLACES
    while n > 0:
        if s[at + _WAITS] == 2:
            s[at + _WAITS] = begins
            kept += begins
        at += _TASK_WORDS
        n -= 1
    if begins:
        s[_PROMISED] = s[_BEHIND]
        s[_WAITING] = kept
    s[_WANTED] = 0
    s[_BEHIND] = 0


def enter(s, slot, now):
    """Schedule.enter; -1: no such slot."""
    if slot < 0 or slot > _IO:
        return -1
    if s[_SLOT_NOW] != _IO:
        end(s, now)
    if slot == _IO:
        if s[_WANTED]:
            over(s, 0)
        return 0
    wait = free(s, now)
    if s[_WANTED] == 0:
        s[_WANTED] = 1
        n = s[_TASKS]
        at = _PLACES
        while n > 0:
            s[at + _SERVED] = 0
            at += _TASK_WORDS
            n -= 1
        runs = s[_RUNS]
        if runs > 0 and left(s[_BASE], s[_BUSY]) <= 0:
            s[_PLACES + runs * _TASK_WORDS - _TASK_WORDS + _SERVED] = 1
    s[_TO_COME] = slot
    if wait > 0:
        return wait
    s[_SLOT_NOW] = slot
    s[_BEGAN] = now
    s[_BASE] = (now + s[_US + slot]) & 0x3FFFFFFF
    over(s, 1)
    return 0


def may(s, now, task, nbytes):
    """Schedule.may; -1: no such task, or more than its burst."""
    if task < 0 or task >= s[_TASKS]:
        return -1
    at = _PLACES + task * _TASK_WORDS
    burst = s[at + _BURST]
    if nbytes < 1 or nbytes > burst:
        return -1
    us = s[at + _BURST_US]
    if s[_SLOT_NOW] != _IO:
        if s[at + _WAITS] == 0:
            s[at + _WAITS] = 1
            s[at + _OFFSET] = s[_PROMISED]
            s[_PROMISED] += us
            s[_WAITING] += 1
        wait = left(s[_BASE], now) + s[at + _OFFSET]
        if wait > 0:
            return wait
        return us  # the slot takes longer than planned
    until = free(s, now)
    waits = s[at + _WAITS]
    busy = left(s[_BUSY], now)
    if busy > 0 and s[_RUNS] == task + 1:
        return busy
    if waits == 0 and s[_WANTED] and s[at + _SERVED]:
        waits = 2
        s[at + _WAITS] = 2
        s[at + _OFFSET] = s[_BEHIND]
        s[_BEHIND] += us
    if waits == 2:
        return until + s[_US + s[_TO_COME]] + s[at + _OFFSET]
    early = left(s[_BASE], now)
    if nbytes < burst:
        us = (nbytes * us + burst - 1) // burst
    if waits == 1:
        wait = early + s[at + _OFFSET]
        if busy > 0 or wait > 0:
            if wait < busy:
                return busy
            return wait
        if wait < 0:
            s[_BASE] = (s[_BASE] - wait) & 0x3FFFFFFF  # who comes late delays those behind it
        s[at + _WAITS] = 0
        s[_WAITING] -= 1
    elif busy > 0 or (s[_WAITING] and us > early):
        s[at + _WAITS] = 1
        s[at + _OFFSET] = s[_PROMISED]
        s[_PROMISED] += s[at + _BURST_US]
        s[_WAITING] += 1
        return early + s[at + _OFFSET]
    s[_BUSY] = (now + us) & 0x3FFFFFFF
    s[_RUNS] = task + 1
    if early <= 0:
        s[at + _SERVED] = 1  # what is over before the first promise costs nobody time
    if s[_WAITING] == 0:
        s[_BASE] = s[_BUSY]
        s[_PROMISED] = 0
    return 0
