"""`kvlab deploy --kv-flash`: files of 4,096 bytes on the board's littlefs, which a flash log lies in."""

import json
import subprocess
import sys

import pytest
from pty_board import PtyBoard

from kvlab.paths import ROOT
from mpy_kv.flash_log.files import BLOCK

SIZE = 12 * BLOCK

# On the board: open the log that lies in the files, add a record, tell how many there are.
ADD = """
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.files import FileBlocks
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
def new():
    return FlashLog(FileBlocks(flash, "kv"), 64, slots=1, blocks=20)
if {first}:
    format_log(new())
log = open_log(new())
while log.step():
    pass
slot = log.find(5) if log.find(5) >= 0 else log.begin(5)
log.put(slot, log.count[slot], bytes([log.count[slot]]) * 64, [0, 64])
log.sync(slot)
into = bytearray(64)
right = [log.read(slot, i, into) == 64 and into == bytes([i]) * 64 for i in range(log.count[slot])]
print(log.sectors, right)
"""


@pytest.fixture
def board(tmp_path):
    with PtyBoard(tmp_path / "flash.img") as board:
        yield board


@pytest.fixture
def deployed(kvlab, board, tmp_path):
    """`deployed(...)`: (status, figures, output, errors) of a deployment of the package alone."""

    def run(*more):
        report = tmp_path / "deploy.json"
        report.unlink(missing_ok=True)
        words = ["deploy", "--board", "rp2040", "--force", "--app", "none", "--port", board.port]
        status, out, err = kvlab(*words, *more, "--json", report)
        figures = json.loads(report.read_text()) if report.exists() else {}
        return status, figures, out, err

    return run


def on(board, code):
    command = [sys.executable, "-m", "mpremote", "connect", board.port, "resume", "exec", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_a_log_lies_in_what_is_deployed_and_stays_when_it_is_deployed_again(deployed, board):
    status, figures, out, err = deployed("--kv-flash", "48KiB", "--mpy")
    assert status == 0, err
    assert figures["kv_flash"] == {
        "bytes": SIZE, "files": 12, "made": 12, "kept": 0, "removed": 0,
        "log_version": None, "log_read": True,
    }
    assert "12 files of 4,096 bytes, 12 were made" in " ".join(out.split())
    assert "flash-log" in figures["parts"]
    assert figures["by_part"]["kv files"] == {"files": 12, "bytes": SIZE, "blocks": 12}
    assert on(board, ADD.format(first=True)) == "12 [True]"
    status, figures, out, _ = deployed("--kv-flash", str(SIZE), "--mpy")
    assert (status, figures["kv_flash"]["made"], figures["kv_flash"]["kept"]) == (0, 0, 12)
    assert figures["kv_flash"]["log_version"] == 1
    assert "the log that is there is kept, of version 1" in " ".join(out.split())
    assert on(board, ADD.format(first=False)) == "12 [True, True]"
    # Of another size: none that a log would be opened in.
    status, _, _, err = deployed("--kv-flash", "65536", "--mpy")
    assert status == 1
    assert "--kv-flash 65536: the board has a log in 12 files, 49152 bytes" in err
    assert "--kv-anew" in err
    status, figures, _, _ = deployed("--kv-flash", "65536", "--mpy", "--kv-anew")
    assert (status, figures["kv_flash"]["made"], figures["kv_flash"]["removed"]) == (0, 16, 12)
    assert on(board, ADD.format(first=True)) == "16 [True]"
