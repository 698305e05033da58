"""Stand-in for `machine.mem32` of an rp2 chip: the registers that a clock is set with.

An RP2040's regulator tells that its voltage is reached (ROK) after a millisecond.
"""

from time import ticks_diff, ticks_us

_CHIP_ID = 0x40000000
_VREG = 0x40064000

_IDS = {"RP2040": 0x20002927, "RP2350": 0x20004927}
_AT_START = 0x10B1  # 1.10 V, on, reached
_WRITABLE = 0xF3
_ROK = 0x1000
_SETTLE_US = 1000


class Registers:
    """Words by address. ValueError for one that is not here."""

    def __init__(self, chip):
        self.chip = chip
        self.vreg = _AT_START
        self.changed_us = None

    def __getitem__(self, address):
        if address == _CHIP_ID:
            return _IDS[self.chip]
        if address == _VREG and self.chip == "RP2040":
            if self.changed_us is not None and ticks_diff(ticks_us(), self.changed_us) >= _SETTLE_US:
                self.vreg |= _ROK
            return self.vreg
        raise ValueError("no register at 0x%08x here" % address)

    def __setitem__(self, address, value):
        if address != _VREG or self.chip != "RP2040":
            raise ValueError("no register to write at 0x%08x here" % address)
        self.vreg = value & _WRITABLE
        self.changed_us = ticks_us()

    def most_hz(self, most):
        """The most that the core's voltage allows now, of a chip that goes to `most`."""
        if self.chip != "RP2040":
            return most
        now = self[_VREG]
        high = now & _ROK and now >> 4 & 15 >= 12
        return most if high else 133_000_000
