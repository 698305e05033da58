"""`kvlab deploy --kv-flash`: files of 4,096 bytes on the board's littlefs, which a flash log lies in."""

import json
import re
import subprocess
import sys

import pytest
from pty_board import PtyBoard
from tiny_model import write_tiny

from kvlab.deploy import link
from kvlab.parts import ask
from kvlab.paths import ROOT
from mpy_kv.flash_log.files import BLOCK

SIZE = 12 * BLOCK

# The storage of PtyBoard as rp2.Flash gives it: programming only clears bits, erasing sets them.
NOR = """
class Nor:
    readblocks = flash.readblocks
    def writeblocks(self, block, buf, offset=0):
        had = bytearray(len(buf))
        flash.readblocks(block, had, offset)
        for i in range(len(buf)):
            had[i] &= buf[i]
        flash.writeblocks(block, had, offset)
    def ioctl(self, op, arg):
        if op == 6:
            flash.writeblocks(arg, b"\\xff" * 4096, 0)
        return flash.ioctl(op, arg)
nor = Nor()
class Rp2:
    Flash = staticmethod(lambda: nor)
sys.modules["rp2"] = Rp2
"""

# On the board: open the log that lies in the files, add a record, tell how many there are.
ADD = """
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.files import FileBlocks
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
def new():
    return FlashLog(FileBlocks(nor, "kv"), 64, slots=1, blocks=20)
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
    with PtyBoard(tmp_path / "flash.img", more=NOR) as board:
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
    # A model of random weights tells bytes that are no UTF-8.
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=ROOT, timeout=60, check=False
    )
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
    assert figures["parts"] == "all"
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


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ("131000", "--kv-flash 131000: no multiple of 4,096 bytes, a block of the flash; 126976 or 131072"),
        ("4096", "--kv-flash 4096: too small for a log: the smallest takes 40960 bytes"),
        ("1", "--kv-flash 1: no multiple of 4,096 bytes, a block of the flash; 40960 or 45056 are"),
        ("4100096", "--kv-flash 4100096: too large: 1000 files make 4096000 bytes"),
        ("0", "--kv-flash 0"),
    ],
)
def test_sizes_that_are_none(kvlab, size, says):
    status, _, err = kvlab("deploy", "--board", "rp2040", "--dry-run", "--kv-flash", size)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1


def test_anew_needs_a_size(kvlab):
    status, _, err = kvlab("deploy", "--board", "rp2040", "--dry-run", "--kv-anew")
    assert status == 2
    assert "--kv-anew: needs --kv-flash" in err


def test_a_dry_run_counts_the_files(kvlab, monkeypatch, tmp_path):
    """And makes none. More than there is room for is refused before anything is written."""
    monkeypatch.setattr(link.list_ports, "comports", list)
    report = tmp_path / "deploy.json"
    words = ("deploy", "--board", "rp2040", "--app", "none", "--mpy", "--part", "flash-log", "--dry-run")
    assert kvlab(*words, "--json", report)[0] == 0
    without = json.loads(report.read_text())
    status, out, _ = kvlab(*words, "--kv-flash", 100 * BLOCK, "--json", report)
    figures = json.loads(report.read_text())
    assert status == 0
    assert "100 files of 4,096 bytes, 100 would be made" in " ".join(out.split())
    assert figures["files"] - without["files"] == 100
    assert figures["blocks"] - without["blocks"] == 100 + 2 + 6  # a folder, which takes more pairs of blocks
    assert figures["needed_blocks"] - without["needed_blocks"] == 108
    assert figures["copied"] == without["copied"]
    status, _, err = kvlab(*words, "--kv-flash", 340 * BLOCK)
    assert status == 1
    assert "blocks of 4,096" in err
    assert "a smaller --kv-flash" in err


def test_files_without_a_log_are_completed(deployed, board):
    """Also after the power went while they were made, or of another size."""
    assert deployed("--kv-flash", SIZE, "--mpy")[0] == 0
    on(board, "import os\nfor i in (0, 3, 11): os.remove('kv/%03d' % i)\nopen('kv/005', 'w').close()")
    on(board, "for name in ('notes.txt', '007.part'):\n with open('kv/' + name, 'w') as f: f.write('mine')")
    status, figures, out, _ = deployed("--kv-flash", SIZE - BLOCK, "--mpy")
    assert status == 0
    assert figures["kv_flash"]["made"] == 3
    assert figures["kv_flash"]["kept"] == 8
    assert figures["kv_flash"]["removed"] == 2
    assert "8 were there" in out
    names = [f"{i:03d}" for i in range(11)]
    assert on(board, "print(sorted(os.listdir('kv')))") == str([*names, "notes.txt"])
    assert on(board, ADD.format(first=True)) == "11 [True]"


def test_a_log_of_another_version_is_kept_and_told(deployed, board):
    """Its format is the new mpy_kv's business, which refuses it by its version."""
    assert deployed("--kv-flash", SIZE, "--mpy")[0] == 0
    on(board, ADD.format(first=True))
    other = """
from binascii import crc32
from mpy_kv.flash_log.files import FileBlocks
device = FileBlocks(nor, "kv")
page = bytearray(256)
for sector in range(2):
    device.readblocks(sector, page, 0)
    page[:4] = b"MKVS"
    page[4:6] = b"\\x02\\x00"
    page[252:] = (crc32(page[:252]) & 0xFFFFFFFF).to_bytes(4, "little")
    device.ioctl(6, sector)
    device.writeblocks(sector, page, 0)
"""
    on(board, other)
    before = board.image.read_bytes()
    status, figures, out, err = deployed("--kv-flash", SIZE, "--mpy")
    assert (status, figures["kv_flash"]["log_version"], figures["kv_flash"]["log_read"]) == (0, 2, False)
    assert "of version 2, which this mpy_kv refuses: --kv-anew" in err
    assert board.image.read_bytes() == before
    refused = ADD.format(first=False).replace("log = open_log", "print('opening')\nlog = open_log")
    with pytest.raises(AssertionError, match="a log of version 2: this one reads 1"):
        on(board, refused)
    assert deployed("--kv-flash", SIZE, "--mpy", "--kv-anew")[0] == 0
    assert on(board, ADD.format(first=True)) == "12 [True]"


