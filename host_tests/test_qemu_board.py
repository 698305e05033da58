"""The emulated 32-bit board: what a script sees there, what is told of it, and that it outlives no run."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import left
import pytest
import qemu_fixtures

from kvlab import boards, cli
from qemu_port import launcher
from qemu_port.board import FLASH_BYTES, NoRoom, Qemu
from unix_port import processes
from unix_port.errors import PortError

M3 = boards.load("qemu_arm")


@pytest.fixture(scope="module")
def firmware_is_there() -> None:
    """The firmware of the board's own heap, which the launcher takes for every fence up to it."""
    qemu_fixtures.needed_by("qemu_arm")


pytestmark = pytest.mark.usefixtures("firmware_is_there")


def emulators() -> list[int]:
    """Emulators of this process that are there."""
    return [pid for pid, name in left.bearing(processes._watched.mark) if name.startswith("qemu-system-")]


def emulate(tmp_path: Path, source: str, *args: object, **how) -> launcher.Report:
    script = tmp_path / "script.py"
    script.write_text(source)
    return launcher.emulate(script, args, M3.machine, timeout_s=60, **how)


def test_it_is_a_32_bit_board(qemu) -> None:
    said = qemu.run(
        "import sys, struct\nprint(sys.platform, sys.maxsize, struct.calcsize('P'), sys.argv[1:])", ["a b"]
    )
    assert said == "qemu 2147483647 4 ['a b']\n"


FILES = """
import io, json, os, sys
from array import array
folder = sys.argv[1]
name = folder + "/made"
with open(name, "wb") as f:
    f.write(array("h", [1, -2, 3]))
    f.write(memoryview(b"0123456789")[2:5])
    f.seek(1)
    f.write(b"!")
with open(name, "ab") as f:
    f.write(b"end")
with open(name, "rb") as f:
    words = array("h", [0, 0, 0])
    print(f.readinto(words), list(words), f.read(2), f.tell())
    print(f.seek(-3, 2), f.read(), f.read(), f.readinto(bytearray(4)))
with open(name, "w") as f:
    print("zwei\\nZeilen \\u00e4", file=f)
with open(name) as f:
    print([f.readline(), f.read(), f.readline()])
with open(name) as f:
    print(list(f), os.stat(name)[6], hex(os.stat(folder)[0]))
os.rename(name, name + "2")
for call, argument in ((open, name), (os.stat, name), (os.remove, name), (open, folder + "/no/such")):
    try:
        call(argument)
        print("done")
    except OSError as error:
        print(error.errno)
os.remove(name + "2")
json.dump({"a": [1, None]}, open(name, "w"))
print(json.load(open(name)))
"""


def test_it_sees_the_files_of_this_machine(qemu, tmp_path: Path) -> None:
    assert qemu.run(FILES, [tmp_path]).splitlines() == [
        "6 [8449, -2, 3] b'23' 8",
        "9 b'end' b'' 0",
        "['zwei\\n', 'Zeilen \\xe4\\n', '']",
        "['zwei\\n', 'Zeilen \\xe4\\n'] 15 0x4000",
        *("2" for _ in range(4)),
        "{'a': [1, None]}",
    ]
    assert (tmp_path / "made").read_text() == '{"a": [1, null]}'


