"""The clock of the core, no faster than its maker certifies. Transient (mpy_kv/transient.py): set once.

machine.freq() sets a clock and leaves the voltage of the core alone. An RP2040 starts with 1.10 V, enough for
133 MHz; it is certified for 200 MHz at 1.15 V or more (SYS_CLK_VREG_VOLTAGE_MIN in pico-sdk's
hardware/clocks.h). So above 133 MHz its regulator is set first: register VREG, RP2040 datasheet, section
2.10.6. An ESP32's firmware chooses the voltage by itself and refuses clocks that the chip has not.
"""

import time

from mpy_kv.errors import BadArgument

try:
    import machine
except ImportError:  # a port without a clock to set
    machine = None

# What an rp2 chip says of itself, its revision left out: its name, the most at the voltage of a start, and
# the most.
_CHIPS = {
    0x0002927: ("RP2040", 133_000_000, 200_000_000),
    0x0004927: ("RP2350", 150_000_000, 150_000_000),
}
_CHIP_ID = 0x40000000  # SYSINFO, of both
_VREG = 0x40064000  # VREG_AND_CHIP_RESET of an RP2040

# Of VREG: off, or output not driven; the voltage; it is reached.
_EN, _HIZ = 1, 2
_VSEL, _VSEL_BITS = 4, 0xF0
_ROK = 0x1000
_LOWEST_V = 12  # 1.15 V; one more is 0.05 V more

_MOST_MS = 20  # until it is reached; one is what pico-sdk waits


def set_clock(hz):
    """Set it. BadArgument where it is more than certified, or nothing is known of the chip."""
    if not isinstance(hz, int) or hz < 1:
        raise BadArgument("freq must be a clock in Hz, such as 125000000, got %r" % (hz,))
    if machine is None or not hasattr(machine, "freq"):
        raise BadArgument("freq %d: nothing here sets a clock" % hz)
    try:
        import rp2  # noqa: F401
    except ImportError:
        pass
    else:
        _prepare_rp2(hz)
    try:
        if machine.freq() != hz:
            machine.freq(hz)
    except ValueError as error:
        raise BadArgument("freq %d: %s" % (hz, error))


def _prepare_rp2(hz):
    """Voltage for a clock."""
    chip = machine.mem32[_CHIP_ID] & 0x0FFFFFFF
    if chip not in _CHIPS:
        raise BadArgument("freq %d: unknown chip %07x, of which no clock is known to be safe" % (hz, chip))
    name, as_started, most = _CHIPS[chip]
    if hz > most:
        raise BadArgument("freq %d: an %s is certified for %d" % (hz, name, most))
    if hz > as_started:
        _raise_voltage(hz)


def _raise_voltage(hz):
    now = machine.mem32[_VREG]
    if now & (_EN | _HIZ) != _EN:
        raise BadArgument("freq %d: the chip's regulator is off, the voltage comes from elsewhere" % hz)
    if (now & _VSEL_BITS) >> _VSEL < _LOWEST_V:
        machine.mem32[_VREG] = now & ~(_VSEL_BITS | _ROK) | _LOWEST_V << _VSEL
    for _ in range(_MOST_MS):
        time.sleep_ms(1)
        if machine.mem32[_VREG] & _ROK:
            return
    raise BadArgument("freq %d: the regulator does not reach its voltage" % hz)
