"""What the bus tracker does at a call, native: see plain.py for what each does. Loaded by port.load_native.

An amount of micro-bytes is two words, high and low, of which the low one has 30 bits. The product of two
numbers below 2^30 is taken in halves of 15 bits, so that no sum reaches 2^31.
"""

import micropython
from micropython import const

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
_MISSING_HIGH = const(10)
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
_LEVEL_LOW = const(7)
_LEVEL_HIGH = const(8)
_ROOM_LOW = const(9)
_ROOM_HIGH = const(10)
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
_TIER_HIGH = const(6)
_TIER_US_LOW = const(7)
_TIER_US_HIGH = const(8)
_TIER_WORDS = const(9)
# end of fields


@micropython.viper
def step(bus: ptr32, now: int) -> int:
    now = now & 0x3FFFFFFF
    if bus[_STARTED] == 0:
        bus[_STARTED] = 1
        bus[_CLOCK] = now
        return 0
    since = (now - bus[_CLOCK]) & 0x3FFFFFFF
    if since == 0 or since > 0x3FEFFFFF:
        return 0
    bus[_CLOCK] = now
    into = bus[_INTO] + since
    size = bus[_SLICE_US]
    if size:
        if into >= size:
            steps = into // size
            into -= steps * size
            if steps > 17:
                steps = 17
            running = bus[_RUNNING]
            while steps > 0:
                running += 1
                if running == 17:
                    running = 0
                ptr32(int(bus) + 4 * _SLICES + (running << 2))[0] = 0
                steps -= 1
            bus[_RUNNING] = running
    bus[_INTO] = into
    return since


@micropython.viper
def pour(bus: ptr32, since: int):
    since_high = since >> 15
    since_low = since & 0x7FFF
    limit = bus[_LIMIT]
    x = limit >> 15
    y = limit & 0x7FFF
    middle = x * since_low + y * since_high
    all_low = y * since_low + ((middle & 0x7FFF) << 15)
    all_high = x * since_high + (middle >> 15) + (all_low >> 30)
    all_low = all_low & 0x3FFFFFFF
    low = all_low + bus[_CARRY]
    high = all_high + (low >> 30)
    low = low & 0x3FFFFFFF
    opened = 0
    at = int(bus) + 4 * _RECORDS
    n = bus[_TASKS]
    while n > 0:
        n -= 1
        own = ptr32(at)
        at += 4 * _RECORD_WORDS
        level = own[_LEVEL_LOW]
        level_high = own[_LEVEL_HIGH]
        own[_ROOM_LOW] = 0
        own[_ROOM_HIGH] = 0
        if level == 0 and level_high == 0:
            continue
        x = own[_GUARANTEE]
        y = x & 0x7FFF
        x = x >> 15
        middle = x * since_low + y * since_high
        given = y * since_low + ((middle & 0x7FFF) << 15)
        given_high = x * since_high + (middle >> 15) + (given >> 30)
        given = given & 0x3FFFFFFF
        if given_high > level_high or (given_high == level_high and given >= level):
            given = level
            given_high = level_high
        high -= given_high
        if low < given:
            high -= 1
        low = (low - given) & 0x3FFFFFFF
        level_high -= given_high
        if level < given:
            level_high -= 1
        level = (level - given) & 0x3FFFFFFF
        own[_LEVEL_LOW] = level
        own[_LEVEL_HIGH] = level_high
        if level == 0 and level_high == 0:
            continue
        # What is left of the most it may get, in x (high) and y.
        x = own[_CAP]
        if x == limit:
            x = all_high
            y = all_low
        else:
            y = x & 0x7FFF
            x = x >> 15
            middle = x * since_low + y * since_high
            y = y * since_low + ((middle & 0x7FFF) << 15)
            x = x * since_high + (middle >> 15) + (y >> 30)
            y = y & 0x3FFFFFFF
        x -= given_high
        if y < given:
            x -= 1
        y = (y - given) & 0x3FFFFFFF
        if x > level_high or (x == level_high and y > level):
            x = level_high
            y = level
        own[_ROOM_LOW] = y
        own[_ROOM_HIGH] = x
        if x != 0 or y != 0:
            opened += 1
    while opened:
        if high == 0 and low < opened:
            break
        # Their quotient, in digits of 15 bits.
        part_high = 0
        part = 0
        takers = opened
        if takers:
            part_high = high // takers
            x = ((high - part_high * takers) << 15) + (low >> 15)
            part = x // takers
            x = ((x - part * takers) << 15) + (low & 0x7FFF)
            part = (part << 15) + x // takers
        at = int(bus) + 4 * _RECORDS
        n = bus[_TASKS]
        while n > 0:
            n -= 1
            own = ptr32(at)
            at += 4 * _RECORD_WORDS
            room = own[_ROOM_LOW]
            room_high = own[_ROOM_HIGH]
            if room == 0 and room_high == 0:
                continue
            x = part
            y = part_high
            if y > room_high or (y == room_high and x >= room):
                x = room
                y = room_high
                opened -= 1
            high -= y
            if low < x:
                high -= 1
            low = (low - x) & 0x3FFFFFFF
            room_high -= y
            if room < x:
                room_high -= 1
            own[_ROOM_LOW] = (room - x) & 0x3FFFFFFF
            own[_ROOM_HIGH] = room_high
            room = own[_LEVEL_LOW]
            room_high = own[_LEVEL_HIGH] - y
            if room < x:
                room_high -= 1
            own[_LEVEL_LOW] = (room - x) & 0x3FFFFFFF
            own[_LEVEL_HIGH] = room_high
    if opened == 0:
        low = 0
    bus[_CARRY] = low


