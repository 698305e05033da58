"""What a start has to write before anything else, a piece a call; and room made where there is none.

Until the last piece is done, a cut leaves all that was there: what is in doubt is copied to other sectors,
which are given up at the next start where they are not closed, and erased only when these are.
"""

from .log import ALL, PAGE, SUPERBLOCKS
from .opening import open_log, touches_doubtful
from .words import begin, crc, half, word

_FREE = 255
_READY = 254
_HEAD = 24
_FOOT_AT = 4064
_ENTRY = 8
_ALL = 63  # of `live`, where all of a sector is current
_WORTH = 48  # and below which it pays to copy what is
_GAIN = 3 * _ALL  # what must not be current of a slot's sectors: two are in part blank after all


def step(log):
    """The next piece. There always is one: the log is recovered when log.recovery is None."""
    erase, stage = log.recovery
    if stage == 0:
        if _firm_superblock(log):
            log.recovery[1] = 1
        else:
            open_log(log)
    elif stage == 1:
        log.erase_superblock(1 - log.super)
        log.recovery[1] = 2
    elif erase:
        s = erase.pop()
        _make_ready(log, s)
        log.free -= 1
    elif log.doubtful or log.again or max(log.open):
        _mend(log)
    else:
        log.since = log.number
        log.write_superblock()
        log.recovery = None
        log.copied = []
        log.distrusted = []
        for slot in range(log.slots):
            log._settle(slot)
    return True


