"""Where the bytes of a record lie in the region, and reading them there.

Fragments begin at multiples of 8 bytes and are cut only at the `step` that put() was given, so that rows can
be read where they lie. Transient (mpy_kv/transient.py).
"""

from .words import half, word

_HEAD = 24


def where(log, slot, record):
    """A new list of (sector, offset in it, bytes), in the order of the record; None, and a miss, where it is
    absent or its headers do not agree. Until the next put() or step() its bytes are there, on multiples of 8.
    Reads headers only: whether the bytes are right read() says."""
    found = _fragments(log, slot, record)
    if found is None:
        log.misses += 1
    return found


def _fragments(log, slot, record):
    place = log._entry(slot, record)
    header = log._header
    if not place or not log._read(place >> 9, (place & 511) << 3, log._header_view):
        return None
    found = []
    number = word(header, 4)
    done = 0
    while True:
        here, size = half(header, 18) << 3, half(header, 20) << 3
        wrong = word(header, 4) != number or word(header, 8) != record or half(header, 16) << 3 != done
        if wrong or not here or done + here > size:
            return None
        found.append((place >> 9, ((place & 511) << 3) + _HEAD, here))
        done += here
        if done == size:
            return found
        place = log._follow(place >> 9, header, log._header_view)
        if not place:
            return None
