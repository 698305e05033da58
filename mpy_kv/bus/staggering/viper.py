"""What a staggered schedule does at a call, native: see plain.py for what each does. Loaded by
port.load_native."""

import micropython
from micropython import const

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


@micropython.viper
def enter(s: ptr32, slot: int, now: int) -> int:
    if slot < 0 or slot > _IO:
        return -1
    if s[_SLOT_NOW] != _IO:
        kind = s[_SLOT_NOW]
        s[_SLOT_NOW] = _IO
        took = (now - s[_BEGAN]) & 0x3FFFFFFF
        if took >= ptr32(int(s) + 4 * (_US + kind))[0]:
            s[_BASE] = now
            if took < _MOST_US:
                ptr32(int(s) + 4 * (_US + kind))[0] = took + 1
                if took >= s[_LONGEST]:
                    s[_LONGEST] = took + 1
        if s[_WAITING] == 0:
            s[_BASE] = now
            s[_PROMISED] = 0
        s[_BUSY] = now
        s[_RUNS] = 0
    begins = 0
    if slot == _IO:
        if s[_WANTED] == 0:
            return 0
    else:
        most = s[_LONGEST] + s[_BURSTS_US]
        busy = (s[_BUSY] - now) & 0x3FFFFFFF
        if busy == 0 or busy > s[_BURSTS_US]:
            busy = 0
            s[_BUSY] = now
            s[_RUNS] = 0
        wait = 0
        if s[_WAITING]:
            wait = (s[_BASE] - now) & 0x3FFFFFFF
            if wait > 0x1FFFFFFF:
                wait -= 0x20000000
                wait -= 0x20000000
            wait += s[_PROMISED]
        if 0 < wait <= most:
            if wait < busy:
                wait = busy
        else:
            wait = busy
            if s[_WAITING]:
                n = s[_TASKS]
                t = ptr32(int(s) + 4 * _PLACES)
                while n > 0:
                    if t[_WAITS] == 1:
                        t[_WAITS] = 0
                    t = ptr32(int(t) + 4 * _TASK_WORDS)
                    n -= 1
                s[_WAITING] = 0
            s[_BASE] = s[_BUSY]
            s[_PROMISED] = 0
        if s[_WANTED] == 0:
            s[_WANTED] = 1
            n = s[_TASKS]
            t = ptr32(int(s) + 4 * _PLACES)
            while n > 0:
                t[_SERVED] = 0
                t = ptr32(int(t) + 4 * _TASK_WORDS)
                n -= 1
            runs = s[_RUNS]
            before = (s[_BASE] - s[_BUSY]) & 0x3FFFFFFF
            if runs > 0 and (before == 0 or before > 0x1FFFFFFF):
                t = ptr32(int(s) + 4 * (_PLACES + runs * _TASK_WORDS - _TASK_WORDS))
                t[_SERVED] = 1
        s[_TO_COME] = slot
        if wait > 0:
            return wait
        s[_SLOT_NOW] = slot
        s[_BEGAN] = now
        s[_BASE] = (now + ptr32(int(s) + 4 * (_US + slot))[0]) & 0x3FFFFFFF
        begins = 1
    kept = 0
    n = s[_TASKS]
    t = ptr32(int(s) + 4 * _PLACES)
    while n > 0:
        if t[_WAITS] == 2:
            t[_WAITS] = begins
            kept += begins
        t = ptr32(int(t) + 4 * _TASK_WORDS)
        n -= 1
    if begins:
        s[_PROMISED] = s[_BEHIND]
        s[_WAITING] = kept
    s[_WANTED] = 0
    s[_BEHIND] = 0
    return 0


@micropython.viper
def may(s: ptr32, now: int, task: int, nbytes: int) -> int:
    if task < 0 or task >= s[_TASKS]:
        return -1
    t = ptr32(int(s) + 4 * (_PLACES + task * _TASK_WORDS))
    burst = t[_BURST]
    if nbytes < 1 or nbytes > burst:
        return -1
    us = t[_BURST_US]
    if s[_SLOT_NOW] != _IO:
        if t[_WAITS] == 0:
            t[_WAITS] = 1
            t[_OFFSET] = s[_PROMISED]
            s[_PROMISED] += us
            s[_WAITING] += 1
        wait = (s[_BASE] - now) & 0x3FFFFFFF
        if wait > 0x1FFFFFFF:
            wait -= 0x20000000
            wait -= 0x20000000
        wait += t[_OFFSET]
        if wait > 0:
            return wait
        return us  # the slot takes longer than planned
    most = s[_LONGEST] + s[_BURSTS_US]
    busy = (s[_BUSY] - now) & 0x3FFFFFFF
    if busy == 0 or busy > s[_BURSTS_US]:
        busy = 0
        s[_BUSY] = now
        s[_RUNS] = 0
    until = 0
    if s[_WAITING]:
        until = (s[_BASE] - now) & 0x3FFFFFFF
        if until > 0x1FFFFFFF:
            until -= 0x20000000
            until -= 0x20000000
        until += s[_PROMISED]
    if 0 < until <= most:
        if until < busy:
            until = busy
    else:
        until = busy
        if s[_WAITING]:
            n = s[_TASKS]
            w = ptr32(int(s) + 4 * _PLACES)
            while n > 0:
                if w[_WAITS] == 1:
                    w[_WAITS] = 0
                w = ptr32(int(w) + 4 * _TASK_WORDS)
                n -= 1
            s[_WAITING] = 0
        s[_BASE] = s[_BUSY]
        s[_PROMISED] = 0
    waits = t[_WAITS]
    if busy > 0 and s[_RUNS] == task + 1:
        return busy
    if waits == 0 and s[_WANTED] and t[_SERVED]:
        waits = 2
        t[_WAITS] = 2
        t[_OFFSET] = s[_BEHIND]
        s[_BEHIND] += us
    if waits == 2:
        return until + ptr32(int(s) + 4 * (_US + s[_TO_COME]))[0] + t[_OFFSET]
    early = (s[_BASE] - now) & 0x3FFFFFFF
    if early > 0x1FFFFFFF:
        early -= 0x20000000
        early -= 0x20000000
    if nbytes < burst:
        us = (nbytes * us + burst - 1) // burst  # viper: allow divide because no burst is 0 bytes
    if waits == 1:
        wait = early + t[_OFFSET]
        if busy > 0 or wait > 0:
            if wait < busy:
                return busy
            return wait
        if wait < 0:
            s[_BASE] = (s[_BASE] - wait) & 0x3FFFFFFF  # who comes late delays those behind it
        t[_WAITS] = 0
        s[_WAITING] -= 1
    elif busy > 0 or (s[_WAITING] and us > early):
        t[_WAITS] = 1
        t[_OFFSET] = s[_PROMISED]
        s[_PROMISED] += t[_BURST_US]
        s[_WAITING] += 1
        return early + t[_OFFSET]
    s[_BUSY] = (now + us) & 0x3FFFFFFF
    s[_RUNS] = task + 1
    if early <= 0:
        t[_SERVED] = 1  # what is over before the first promise costs nobody time
    if s[_WAITING] == 0:
        s[_BASE] = s[_BUSY]
        s[_PROMISED] = 0
    return 0
