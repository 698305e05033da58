"""A flash log in files of a real littlefs: whatever others do to the file system, neither side's bytes are
touched by the other, and what is no region of the log's is refused."""

from __future__ import annotations

import textwrap
from binascii import crc32
from collections.abc import Callable
from pathlib import Path

import pytest

from kvlab import boards
from kvlab.powercut import reopening
from kvlab.powercut.beside import Beside, Kept, operations_of
from kvlab.powercut.flash import Nor
from mpy_kv.errors import BadArgument
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.files import BLOCK
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
from unix_port import port
from unix_port.launcher import FlashFile, Report, emulate

Run = Callable[..., Report]

# What each of the programs below begins with: a Pico's file system with 16 files of a log.
BEGIN = """
import os, sys
from binascii import crc32
from mpy_kv.errors import BadArgument
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.files import FileBlocks, make_files
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log

def new(device):
    return FlashLog(device, 1000, slots=1, blocks=40)

def opened(device):
    log = open_log(new(device))
    while log.step():
        pass
    return log

def refused(call):
    try:
        call()
        print("done")
    except BadArgument as error:
        print(error)

def steps(log):
    while log.step():
        pass

def put(log, count, identity=9):  # records more of a sequence
    slot = log.find(identity) if log.find(identity) >= 0 else log.begin(identity)
    for _ in range(count):
        i = log.count[slot]
        log.put(slot, i, bytes([i]) * 1000, [0, 1000])
        steps(log)
    log.sync(slot)
    steps(log)

def around(log):  # uses every block: sequence after sequence, each closed
    while max(log.wear) < 12:
        log.close(0)
        steps(log)
        put(log, 8)

def there(log):
    into = bytearray(1000)
    return [log.read(0, i, into) == 1000 and into == bytes([i]) * 1000 for i in range(log.count[0])]

def whole(path):
    with open(path, "rb") as f:
        return f.read()

def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
"""
ON_PICO = """
import rp2
flash = rp2.Flash(len=64 * 4096)
def mount(fresh=False):
    if fresh:
        os.VfsLfs2.mkfs(flash, progsize=256)
    os.mount(os.VfsLfs2(flash, progsize=256), "/f")
mount(sys.argv[1] == "new")
if sys.argv[1] == "new":
    make_files("/f/kv", 16, 5)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run(program, flash=...)`: on an emulated board; without flash its file system is new."""

    def start(
        program: str, flash: bytes | None = None, board: str = "rp2040", begin: str = ON_PICO
    ) -> Report:
        path = tmp_path / "program.py"
        path.write_text(BEGIN + begin + textwrap.dedent(program))
        done = emulate(
            path,
            ["new" if flash is None else "old"],
            boards.load(board).machine,
            timeout_s=60,
            flash=[] if flash is None else [FlashFile(flash)],
            keep_flash=True,
        )
        assert done.ok, done.stderr
        return done

    return start


# Beside other files


@pytest.mark.parametrize("board", ["rp2040", "esp32s3"])
def test_neither_harms_the_other(board: str) -> None:
    outcome = Beside(boards.load(board), 30).run(1)
    assert outcome.violations == []
    assert outcome.starts > 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("start", ["first", "again"])
def test_neither_harms_the_other_through_a_cut_of_each_operation(start: str, part: int) -> None:
    """Of littlefs and of the log."""
    beside = Beside(boards.load("rp2040"), 20, seed=part + 1)
    first = beside.start("first", None)
    before = Kept()
    flash = None
    total = operations_of(first)
    if start == "again":
        flash = first.flash_after
        before.follow(first.stdout)
        total = operations_of(beside.start("again", flash))
    for at in range(part, total, 8):
        beside.cut(start, flash, before, at)
    assert beside.outcome.violations == []
    assert beside.outcome.cuts == len(range(part, total, 8))


@pytest.mark.parametrize("seed", [1, 2])
def test_without_the_check_blocks_of_others_are_written(seed: int) -> None:
    outcome = Beside(boards.load("rp2040"), 60, seed, unchecked=True).run(0)
    assert any("the log has changed a block that is not its own" in says for says in outcome.violations)


# What others do to the files


def test_a_block_that_is_not_the_file_s_is_not_written(run: Run) -> None:
    """Two addresses are exchanged in what is remembered: neither block is erased or programmed."""
    done = run(
        """
        device = FileBlocks(flash, "/f/kv")
        log = None
        blocks = device.blocks
        blocks[10], blocks[11] = blocks[11], blocks[10]
        for call in ((lambda: device.ioctl(6, 10)), (lambda: device.writeblocks(11, bytes(256), 0))):
            try:
                call()
                print("written")
            except OSError as error:
                print(error.errno)
        device.ioctl(6, 12)
        print([whole("/f/kv/%03d" % i)[:28] for i in (10, 11)], whole("/f/kv/012")[:2])
        """
    )
    marks = [b"mpy_kv flash log %06d 00000"[:22] % i for i in (10, 11)]
    lines = done.stdout.splitlines()
    assert lines[:2] == ["30", "30"]
    for mark in marks:
        assert mark[:22].decode() in lines[2]
    assert r"b'\xff\xff'" in lines[2]