def test_a_relative_path_starts_where_we_are(qemu, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("import sys\nopen('made', 'w').write(sys.argv[0])")
    qemu.run(Path("script.py"))
    assert (tmp_path / "made").read_text() == "/script/script.py"


def test_every_run_starts_anew(qemu) -> None:
    source = "import gc, sys\nprint(gc.mem_alloc(), sorted(sys.modules))\n"
    spoil = "import micropython, mpy_kv\nKEEP = bytearray(100000)\nmicropython.heap_lock()\n"
    first = qemu.run(source)
    qemu.run(spoil)
    assert qemu.run(source) == first
    assert "mpy_kv" not in first


def test_the_collector_of_the_next_script_is_on(qemu) -> None:
    qemu.run("import gc; gc.disable()")
    assert qemu.run("import gc; print(gc.isenabled())").strip() == "True"


def test_how_a_script_ends(qemu) -> None:
    board = qemu.board
    assert board.run("raise SystemExit(3)").status == 3
    assert board.run("import sys\nsys.exit()").status == 0
    assert board.run("raise SystemExit('no')").status == 1
    done = board.run("print('so far')\n{}['x']")
    assert (done.status, done.stdout) == (1, "so far\n")
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("KeyError: x\n")


def test_output_comes_as_it_is_made(qemu) -> None:
    seen = io.StringIO()
    done = qemu.board.run("import sys\nsys.stdout.write(b'\\xe2\\x82\\xac')\nprint('\\r\\n.')", stream=seen)
    assert seen.getvalue() == done.stdout == "\u20ac\n.\n"


def test_a_script_prints_any_byte(qemu) -> None:
    """Those that end a command's output on the line too."""
    script = "print('a\\x04b\\x04\\x04>', end='')\nprint('\\x02\\x01c')"
    done = qemu.board.run(script)
    assert (done.status, done.stdout, done.stderr) == (0, "a\x04b\x04\x04>\x02\x01c\n", "")
    done = qemu.board.run("print('\\x04')\nraise ValueError('\\x04')")
    assert (done.status, done.stdout) == (1, "\x04\n")
    assert done.stderr.endswith("ValueError: \x04\n")


def test_what_cannot_start_is_told(qemu) -> None:
    board = qemu.board
    with pytest.raises(NoRoom, match="more than the firmware's heap has left") as short:
        board.run("print('ran')", fence_bytes=launcher.firmware.MOST_HEAP_BYTES)
    assert 0 < short.value.missing_bytes < 500_000
    with pytest.raises(PortError, match="not UTF-8 text"):
        board.run("print('ran')", ["\udcff"])
    with pytest.raises(PortError, match="timeout"):
        board.run("print('ran')", timeout_s=float("nan"))
    assert board.run("print('ran')", timeout_s=1e308).stdout == "ran\n"


def test_arguments_that_fill_the_heap_do_not_fit(tmp_path: Path) -> None:
    report = emulate(tmp_path, "print('ran')", "x" * 100_000)
    assert (report.outcome, report.fits, report.stdout, report.stderr) == ("does not fit", False, "", "")
    assert "arguments" in report.verdict


def test_the_search_for_a_heap_ends_at_the_largest(tmp_path: Path, capfd) -> None:
    script = tmp_path / "script.py"
    script.write_text("bytearray(9 << 20)")
    most = str(launcher.MOST_HEAP_BYTES)
    assert cli.main(["emulate", str(script), "--board", "qemu_arm", "--heap-bytes", most, "--peak"]) == 1
    assert "does not fit" in capfd.readouterr().err


def test_a_board_that_resets_itself_is_told_once(tmp_path: Path) -> None:
    report = emulate(tmp_path, "import machine\nprint('here')\nmachine.reset()")
    assert (report.outcome, report.stdout, report.stderr) == ("crashed", "here\n", "")
    assert "machine.reset()" in report.verdict


@pytest.mark.parametrize(
    ("source", "status"),
    [("while True: pass", None), ("import machine\nmachine.mem32[0xF0000000]", -11)],
    ids=["endless", "fault"],
)
def test_a_board_that_hangs_is_killed(source: str, status: int | None, tmp_path: Path) -> None:
    elf = qemu_fixtures.built(launcher.firmware_heap_bytes(M3.machine.heap_bytes))
    with Qemu(elf=elf) as board:
        done = board.run("print('here')\n" + source, timeout_s=2)
        assert done.status == status
        assert done.stdout.startswith("here\n")
        assert done.stderr == ""
        assert board.ended
        assert emulators() == []
        assert board.run("print('again')").stdout == "again\n"
        assert not board.ended
    with pytest.raises(PortError, match="the board is closed"):
        board.run("pass")
    report = emulate(tmp_path, source, heap_bytes=100_000) if status else None
    assert report is None or (report.outcome, report.fits) == ("crashed", False)
    assert report is None or "HardFault exception caught" in report.stdout


@pytest.mark.parametrize("fixture", ["qemu", "qemu_riscv"])
def test_a_board_between_runs_uses_no_processor(fixture: str, request) -> None:
    """Nothing is left that could."""
    one = request.getfixturevalue(fixture)
    one.run("print('ran')")
    assert emulators() == []


@pytest.mark.parametrize("heap", [M3.machine.heap_bytes, 100_000, 300_000])
def test_the_fence_is_exact(heap: int, tmp_path: Path) -> None:
    report = emulate(tmp_path, "pass", heap_bytes=heap)
    assert report.ok
    assert report.heap_limit_bytes == heap // 16 * 16


def test_the_heap_is_one_piece(tmp_path: Path) -> None:
    size = M3.machine.largest_object_bytes
    assert emulate(tmp_path, f"bytearray({size})").fits
    report = emulate(tmp_path, f"x = bytearray({size + 1024})")
    assert report.outcome == "does not fit"
    assert report.verdict.startswith("does not fit: MemoryError: memory allocation failed, allocating")


def test_the_report(tmp_path: Path) -> None:
    report = emulate(
        tmp_path,
        "import sys\nfrom emu import mark, sample\nx = bytearray(30000)\nmark('all')\nx = None\n"
        "mark('less')\nsample()\nprint(sys.argv[1])",
        "word",
    )
    assert (report.ok, report.stdout, report.board) == (True, "word\n", "qemu_arm")
    assert [mark.label for mark in report.marks] == ["all", "less"]
    assert 30_000 <= report.heap_live_peak_bytes < 32_000
    assert report.heap_live_end_bytes < 2_000
    assert report.allocated_bytes > 30_000
    assert 0 < report.instructions < 10_000_000
    assert report.figures()["fits"] is True


def test_what_lies_in_flash(tmp_path: Path) -> None:
    source = "from uctypes import bytearray_at\nprint(bytes(bytearray_at(0x21000000, 6)))"
    flash = [launcher.FlashFile(b"two", 3), launcher.FlashFile(b"one", 0)]
    assert emulate(tmp_path, source, flash=flash).stdout == "b'onetwo'\n"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"flash": [launcher.FlashFile(b"abc"), launcher.FlashFile(b"x", 2, "second")]},
            "second at 2 overlaps",
        ),
        ({"flash": [launcher.FlashFile(bytes(9), 1441784)]}, "do not fit the 1,441,792 bytes of flash"),
        ({"heap_bytes": 64 << 20}, "a heap of 67,108,864 bytes: the emulated machine has no such"),
        ({"heap_bytes": 0}, "a heap of 0 bytes"),
        ({"cut_after": 0}, "the flash of qemu_arm cannot be written"),
    ],
)
def test_what_cannot_be_is_refused(how: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(PortError) as refused:
        emulate(tmp_path, "pass", **how)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_emulator_is_one_line(monkeypatch, tmp_path: Path) -> None:
    elf = qemu_fixtures.built(launcher.firmware_heap_bytes(M3.machine.heap_bytes))
    with pytest.raises(PortError, match="16,777,217 bytes of flash; the machine has 16,777,216"):
        Qemu(elf=elf, flash=bytes(FLASH_BYTES + 1))
    with (
        Qemu(elf=tmp_path / "gone") as board,
        pytest.raises(PortError, match="gone does not start: .*[Cc]ould not load kernel"),
    ):
        board.run("pass")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        PortError, match="no qemu-system-arm here; on Debian: apt-get install qemu-system-arm"
    ):
        Qemu(elf=elf)


