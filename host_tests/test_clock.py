"""The clock of a board: voltage before clock, and what is refused."""

import textwrap

import pytest

from kvlab import boards
from unix_port import launcher

PICO = boards.load("rp2040").machine
PICO2 = boards.load("rp2350").machine

VREG = 0x40064000

# Tells what the chip is asked for, in its order; `chip` and `vreg` as the chip has them at first.
RECORDED = """
    import machine
    from stories import clock
    from mpy_kv.errors import BadArgument

    class Recorded:
        vreg, chip, ready = {vreg}, {chip}, {ready}
        clock_hz = 125_000_000
        mem32 = property(lambda self: self)

        def __getitem__(self, address):
            return {{0x40000000: self.chip, 0x40064000: self.vreg | self.ready}}[address]

        def __setitem__(self, address, value):
            print("write %x %x" % (address, value))
            self.vreg = value

        def freq(self, hz=None):
            if hz is None:
                return self.clock_hz
            print("freq", hz)

    clock.machine = Recorded()
    try:
        clock.set_clock({hz})
    except BadArgument as error:
        print(error)
    """


@pytest.fixture
def asked(tmp_path):
    """`asked(hz, ...)`: what the chip is asked for, and what is refused."""

    def run(hz, chip=0x20002927, vreg=0xB1, ready=0x1000, machine=PICO):
        path = tmp_path / "script.py"
        source = RECORDED.format(hz=hz, chip=chip, vreg=vreg, ready=ready)
        path.write_text(textwrap.dedent(source))
        report = launcher.emulate(path, [], machine, compiled=True, timeout_s=60)
        assert report.outcome == "ok", report.stderr
        return report.stdout.splitlines()

    return run


def test_the_voltage_comes_before_the_clock(asked):
    assert asked(200_000_000) == [f"write {VREG:x} c1", "freq 200000000"]


def test_a_voltage_that_suffices_is_left(asked):
    assert asked(200_000_000, vreg=0xD1) == ["freq 200000000"]
    assert asked(133_000_000) == ["freq 133000000"]


def test_a_clock_that_is_set_already_is_left(asked):
    assert asked(125_000_000) == []


@pytest.mark.parametrize(
    ("hz", "how", "said"),
    [
        (200_000_001, {}, "an RP2040 is certified for 200000000"),
        (200_000_000, {"vreg": 0xB0}, "the chip's regulator is off, the voltage comes from elsewhere"),
        (200_000_000, {"vreg": 0xB3}, "the chip's regulator is off, the voltage comes from elsewhere"),
        (133_000_001, {"ready": 0}, "the regulator does not reach its voltage"),
        (125_000_001, {"chip": 0x20003927}, "unknown chip 0003927, of which no clock is known to be safe"),
        (150_000_001, {"chip": 0x20004927, "machine": PICO2}, "an RP2350 is certified for 150000000"),
    ],
)
def test_what_is_refused_sets_no_clock(asked, hz, how, said):
    *_, last = lines = asked(hz, **how)
    assert last == f"freq {hz}: {said}"
    assert not any(line == f"freq {hz}" for line in lines)


@pytest.mark.parametrize("hz", ["0", "-1", "1.5e8", "'200'"])
def test_what_is_no_clock(asked, hz):
    (said,) = asked(hz)
    assert said.startswith("freq must be a clock in Hz")


def test_an_esp32_refuses_by_itself(tmp_path):
    """Its firmware knows the chip; the emulated one, the most of the board."""
    path = tmp_path / "script.py"
    path.write_text("from stories.clock import set_clock\nset_clock(80_000_000)\nset_clock(240_000_000)\n")
    machine = boards.load("esp32c3").machine
    report = launcher.emulate(path, [], machine, compiled=True, timeout_s=60)
    assert "freq 240000000: frequency 240000000: the board goes to 160000000" in report.stderr
    assert report.clock_hz == 80_000_000


NO_CLOCK = """
from mpy_kv.errors import BadArgument
from stories.clock import set_clock
try:
    set_clock(125_000_000)
except BadArgument as error:
    print(error)
"""


def test_where_nothing_sets_a_clock(upy):
    assert upy.run(NO_CLOCK) == "freq 125000000: nothing here sets a clock\n"