@pytest.mark.parametrize("i", [1, 6])
def test_a_file_that_is_made_anew_is_found_anew(run: Run, i: int) -> None:
    """By somebody who copies it and back, so that its old block, with the same bytes, belongs to a copy. The
    log goes on in the new block, and the copies keep their bytes."""
    first = run(
        f"""
        format_log(new(FileBlocks(flash, "/f/kv")))
        put(opened(FileBlocks(flash, "/f/kv")), 3)
        before = list(FileBlocks(flash, "/f/kv").blocks)
        name = "/f/kv/%03d" % {i}
        data = whole(name)
        os.remove(name)
        made = []
        try:
            while True:  # the block that is free now goes to one of these
                write("/f/copy%d" % len(made), data)
                made.append("/f/copy%d" % len(made))
        except OSError:
            pass
        for path in made[:4]:
            os.remove(path)
        write(name, data)
        after = list(FileBlocks(flash, "/f/kv").blocks)
        print([i for i in range(16) if before[i] != after[i]])
        """
    )
    assert first.stdout == f"[{i}]\n"
    again = run(
        """
        device = FileBlocks(flash, "/f/kv")
        names = [name for name in os.listdir("/f") if name != "kv"]
        copies = [crc32(whole("/f/" + name)) for name in names]
        log = opened(device)
        print(there(log))
        around(log)
        print([crc32(whole("/f/" + name)) for name in names] == copies, there(log) == [True] * 8, len(names))
        print([whole("/f/kv/%03d" % i)[:4] == b"mpy_" for i in range(16)].count(True))
        """,
        first.flash_after,
    )
    lines = again.stdout.splitlines()
    assert lines[0] == "[True, True, True]"
    assert lines[1].startswith("True True ")
    assert int(lines[1].split()[-1]) > 20
    assert lines[2] == "0"