def test_a_board_with_fat_is_refused(kvlab, tmp_path):
    """Before anything is written: its files have no block of their own."""
    with PtyBoard(tmp_path / "flash.img", more=FAT) as board:
        words = ["deploy", "--board", "rp2040", "--force", "--app", "none", "--port", board.port, "--mpy"]
        status, _, err = kvlab(*words, "--kv-flash", SIZE)
        assert status == 1
        assert "--kv-flash: the board's file system is a VfsFat, whose files have no block" in err
        assert on(board, "print(os.listdir())") == "[]"


# The file system of PtyBoard is another one.
FAT = """
class Littlefs:
    def __init__(self):
        self.mkfs = lambda device, progsize: vfs_of.VfsFat.mkfs(device)
    def __call__(self, device, progsize):
        return vfs_of.VfsFat(device)
class Vfs:
    VfsLfs2 = Littlefs()
    mount = vfs.mount
vfs_of = vfs
vfs = Vfs
"""


def test_a_log_that_is_too_small_for_the_story_is_refused(kvlab, monkeypatch, tmp_path):
    """By the window, sinks and element type that the board's main.py names; as `kvlab stories` does."""
    monkeypatch.setattr(link.list_ports, "comports", list)
    words = ("deploy", "--board", "rp2040", "--mpy", "--dry-run", "--kv-flash")
    status, _, err = kvlab(*words, 12 * BLOCK)
    assert (status, err.count("\n")) == (2, 1)
    found = re.search(r"the smallest that works with a window of 256 is (\d+);", err)
    need = int(found[1])
    assert kvlab(*words, need - BLOCK)[0] == 2
    status, _, err = kvlab(*words, need, "--json", tmp_path / "deploy.json")
    assert (status, err) == (0, "")
    figures = json.loads((tmp_path / "deploy.json").read_text())
    assert {"flash-log", "snapshot", "resume"} < set(figures["parts"])
    status, _, err = kvlab("stories", "--board", "rp2040", "--window", 256, "--kv-flash", need - BLOCK)
    assert status == 2
    assert f"the smallest that works with a window of 256 is {need:,}" in err


def test_what_a_main_py_says():
    source = "import stories\nstories.main(x, window=100, log=LOG, codec=['int8', 'float16'], **more)\n"
    assert ask.said_by_main(source) == {"window": 100, "codec": ["int8", "float16"]}


LOG = ("--kv-flash", "320KiB")


def test_a_story_that_is_deployed_goes_on_after_a_reset(kvlab, tmp_path):
    """main.py does it unasked, in the files that deploy has made; deployed again, that stays so."""
    tiny = write_tiny(tmp_path)[0]
    words = ["deploy", "--board", "rp2040", "--force", "--mpy", "--model", tiny, *LOG]
    program = "exec(open('main.py').read().replace('1000', '90').replace('/kv', '/flash/kv')"
    program += ".replace('sys.argv[1:]', '[\"--greedy\"]'))"
    off = "from mpy_kv.resume.blocks import BlockLog\nbefore = BlockLog.stepped\ncount = 0\n"
    off += "def stepped(self):\n global count\n count += 1\n if count > 60: raise KeyError('off')\n"
    off += " before(self)\n"
    with PtyBoard(tmp_path / "flash.img", more=NOR) as board:
        status, _, err = kvlab(*words, "--port", board.port)
        assert (status, err.count("\n")) == (0, 1), err  # the warning of --force
        status, _, _ = kvlab(*[word for word in words if word not in LOG], "--port", board.port)
        assert status == 0
        with pytest.raises(AssertionError, match="KeyError: off"):
            on(board, off + "BlockLog.stepped = stepped\n" + program)
    with PtyBoard(tmp_path / "flash.img", more=NOR) as board:
        said = on(board, program)
    assert "stories: goes on from token " in said
    assert "without a log" not in said