COUNT = """
import json
import micropython
from array import array
from instructions import count, elapsed, instructions, ticks, PER_TICK

@micropython.asm_thumb
def spin(r0):
    label(AGAIN)
    sub(r0, r0, 1)
    bne(AGAIN)

def nothing():
    pass

def spun(n):
    # Instructions of n turns of the loop.
    a = ticks()
    spin(10)
    b = ticks()
    spin(n + 10)
    return PER_TICK * (elapsed(b, ticks()) - elapsed(a, b))

def cost():
    # Bytes that counting allocates.
    before = micropython.mem_total()
    start = ticks()
    instructions(start, ticks())
    elapsed(start, ticks())
    return micropython.mem_total() - before

print(json.dumps([
    [spun(n) - 2 * n for n in (0, 0, 1000, 100000, 400000000)][1:],  # names are found later the first time
    max([count(nothing) for _ in range(5)]),
    count(spin, 100000),
    cost(),
]))
"""


def test_instructions_are_counted(qemu) -> None:
    """A loop of two instructions, in steps of 40, for up to most of a second of the board's time: longer
    than SysTick counts. What is added for the arguments is the same for all."""
    errors, nothing, call, allocated = json.loads(qemu.run(COUNT))
    assert all(abs(n - errors[0]) <= 80 for n in errors), errors
    assert errors[0] <= 400
    assert nothing <= 80
    # Its argument costs a tuple.
    assert abs(call - 200_000) <= 2_000
    assert allocated == 0


def test_a_missing_tool_is_a_skip_that_ci_does_not_allow(monkeypatch) -> None:
    monkeypatch.setattr(qemu_fixtures.shutil, "which", lambda name: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="32-bit firmware: no make, arm-none-eabi-gcc, qemu-"):
        qemu_fixtures.built(100_000)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="32-bit firmware: no make, arm-none-eabi-gcc, qemu-"):
        qemu_fixtures.built(100_000)


def test_instructions_of_the_riscv_machine(qemu_riscv) -> None:
    said = qemu_riscv.run(
        "from instructions import count, PER_TICK\n"
        "def spin(n):\n    while n:\n        n -= 1\n"
        "print(PER_TICK, count(spin, 2000) - count(spin, 1000), count(spin, 3000) - count(spin, 2000))"
    )
    per_tick, first, second = map(int, said.split())
    assert per_tick == 32
    assert abs(first - second) <= 0.02 * first


def test_the_command_line(tmp_path: Path, capfd) -> None:
    script, figures = tmp_path / "script.py", tmp_path / "figures.json"
    script.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(int(sys.argv[1]))")
    command = [
        sys.executable,
        "-m",
        "qemu_port",
        "--fence",
        "50000",
        "--json",
        figures,
        script,
        "3",
        "--loud",
    ]
    done = processes.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "['3', '--loud']\n", "")
    assert json.loads(figures.read_text())["heap_limit_bytes"] == 50_000
    assert cli.main(["emulate", str(script), "--board", "qemu_arm", "--", "0"]) == 0
    assert "32-bit words" in capfd.readouterr().out
