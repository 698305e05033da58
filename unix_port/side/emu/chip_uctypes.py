"""Stand-in for `uctypes`: flash has the addresses of the chip, all else its own.

The real one is a part of the interpreter and hides a file of its name: `install` puts this one before it.
"""

import sys
import uctypes as real

from emu import flash

_FLASH_AT = 0x10000000


def addressof(of):
    at = real.addressof(of)
    for part, begin in ((flash.image, flash.storage_at), (flash.below, flash.storage_at - len(flash.below))):
        offset = at - real.addressof(part) if part else -1
        if 0 <= offset < len(part):
            return _FLASH_AT + begin + offset
    return at


def bytearray_at(at, size):
    """A view; of flash that nothing was put into, and of what reaches beyond one of its parts, a copy."""
    begin = at - _FLASH_AT - flash.storage_at  # from the begin of the storage
    if not -flash.storage_at <= begin < flash.size:
        return real.bytearray_at(at, size)
    if begin >= 0 and begin + size <= flash.size:
        return real.bytearray_at(real.addressof(flash.image) + begin, size)
    from_below = begin + len(flash.below)
    if from_below >= 0 and begin + size <= 0:
        return real.bytearray_at(real.addressof(flash.below) + from_below, size)
    copy = bytearray(b"\xff" * size)
    for part, start in ((flash.below, -len(flash.below)), (memoryview(flash.image)[: flash.size], 0)):
        first, last = max(begin, start), min(begin + size, start + len(part))
        if first < last:
            copy[first - begin : last - begin] = part[first - start : last - start]
    return copy


def install():
    """From now on `import uctypes` finds this module."""
    module = sys.modules[__name__]
    for name in dir(real):
        if not hasattr(module, name):
            setattr(module, name, getattr(real, name))
    sys.modules["uctypes"] = module