@micropython.viper
def take(bus: ptr32, task: int, nbytes: int, owed: int) -> int:
    own = ptr32(int(bus) + 4 * _RECORDS + 4 * _RECORD_WORDS * task)
    # 10^6 is 30 * 2^15 + 16960.
    high = nbytes >> 15
    low = nbytes & 0x7FFF
    middle = high * 16960 + low * 30
    low = low * 16960 + ((middle & 0x7FFF) << 15)
    high = high * 30 + (middle >> 15) + (low >> 30) + own[_LEVEL_HIGH]
    low = (low & 0x3FFFFFFF) + own[_LEVEL_LOW]
    high += low >> 30
    low = low & 0x3FFFFFFF
    if owed == 0:
        # What is missing, where it is.
        free = high - own[_BURST_HIGH]
        middle = own[_BURST_LOW]
        if low < middle:
            free -= 1
        middle = (low - middle) & 0x3FFFFFFF
        if free > 0 or (free == 0 and middle != 0):
            bus[_MISSING_LOW] = middle
            bus[_MISSING_HIGH] = free
            return 1
    elif high > 0xFFFFFFF:
        high = 0xFFFFFFF
        low = 0x3FFFFFFF
    own[_LEVEL_LOW] = low
    own[_LEVEL_HIGH] = high
    at = int(bus) + 4 * _SLICES + (bus[_RUNNING] << 2)
    low = ptr32(at)[0] + nbytes
    if low > bus[_MOST]:
        low = bus[_MOST]
    ptr32(at)[0] = low
    at = int(bus) + 4 * _TOTAL_LOW + (own[_KIND] << 2)
    low = ptr32(at)[0] + nbytes
    ptr32(at)[0] = low & 0x3FFFFFFF
    at = int(bus) + 4 * _TOTAL_HIGH + (own[_KIND] << 2)
    ptr32(at)[0] = ptr32(at)[0] + (low >> 30)
    return 0


