"""A flash log in the blocks of littlefs files: neither harms the other."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from kvlab import boards
from kvlab.powercut.flash import Nor
from mpy_kv.flash_log.files import FileBlocks
from unix_port.launcher import FlashFile, emulate

# Other files are written, grown and removed between records; each start checks both worlds.
START = """
    import json, os, rp2, sys
    from mpy_kv.flash_log import FlashLog
    from mpy_kv.flash_log.files import FileBlocks, make_files
    from mpy_kv.flash_log.formatting import format_log
    from mpy_kv.flash_log.opening import open_log
    flash = rp2.Flash(len=96 * 4096)
    first = sys.argv[1] == "first"
    if first:
        os.VfsLfs2.mkfs(flash, progsize=256)
    os.mount(os.VfsLfs2(flash, progsize=256), "/f")
    if first:
        with open("/f/other", "wb") as f:
            f.write(b"x" * 9000)
        make_files("/f/kv", 36, 77)
    device = FileBlocks(flash, "/f/kv")
    def new():
        return FlashLog(device, 3000, slots=1, blocks=60)
    if first:
        format_log(new(), force=True)
    log = open_log(new())
    while log.step():
        pass
    slot = log.find(3) if log.find(3) >= 0 else log.begin(3)
    into = bytearray(3000)
    right = [log.read(slot, i, into) == 3000 and into == bytes([i]) * 3000 for i in range(log.count[slot])]
    others = [name for name in os.listdir("/f") if name not in ("kv", "other")]
    good = all(len(set(open("/f/" + name, "rb").read())) <= 1 for name in others)
    good = good and open("/f/other", "rb").read() == b"x" * 9000
    print(json.dumps([right, good]))
    kept = 0
    while log.count[slot] < 24:
        i = log.count[slot]
        log.put(slot, i, bytes([i]) * 3000, [0, 3000])
        while log.step():
            pass
        with open("/f/churn%d" % (i % 3), "wb") as f:
            f.write(bytes([i]) * (i * 317 % 6000))
        if i % 4 == 3:
            os.remove("/f/churn%d" % (i % 3))
    log.sync(slot)
    print(json.dumps(log.count[slot]))
    """


@pytest.fixture
def start(tmp_path: Path) -> Any:
    path = tmp_path / "start.py"
    path.write_text(textwrap.dedent(START))

    def run(word: str, flash: bytes | None = None, **how: Any) -> Any:
        files = [FlashFile(flash)] if flash else []
        machine = boards.load("rp2040").machine
        return emulate(path, [word], machine, timeout_s=60, flash=files, keep_flash=True, **how)

    return run


def test_beside_a_file_system(start: Any) -> None:
    """Told, remounted, told: every record and every other file is right."""
    first = start("first")
    assert first.ok, first.stderr
    assert [json.loads(line) for line in first.stdout.splitlines()] == [[[], True], 24]
    again = start("again", first.flash_after)
    assert again.ok, again.stderr
    assert json.loads(again.stdout.splitlines()[0]) == [[True] * 24, True]


def test_beside_a_file_system_through_cuts(start: Any) -> None:
    """Cut in the middle of records and of the file system's own writing."""
    whole = start("first")
    total = whole.flash_programs + whole.flash_erases
    for k in range(5):
        cut = start("first", cut_after=total - 40 - 97 * k)
        assert cut.outcome == "power cut"
        after = start("again", cut.flash_after)
        assert after.ok, after.stderr
        right, good = json.loads(after.stdout.splitlines()[0])
        assert all(right)
        assert len(right) > 3
        assert good


@pytest.mark.parametrize(
    ("weak", "other", "taken"), [(0, 0, True), (0, 1, False), (40, 0, True), (40, 1, False), (200, 0, False)]
)
def test_weak_bits_of_a_cut_are_not_another_file(weak: int, other: int, taken: bool, tmp_path: Path) -> None:
    """The first bytes of a block are compared where they read the same each time, if half of them do."""
    nor = Nor(3, 7)  # weak bits read by chance
    held = bytes((37 * i + 11) & 255 for i in range(4096))
    nor.cells[4096 : 2 * 4096] = held
    for k in range(weak):
        bits = nor.weak.setdefault(1, {})
        bits[k % 32] = bits.get(k % 32, 0) | 1 << k // 32
    (tmp_path / "000").write_bytes(bytes([held[0], held[1] ^ (other << 7)]) + held[2:])
    device = object.__new__(FileBlocks)
    device.storage, device.folder, device.blocks = nor, str(tmp_path), [1]
    device._found, device._there, device._checked = bytearray(32), bytearray(32), bytearray(1)
    if taken:
        device.check()
        device.ioctl(6, 0)
        assert bytes(nor.cells[4096 : 2 * 4096]) == b"\xff" * 4096
    else:
        for write in (device.check, lambda: device.ioctl(6, 0), lambda: device.writeblocks(0, bytes(256), 0)):
            with pytest.raises(OSError, match="30"):
                write()
        assert bytes(nor.cells[4096 : 2 * 4096]) == held