def test_a_file_that_is_missing_is_told_by_the_size_of_the_log(run: Run) -> None:
    done = run(
        """
        format_log(new(FileBlocks(flash, "/f/kv")))
        os.remove("/f/kv/014")
        refused(lambda: opened(FileBlocks(flash, "/f/kv")))
        write("/f/kv/014", b"x" * 4095)
        refused(lambda: opened(FileBlocks(flash, "/f/kv")))
        write("/f/kv/014", b"x" * 4096)
        log = opened(FileBlocks(flash, "/f/kv"))
        put(log, 8)
        around(log)
        print(there(log) == [True] * 8)
        for i in range(16):
            os.remove("/f/kv/%03d" % i)
        refused(lambda: FileBlocks(flash, "/f/kv"))
        """
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["the log has 1 slots and 16 sectors, not 1 and 14"] * 2
    assert lines[2] == "True"
    assert lines[3] == "no files of 4096 bytes in /f/kv: make_files() makes them, or kvlab deploy --kv-flash"


def test_a_file_system_that_is_made_anew(run: Run) -> None:
    """What its log had is gone, and other files lie there; new files take a new log."""
    first = run(
        """
        format_log(new(FileBlocks(flash, "/f/kv")))
        put(opened(FileBlocks(flash, "/f/kv")), 5)
        """
    )
    done = run(
        """
        os.umount("/f")
        mount(True)
        refused(lambda: FileBlocks(flash, "/f/kv"))
        for i in range(20):
            write("/f/%d" % i, b"%d" % i * 4000)
        make_files("/f/kv", 16, 6)
        device = FileBlocks(flash, "/f/kv")
        refused(lambda: open_log(new(device)))
        format_log(new(device))
        log = opened(device)
        put(log, 8)
        around(log)
        print([whole("/f/%d" % i) == b"%d" % i * 4000 for i in range(20)] == [True] * 20)
        """,
        first.flash_after,
    )
    lines = done.stdout.splitlines()
    assert "no files of 4096 bytes in /f/kv" in lines[0]
    assert "no log in this region" in lines[1]
    assert lines[2] == "True"


def test_fat_is_refused(run: Run) -> None:
    """Its files share their sectors' fate; and so is a device that the files are not on."""
    done = run(
        """
        device = FileBlocks(flash, "kv") if os.chdir("/f") else FileBlocks(flash, "kv")
        print(len(device.blocks))
        os.chdir("/")
        other = rp2.Flash(start=64 * 4096, len=64 * 4096)
        refused(lambda: FileBlocks(other, "/f/kv"))
        os.VfsLfs2.mkfs(other, progsize=256)
        refused(lambda: FileBlocks(other, "/f/kv"))
        os.mount(os.VfsLfs2(other, progsize=256), "/g")
        make_files("/g/kv", 12)
        refused(lambda: FileBlocks(other, "/f/kv"))
        os.umount("/f")
        os.VfsFat.mkfs(flash)
        os.mount(os.VfsFat(flash), "/f")
        make_files("/f/kv", 16)
        refused(lambda: FileBlocks(flash, "/f/kv"))
        """
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "16"
    assert "no littlefs with blocks of 4096 bytes on that device" in lines[1]
    wrong = "the files in /f/kv are not those that the device has: name the one that they are mounted from"
    assert lines[2:4] == [wrong, wrong]
    assert "partition of its own, or plain files" in lines[4]


# Regions that are not the log's


def test_files_with_somebody_s_bytes_are_no_region(run: Run) -> None:
    """Marks are the log's own; a byte beside them is not."""
    done = run(
        """
        device = FileBlocks(flash, "/f/kv")
        refused(lambda: open_log(new(device)))
        data = whole("/f/kv/007")
        write("/f/kv/007", data[:4000] + b"!" + data[4001:])
        device = FileBlocks(flash, "/f/kv")
        refused(lambda: format_log(new(device)))
        print(whole("/f/kv/007")[4000:4002], whole("/f/kv/003")[:6])
        format_log(new(device), force=True)
        log = opened(device)
        put(log, 2)
        print(there(log))
        """
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "no log in this region: format_log() makes one where it is blank"
    assert lines[1].startswith("the region is neither blank nor a log of version 1, and nothing was erased")
    assert "force=True" in lines[1]
    assert lines[2] == r"b'!\xff' b'mpy_kv'"
    assert lines[3] == "[True, True]"


def test_a_raw_device_with_somebody_s_bytes_is_no_region() -> None:
    """Where only the last byte is another one, too; a log of another version is somebody's."""
    for at, byte in ((40 * BLOCK - 1, 0), (0, 0x7F), (9 * BLOCK + 300, 0xFE)):
        nor = Nor(40)
        nor.cells[at] = byte
        log = FlashLog(nor, 64, slots=1, blocks=20)
        with pytest.raises(BadArgument, match="no log in this region: format_log"):
            open_log(log)
        with pytest.raises(BadArgument, match="nothing was erased: take another one, or format_log"):
            format_log(log)
        assert (nor.erases, nor.programs, nor.cells[at]) == (0, 0, byte)
        format_log(log, force=True)
        open_log(log)
    for sector in range(2):
        nor.cells[sector * BLOCK + 4] = 2
        page = nor.cells[sector * BLOCK :][:252]
        nor.cells[sector * BLOCK + 252 : sector * BLOCK + 256] = crc32(page).to_bytes(4, "little")
    before = bytes(nor.cells)
    with pytest.raises(BadArgument, match="a log of version 2: this one reads 1"):
        open_log(log)
    with pytest.raises(BadArgument, match="nor a log of version 1, and nothing was erased"):
        format_log(log)
    assert nor.cells == before


DOCS = (Path(__file__).parents[1] / "docs" / "CHOOSING.md").read_text()


def lines_of(name: str) -> str:
    """That code of docs/CHOOSING.md."""
    return DOCS.split(f"```python flash-log-{name}\n")[1].split("```")[0]


@pytest.mark.parametrize("region", ["files", "partition"])
def test_what_the_docs_say_works(run: Run, region: str) -> None:
    """Twice, and what is kept is there the second time."""
    program = lines_of(region) + lines_of("open")
    program = program.replace("rp2.Flash()", "flash").replace('"/kv"', '"/f/kv"').replace('"kv"', '"vfs"')
    program = program.replace("record_bytes=5440", "record_bytes=1000")
    program += "print(there(log) if log.used[0] else None)\nput(log, 3)\nprint(there(log))\n"
    where = {"board": "rp2040", "begin": ON_PICO} if region == "files" else {"board": "esp32s3", "begin": ""}
    first = run(program, **where)
    assert first.stdout == "None\n[True, True, True]\n"
    again = run(program, first.flash_after, **where)
    assert again.stdout == f"{[True] * 3}\n{[True] * 6}\n"


ON_ESP32 = """
import esp32
partition = esp32.Partition.find(esp32.Partition.TYPE_DATA, label="vfs")[0]
class Part:  # of it
    readblocks = partition.readblocks
    writeblocks = partition.writeblocks
    def ioctl(self, op, arg):
        return 40 if op == 4 else partition.ioctl(op, arg)
"""


def test_a_partition_of_one_s_own(run: Run) -> None:
    """Found by its label, blank, then used; with anything of somebody else's in it it is refused."""
    first = run(
        """
        print(partition.info()[4], [each for each in esp32.Partition.find(1, label="kv")])
        log = new(Part())
        format_log(log)
        log = opened(Part())
        put(log, 5)
        print(there(log))
        """,
        board="esp32s3",
        begin=ON_ESP32,
    )
    assert first.stdout.splitlines() == ["vfs []", "[True, True, True, True, True]"]
    again = run(
        """
        log = opened(Part())
        print(there(log))
        partition.ioctl(6, 20)
        partition.writeblocks(20, b"x" * 256, 0)
        format_log(new(Part()))  # it is the log's own
        partition.ioctl(6, 0)
        partition.ioctl(6, 1)
        partition.writeblocks(20, b"x" * 256, 0)
        refused(lambda: open_log(new(Part())))
        refused(lambda: format_log(new(Part())))
        into = bytearray(2)
        partition.readblocks(20, into, 0)
        print(into)
        """,
        first.flash_after,
        board="esp32s3",
        begin=ON_ESP32,
    )
    lines = again.stdout.splitlines()
    assert lines[0] == "[True, True, True, True, True]"
    assert "no log in this region" in lines[1]
    assert "neither blank nor a log" in lines[2]
    assert lines[3] == "bytearray(b'xx')"


# What littlefs keeps

READ = """
import os, random, sys, vfs
from mpy_kv.flash_log.files import FileBlocks, make_files
class Ram:
    def __init__(self, n):
        self.data = bytearray(n * 4096)
    def readblocks(self, block, buf, offset=0):
        at = block * 4096 + offset
        memoryview(buf)[:] = memoryview(self.data)[at : at + len(buf)]
    def writeblocks(self, block, buf, offset=0):
        at = block * 4096 + offset
        self.data[at : at + len(buf)] = buf
    def ioctl(self, op, arg):
        return {4: len(self.data) // 4096, 5: 4096}.get(op, 0)
files, operations = int(sys.argv[1]), int(sys.argv[2])
random.seed(int(sys.argv[3]))
ram = Ram(files + 60)
vfs.VfsLfs2.mkfs(ram, progsize=256)
vfs.mount(vfs.VfsLfs2(ram, progsize=256), "/f")
os.mkdir("/f/deep")
make_files("/f/deep/kv", files, 7)
kv = "/f/deep/kv/"
def check():
    device = FileBlocks(ram, "/f/deep/kv")
    assert len(set(device.blocks)) == files, device.blocks
    block = bytearray(4096)
    for i in range(files):
        device.readblocks(i, block, 0)
        with open(kv + "%03d" % i, "rb") as f:
            assert f.read() == block, i
def one(k):
    what = random.randrange(7)
    name = random.choice(("/f/", "/f/deep/", kv)) + random.choice(("a", "a longer name ")) + str(k % 9)
    if what < 2:
        with open(name, "wb") as f:
            f.write(bytes([k & 255]) * random.randrange(9000))
    elif what == 2:
        with open(name, "ab") as f:
            f.write(bytes([k & 255]) * random.randrange(900))
    elif what == 3:
        os.remove(name)
    elif what == 4:
        os.rename(name, name + "r")
    elif what == 5:
        with open(kv + "%03d" % random.randrange(files), "wb") as f:
            f.write(b"%05d" % k + b"z" * 4091)
    else:
        vfs.umount("/f")
        vfs.mount(vfs.VfsLfs2(ram, progsize=256), "/f")
for k in range(operations):
    try:
        one(k)
    except OSError as error:
        assert error.errno in (2, 28), error
    if k % 50 == 0:
        check()
check()
print("right")
"""


def _reads(tmp_path: Path, *words: int) -> None:
    path = tmp_path / "read.py"
    path.write_text(READ)
    done = port.run([str(path), *map(str, words)], heap_bytes=8 << 20, timeout_s=300, env=_PATH)
    assert done.stdout.strip() == "right", done.stderr


_PATH = {"MICROPYPATH": str(Path(__file__).parents[1])}


def test_blocks_are_read_off_littlefs_s_own_entries(tmp_path: Path) -> None:
    """Folders of several pairs of blocks, entries that come and go."""
    _reads(tmp_path, 90, 300, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3))
def test_blocks_are_read_off_littlefs_s_own_entries_for_long(tmp_path: Path, seed: int) -> None:
    """Long enough for littlefs to move the folders' blocks, the root's as well."""
    _reads(tmp_path, 20, 10_000 if seed else 60_000, seed)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("qemu")
def test_what_files_take_on_a_pico() -> None:
    """By the cost model, with littlefs itself on the emulated 32-bit board: a tenth of a second to find 32
    files, and some milliseconds for each before its first write."""
    found, checked = reopening.files_us(125e6, 32)
    assert 10_000 < found < 100_000
    assert 32 * 1_000 < checked < 32 * 10_000
