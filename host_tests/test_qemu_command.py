"""What is refused before an emulator starts, and how a script's output is told from the line's signs."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab import cli
from qemu_port import __main__ as program
from qemu_port import board, launcher
from unix_port import processes
from unix_port.errors import PortError

MARK = b"\x026d61726b"


@given(
    script=st.text(alphabet="a\x02\x04\u20ac6d1\n").filter(lambda text: MARK.decode() not in text),
    size=st.integers(1, 40),
)
def test_whatever_lies_between_the_marks_is_the_scripts(script: str, size: int) -> None:
    line = b"OK\x02" + MARK + script.replace("\n", "\r\n").encode() + MARK + b"\x04\x04>"
    seen = io.StringIO()
    output = board._Output(seen, MARK)
    for start in range(0, len(line), size):
        output.take(line[start : start + size])
    assert not output.inside
    assert output.whole
    assert output.error() == ""
    assert output.end() == seen.getvalue() == script


def test_output_that_was_cut_off_is_told() -> None:
    output = board._Output(None, MARK)
    output.take(MARK + b"so far\x026d")
    assert output.inside
    assert not output.whole
    assert output.end() == "so far\x026d"


@pytest.mark.parametrize("size", [1, 30, 1000])
def test_a_crash_is_seen_however_the_line_comes_in_pieces(size: int) -> None:
    line = MARK + b"here\r\nHardFault exception caught:\r\n" + b"R0:   F0000000\r\n" * 20
    output = board._Output(None, MARK)
    for piece in (line, b"xPSR: 21000000\r\n"):
        assert not output.crashed
        for start in range(0, len(piece), size):
            output.take(piece[start : start + size])
    assert output.crashed
    together = board._Output(None, MARK)
    together.take(line + b"xPSR: 21000000\r\n")
    assert together.crashed


@pytest.mark.parametrize("seconds", [1e10, 1e308])
def test_a_long_time_is_waited_for(seconds: float) -> None:
    with processes.started(["sleep", "60"]) as process, board._Deadline(seconds, process) as deadline:
        deadline.join(0.05)
        assert deadline.is_alive()
        assert process.poll() is None
    assert not deadline.expired


def test_what_has_no_room_is_told() -> None:
    with pytest.raises(board.NoRoom, match="1,000 bytes free: 16 more than the firmware's heap") as short:
        board._check_room("RuntimeError: the firmware's heap is 16 bytes too small for this fence", 1000)
    assert short.value.missing_bytes == 16
    with pytest.raises(board.NoRoom, match="no room to start the script") as full:
        board._check_room("Traceback:\nMemoryError: memory allocation failed, allocating 9 bytes\n", 0)
    assert full.value.missing_bytes is None
    board._check_room("Traceback:\nMemoryError:\nOSError: 5", 0)


def test_what_the_board_cannot_have_as_text() -> None:
    assert board.board_text(Path("/\u20ac")) == "/\u20ac"
    with pytest.raises(PortError, match=r"^'/\\udcff.py': not UTF-8 text$"):
        board.board_text(Path("/\udcff.py"))


@pytest.fixture
def no_board(monkeypatch) -> None:
    """The end of the test that would start one."""
    for module in (program, launcher):
        monkeypatch.setattr(module, "Qemu", lambda *words, **how: pytest.fail("an emulator starts"))


@pytest.mark.usefixtures("no_board")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--timeout", "nan"], "--timeout"),
        (["--timeout", "inf"], "--timeout"),
        (["--timeout", "-1"], "--timeout"),
        (["--timeout", "0"], "--timeout"),
        (["--json", "{tmp}"], "--json {tmp}: is a folder"),
        (["--json", "{tmp}/script.py/x"], "--json {tmp}/script.py/x: cannot"),
        (["--json", "{tmp}/script.py"], "would overwrite the file of SCRIPT"),
        (["--model", "/dev/zero"], "--model /dev/zero: is a device"),
        (["--model", "{tmp}"], "--model {tmp}: is a folder"),
        (["--model", "{tmp}/gone"], "--model {tmp}/gone: no such file"),
        (["--model", "{tmp}/big"], "/big: 16,777,217 bytes; the machine has room for 16,777,216"),
        (["--model", "{tmp}/script.py", "--machine", "rv32"], "--machine rv32 has no memory-mapped flash"),
        (["--fence", "-1"], "--fence -1: give 16"),
        (["--fence", "1"], "--fence 1: give 16"),
        (["--fence", "600000"], "--fence 600,000: more than the --heap of 524,288"),
        (["--fence", "9" * 30], "--fence"),
        (["--heap", "1"], "--heap 1: --machine arm takes 32,768 to 3,145,728"),
        (["--heap", "2000000", "--machine", "rv32"], "--machine rv32 takes 32,768 to 1,048,576"),
    ],
)
def test_bad_input_is_refused_before_the_run(
    words: list[str], told: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('ran')")
    with (tmp_path / "big").open("wb") as big:
        big.truncate(board.FLASH_BYTES + 1)
    words = [word.format(tmp=tmp_path) for word in words]
    monkeypatch.setattr(sys, "argv", ["qemu_port", *words, str(script)])
    with pytest.raises(SystemExit) as end:
        program.main()
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (2, "")
    assert err.startswith("qemu_port: error: ")
    assert err.count("\n") == 1
    assert told.format(tmp=tmp_path) in err
    assert script.read_text() == "print('ran')"


@pytest.mark.usefixtures("no_board")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--heap-bytes", "3MiB"], "--heap-bytes: 3,145,728 bytes; --board qemu_arm takes 2,048 to 3,0"),
        (["--flash-out", "{tmp}/flash"], "--flash-out: the flash of qemu_arm cannot be written"),
        (["--timeout", "nan"], "--timeout"),
        (["--timeout", "0"], "--timeout"),
    ],
)
def test_the_board_has_its_limits(words: list[str], told: str, tmp_path: Path, capsys) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('ran')")
    words = [word.format(tmp=tmp_path) for word in words]
    assert cli.main(["emulate", str(script), "--board", "qemu_arm", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.count("\n") == 1


def test_the_largest_fence_is_in_the_largest_firmware() -> None:
    most = launcher.MOST_HEAP_BYTES
    assert most % launcher.BLOCK_BYTES == 0
    assert launcher.firmware_heap_bytes(most) <= board.firmware.MOST_HEAP_BYTES
    assert launcher.firmware_heap_bytes(most + launcher.BLOCK_BYTES) > board.firmware.MOST_HEAP_BYTES


def test_a_cache_that_cannot_be_used_is_one_line(tmp_path: Path, monkeypatch, capsys) -> None:
    script = tmp_path / "script.py"
    script.write_text("pass")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.delenv("MICROPYTHON_SRC", raising=False)
    monkeypatch.setattr(board.shutil, "which", lambda name: name)
    assert cli.main(["emulate", str(script), "--board", "qemu_arm"]) == 2
    monkeypatch.setattr(sys, "argv", ["qemu_port", str(script)])
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code == 2
    problem = "error: the cache /dev/null/kvlab/firmware: Not a directory"
    problem += "; XDG_CACHE_HOME names another place\n"
    assert capsys.readouterr().err == f"kvlab: {problem}qemu_port: {problem}"