@micropython.viper
def wait(bus: ptr32, task: int) -> int:
    free = bus[_LIMIT]
    takers = 0
    at = int(bus) + 4 * _RECORDS
    n = bus[_TASKS]
    while n > 0:
        n -= 1
        own = ptr32(at)
        at += 4 * _RECORD_WORDS
        own[_ABOVE] = 0
        if own[_LEVEL_LOW] != 0 or own[_LEVEL_HIGH] != 0:
            free -= own[_GUARANTEE]
            takers += 1
            own[_ABOVE] = own[_CAP] - own[_GUARANTEE] + 1
    own = ptr32(int(bus) + 4 * _RECORDS + 4 * _RECORD_WORDS * task)
    own[_ABOVE] = 0
    part = 0
    again = 1
    while again:
        again = 0
        if takers:
            part = free // takers
        at = int(bus) + 4 * _RECORDS
        n = bus[_TASKS]
        while n > 0:
            n -= 1
            own = ptr32(at)
            at += 4 * _RECORD_WORDS
            high = own[_ABOVE]
            if high != 0 and high <= part:
                free -= high - 1
                takers -= 1
                own[_ABOVE] = 0
                again = 1
    own = ptr32(int(bus) + 4 * _RECORDS + 4 * _RECORD_WORDS * task)
    rate = own[_GUARANTEE] + part
    if rate > int(own[_CAP]):
        rate = own[_CAP]
    high = bus[_MISSING_HIGH]
    low = bus[_MISSING_LOW]
    if high >= rate:
        return 0x1FFFFFFF
    # Bit by bit: what is left stays below twice the rate.
    found = 0
    n = 30
    while n > 0:
        n -= 1
        high = (high << 1) + (low >> n & 1)
        found = found << 1
        if high >= rate:
            high -= rate
            found += 1
    if high > 0:
        found += 1
    if found > 0x1FFFFFFF:
        found = 0x1FFFFFFF
    return found


@micropython.viper
def used(bus: ptr32) -> int:
    most = bus[_MOST]
    at = int(bus) + 4 * _SLICES
    n = 17
    found = 0
    while n > 0:
        n -= 1
        found += ptr32(at)[0]
        if found > most:
            found = most
        at += 4
    return found


@micropython.viper
def yields(bus: ptr32, part: int):
    at = int(bus) + 4 * _RECORDS
    n = bus[_TASKS]
    while n > 0:
        n -= 1
        own = ptr32(at)
        at += 4 * _RECORD_WORDS
        if own[_OPTIONAL] != 0:
            above = own[_OWN_LIMIT] - own[_GUARANTEE]
            own[_CAP] = own[_GUARANTEE] + (above >> 4) * part + ((above & 15) * part + 15 >> 4)


@micropython.viper
def note(rates: ptr32, tier: int, nbytes: int, elapsed: int) -> int:
    own = ptr32(int(rates) + 4 * _TIER_RECORDS + 4 * _TIER_WORDS * tier)
    left = own[_TIER_LOW] + nbytes
    own[_TIER_LOW] = left & 0x3FFFFFFF
    own[_TIER_HIGH] = own[_TIER_HIGH] + (left >> 30)
    left = own[_TIER_US_LOW] + elapsed
    own[_TIER_US_LOW] = left & 0x3FFFFFFF
    own[_TIER_US_HIGH] = own[_TIER_US_HIGH] + (left >> 30)
    found = 0x3FFFFFFF
    whole = 0
    if elapsed:
        whole = nbytes // elapsed
    else:
        return -1
    if whole < 1074:
        rest = nbytes - whole * elapsed
        # rest * 10^6 = found * elapsed + left, by the bits of 10^6; both stay below 2^30.
        found = 0
        left = 0
        n = 20
        while n > 0:
            n -= 1
            found = found << 1
            left = left << 1
            if left >= elapsed:
                left -= elapsed
                found += 1
            if 1000000 >> n & 1:
                left += rest
                if left >= elapsed:
                    left -= elapsed
                    found += 1
        found += whole * 1000000
        if found > 0x3FFFFFFF:
            found = 0x3FFFFFFF
    if nbytes == 0:
        return found
    left = found
    if own[_AVERAGE] != 0:
        left = own[_AVERAGE] - 1
        n = found - left
        rest = own[_EIGHTHS] + (n & 7)
        left += (n >> 3) + (rest >> 3)
        own[_EIGHTHS] = rest & 7
    own[_AVERAGE] = left + 1
    n = own[_SLOW]
    if left < int(own[_BELOW]):
        n = 1
    elif left >= int(own[_FROM]):
        n = 0
    rates[_SLOW_TIERS] = rates[_SLOW_TIERS] + n - own[_SLOW]
    own[_SLOW] = n
    return found