def _firm_superblock(log):
    """Program the newest copy again: bits that a cut has left weak are firm then. False: this time it reads
    as something else."""
    at = PAGE * (log.super_page[log.super] - 1)
    if not log._read(log.super, at, log._views[PAGE // 8]):
        return False
    begin(log._crc)
    crc(0, PAGE - 4, log._chunk, log._crc)
    if not log._right(log._chunk, PAGE - 4):
        return False
    log.device.writeblocks(log.super, log._chunk, at)
    return True


def _mend(log):
    """One slot after the other: copy its records, close the copies, erase what was in doubt."""
    slot = 0
    while not (log.open[slot] or _waits(log, slot)):
        slot += 1
    for i in range(len(log.again)):
        if log.again[i][0] == slot:
            if log.ready < log.ahead and log.free:
                _erase_free(log)
                return
            record = log.again[i][1]
            log.again.pop(i)
            if not _copy(log, slot, record):
                if (slot, record) in log.distrusted:
                    _give_up(log, slot, record)
                else:
                    # It was being written: what is kept reads the same each time.
                    log.distrusted.append((slot, record))
                    _anew(log)
            return
    if log.open[slot]:
        log.finish(slot, 0)
    # It is all there is from now on.
    log.copied = [s for s in log.copied if log.owner[s] != slot]
    for s in log.doubtful:
        if log.owner[s] == slot:
            _make_ready(log, s)
            log.doubtful.remove(s)
            return


def _waits(log, slot):
    for each, _ in log.again:
        if each == slot:
            return True
    for s in log.doubtful:
        if log.owner[s] == slot:
            return True
    return False


def _erase_free(log):
    from .words import least_worn

    s = least_worn(log.owner, log.wear, log.cursor, log.sectors << 8 | _FREE)
    _make_ready(log, s)
    log.free -= 1


def _make_ready(log, s):
    log.erase(s)
    log.owner[s] = _READY
    log.live[s] = 0
    if s in log.copied:
        log.copied.remove(s)
    log.ready += 1


def _copy(log, slot, record):
    """Write a record of which a part may be in doubt once more. False: what was read was not what was put."""
    place = log._entry(slot, record)
    if not place:
        return True
    size = log._load(place, record, None, 0, 0)
    if size < 0:
        return False
    log._read(place >> 9, (place & 511) << 3, log._header_view)
    log._store(slot, record, size, half(log._header, 22) << 3, None, None)
    log.copied_bytes += size
    # What is in doubt may have been read as something else each time: what was written must agree with its
    # own CRC, and with that of each fragment that it was copied from.
    if log._load(log._entry(slot, record), record, None, 0, 0) != size:
        return False
    log._read(place >> 9, (place & 511) << 3, log._header_view)
    log._source(slot, record, None, None)
    while True:
        begin(log._crc)
        crc(4, _HEAD - 4, log._header, log._crc)
        rest = half(log._header, 18) << 3
        size -= rest
        if size < 0:
            return False
        while rest:
            n = min(PAGE, rest)
            log._take(n)
            crc(0, n, log._chunk, log._crc)
            rest -= n
        if not log._right(log._header, 0):
            return False
        if not size:
            return True
        place = log._follow(place >> 9, log._header, log._header_view)
        if not place:
            return False


def _anew(log):
    """Give up what this start has copied, and look again at what there is."""
    for s in list(log.copied):
        _make_ready(log, s)
    open_log(log)


def _give_up(log, slot, record):
    log.misses += 1
    log._discount(slot, log._entry(slot, record))
    log.index[log.first[slot] + record - log.base[slot]] = 0


def rewrite(log, slot, record):
    """Write the current version of a record once more, as the newest; one that cannot be read is given up."""
    place = log._entry(slot, record)
    if not place:
        return
    size = log._load(place, record, None, 0, 0)
    if size < 0:
        _give_up(log, slot, record)
        return
    log._read(place >> 9, (place & 511) << 3, log._header_view)
    log.copied_bytes += size
    log._store(slot, record, size, half(log._header, 22) << 3, None, None)


def collect(log):
    """Make room, a piece a call: records are copied out of sectors of which a part is no longer current.
    False: that would not pay, or there is no room left to do it in."""
    had = log.free
    for slot in range(log.slots):
        # Where a sector is open what it has replaced is not given up yet.
        if log.used[slot] and log.dying and not log.waits[slot] and not log.open[slot]:
            log._settle(slot)
    if log.free > had:
        return True
    if log.free + log.ready < log.reserve - log.ahead + 2:
        # What has been copied is kept from now on, and what it replaces is free.
        for slot in range(log.slots):
            if log.open[slot] and _has_dying(log, slot):
                log.finish(slot, 0)
                return True
        return False
    s = _victim(log)
    if s < 0:
        return False
    if log.ready < log.ahead:
        if not log.free:
            return False
        _erase_free(log)
        return True
    slot = log.owner[s]
    for record in _records(log, s):
        if _lies_in(log, slot, record, s):
            if not log.credit:
                return False
            log.credit -= 1
            rewrite(log, slot, record)
            return True
    log.live[s] = 0
    log.dying = True
    return True


def _victim(log):
    """The sector with the least that is current, of a slot in which a quarter is not, or with ALL two sectors
    are not; -1: there is none."""
    eager = log.collects == ALL
    for slot in range(log.slots):
        total = live = 0
        best = -1
        least = _ALL if eager else _WORTH
        for s in range(SUPERBLOCKS, log.sectors):
            if log.owner[s] == slot and s != log.open[slot]:
                here = log.live[s]
                total += _ALL
                live += min(here, _ALL)
                if 0 < here < least:
                    best = s
                    least = here
        pays = 4 * live <= 3 * total and total - live >= _GAIN
        if eager:
            pays = total - live >= 2 * _ALL
        if best >= 0 and pays and log.waits[slot] != 1:
            return best
    return -1


def _has_dying(log, slot):
    for s in range(SUPERBLOCKS, log.sectors):
        if log.owner[s] == slot and not log.live[s] and s != log.open[slot]:
            return True
    return False


def _records(log, s):
    """Records with a fragment in a closed sector."""
    log._read(s, _FOOT_AT, log._foot_view)
    entries = half(log._foot, 20)
    found = []
    for i in range(entries):
        if not log._read(s, _FOOT_AT - _ENTRY * (i + 1), log._views[1]):
            break
        found.append(word(log._chunk, 0))
    return found


def _lies_in(log, slot, record, s):
    """Whether a fragment of a record's current version does."""
    had = log.doubtful
    log.doubtful = [s]
    try:
        return touches_doubtful(log, slot, record)
    finally:
        log.doubtful = had
