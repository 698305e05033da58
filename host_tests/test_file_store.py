"""Records in plain files: through starts, cuts, a file system that is full or fails, and files of others."""

from __future__ import annotations

import errno
import json
import random
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvlab.powercut.files import FILE_BREAKS, FileCuts, PoorFiles
from mpy_kv.errors import BadArgument, NoRoom, StepError
from mpy_kv.file_store import FileStore, shape_of
from mpy_kv.file_store.opening import open_store

SPEC = Path(__file__).parents[1] / "docs" / "SPEC.md"
SIZE = 1000
FILE = SIZE + 52  # with header and checksum
KINDS = ("short", "write", "flush", "close", "silent")


@pytest.fixture(autouse=True)
def _disk_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cut leaves is tried on a model of a file system; of the host's disk it would only take time."""
    monkeypatch.setattr("os.fsync", lambda handle: None)
    monkeypatch.setattr("os.sync", lambda: None)


def new(folder: Any, fs: Any = None, quick: bool = False, **how: Any) -> Any:
    return open_store(FileStore(str(folder), SIZE, **{"slots": 4, "blocks": 64, "fs": fs, **how}), quick)


def data_of(n: int, size: int = SIZE) -> bytes:
    return random.Random(n).randbytes(size)


def put(store: Any, slot: int, record: int, data: bytes) -> Any:
    return store.put(slot, record, data, [0, len(data)])


def read(store: Any, slot: int, record: int) -> bytes | None:
    into = bytearray(store.record_bytes)
    size = store.read(slot, record, into)
    return bytes(into[:size]) if size >= 0 else None


def everything(store: Any) -> dict[int, dict[int, bytes | None]]:
    return {
        store.identity[slot]: {
            i: read(store, slot, i) for i in range(store.count[slot]) if store.has(slot, i)
        }
        for slot in range(store.slots)
        if store.used[slot]
    }


def stored(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# What it does, where all goes well


def test_put_and_read(tmp_path: Path) -> None:
    """Runs of a buffer, zeros, a record anew, one left out; and the same after a start."""
    folder = tmp_path / "kv"
    store = new(folder)
    assert store.find(7) == -1
    slot = store.begin(7)
    buffer = data_of(1)
    version = store.put(slot, 0, buffer, [8, 16, -1, 600, 0, 24])
    assert store.durable(slot, version)
    put(store, slot, 1, data_of(2))
    put(store, slot, 1, data_of(3, 80))
    put(store, slot, 3, data_of(4))
    assert store.step() is False
    for again in (store, new(folder), new(folder, quick=True)):
        slot = again.find(7)
        assert read(again, slot, 0) == buffer[8:24] + bytes(600) + buffer[:24]
        assert read(again, slot, 1) == data_of(3, 80)
        assert read(again, slot, 2) is None
        assert read(again, slot, 3) == data_of(4)
        assert (again.base[slot], again.count[slot], again.misses) == (0, 4, 1)
        assert again.used_bytes == 640 + 80 + SIZE + 3 * 52
        assert sum(len(each) for each in stored(folder).values()) == again.used_bytes
    into = bytearray(100)
    assert again.read(slot, 1, into, 20) == 80
    assert into[20:] == data_of(3, 80)
    assert again.read(slot, 1, into, 24) == -1


def test_sequences_come_and_go(tmp_path: Path) -> None:
    folder = tmp_path / "kv"
    store = new(folder, slots=2)
    one, two = store.begin(1), store.begin(2)
    with pytest.raises(NoRoom, match="slots"):
        store.begin(3)
    store.close(two)
    with pytest.raises(BadArgument, match="identity 1"):
        store.begin(1)
    two = store.begin(2)
    for i in range(6):
        put(store, one, i, data_of(i))
        put(store, two, i, data_of(10 + i))
    store.trim(one, 2)
    store.truncate(one, 5)
    store.close(two)
    assert store.used_bytes == 3 * FILE
    again = new(folder, slots=2)
    assert everything(again) == {1: {i: data_of(i) for i in (2, 3, 4)}}
    one = again.find(1)
    assert (again.base[one], again.count[one]) == (2, 5)
    two = again.begin(2)
    put(again, two, 0, data_of(20))
    assert everything(new(folder)) == {1: {i: data_of(i) for i in (2, 3, 4)}, 2: {0: data_of(20)}}


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "slot": (lambda store: put(store, 1, 0, data_of(1)), BadArgument),
    "record": (lambda store: put(store, 0, -1, data_of(1)), BadArgument),
    "odd length": (lambda store: store.put(0, 0, data_of(1), [0, 12]), BadArgument),
    "beyond the buffer": (lambda store: store.put(0, 0, data_of(1), [600, 600]), BadArgument),
    "empty": (lambda store: store.put(0, 0, data_of(1), [0, 0]), BadArgument),
    "too long": (lambda store: store.put(0, 0, data_of(1), [0, SIZE, -1, 8]), BadArgument),
    "truncate": (lambda store: store.truncate(0, 2), BadArgument),
    "trim": (lambda store: store.trim(0, -1), BadArgument),
    "record_bytes": (lambda store: FileStore("x", 4), BadArgument),
    "not open": (lambda store: FileStore("x", SIZE).begin(1), StepError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str) -> None:
    what, error = REFUSED[name]
    store = new(tmp_path)
    put(store, store.begin(1), 0, data_of(0))
    with pytest.raises(error):
        what(store)
    assert everything(store) == everything(new(tmp_path)) == {1: {0: data_of(0)}}


def test_all_entries_taken(tmp_path: Path) -> None:
    store = new(tmp_path, blocks=2)
    slot = store.begin(1)
    for i in range(2):
        put(store, slot, i, data_of(i))
    with pytest.raises(NoRoom, match="blocks"):
        put(store, slot, 2, data_of(2))
    put(store, slot, 1, data_of(5))
    assert everything(store) == everything(new(tmp_path)) == {1: {0: data_of(0), 1: data_of(5)}}


def test_time_is_given(tmp_path: Path) -> None:
    """`feed` at least once for 4,096 bytes written, and for as many read."""
    calls = []
    store = open_store(FileStore(str(tmp_path), 40_000, feed=lambda: calls.append(1)))
    slot = store.begin(1)
    put(store, slot, 0, bytes(40_000))
    assert len(calls) >= 20
    calls.clear()
    assert store.read(slot, 0, bytearray(40_000)) == 40_000
    assert len(calls) >= 10


# A start


def changed_header(text: bytes, at: int, kind: str, value: Any) -> bytes:
    """With another field, and both checksums right."""
    made = bytearray(text)
    struct.pack_into(kind, made, at, value)
    made[44:48] = struct.pack("<I", zlib.crc32(made[:44]))
    made[-4:] = struct.pack("<I", zlib.crc32(made[:-4]))
    return bytes(made)


@pytest.mark.parametrize("one_sequence", [True, False])
def test_a_start_takes_what_is_sound_and_its_own(tmp_path: Path, one_sequence: bool) -> None:
    """Truncated, flipped, of another model, left over, of others: each is a miss, the rest is there."""
    store = new(tmp_path, slots=5, model=77)
    names = []
    for i in range(5):
        slot = 0 if one_sequence and i else store.begin(i)
        names.append(f"{put(store, slot, i if one_sequence else 0, data_of(i)):08x}.kvr")
    files = [tmp_path / name for name in names]
    files[1].write_bytes(files[1].read_bytes()[:-1])
    flipped = bytearray(files[2].read_bytes())
    flipped[500] ^= 4
    files[2].write_bytes(flipped)
    foreign = changed_header(files[4].read_bytes(), 8, "<I", 78)
    files[4].write_bytes(foreign)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "new.kvt").write_bytes(files[0].read_bytes()[:600])
    (tmp_path / "folder").mkdir()
    want = {0: {0: data_of(0), 3: data_of(3)}} if one_sequence else {0: {0: data_of(0)}, 3: {0: data_of(3)}}
    for _ in range(2):
        again = new(tmp_path, slots=5, model=77)
        assert everything(again) == want
        assert again.used_bytes == 2 * FILE
        assert again.left == 1
        assert {path.name for path in tmp_path.iterdir()} == {
            *("notes.txt", "folder", names[0], names[3], names[4])
        }
    assert files[4].read_bytes() == foreign
    assert (tmp_path / "notes.txt").read_text() == "mine"
    slot = again.begin(9)
    put(again, slot, 0, data_of(9))  # its name is not that of the foreign file, which is newer
    assert everything(new(tmp_path, slots=5, model=77)) == {**want, 9: {0: data_of(9)}}
    assert files[4].read_bytes() == foreign
    theirs = {0: {4: data_of(4)}} if one_sequence else {4: {0: data_of(4)}}
    assert everything(new(tmp_path, slots=5, model=78)) == theirs


def test_another_version_is_left_alone(tmp_path: Path) -> None:
    store = new(tmp_path)
    put(store, store.begin(1), 0, data_of(1))
    (path,) = tmp_path.iterdir()
    other = path.read_bytes()[:4] + b"\x02" + path.read_bytes()[5:]
    path.write_bytes(other)
    again = new(tmp_path)
    assert (everything(again), again.left, path.read_bytes()) == ({}, 1, other)


def test_other_shapes_and_lengths_are_left_alone(tmp_path: Path) -> None:
    shape = shape_of({"layers": 5, "codec": "int8"})
    assert shape == shape_of({"codec": "int8", "layers": 5}) != shape_of({"codec": "int8", "layers": 4})
    store = new(tmp_path, shape=shape)
    put(store, store.begin(1), 0, data_of(1))
    before = stored(tmp_path)
    for how in ({"shape": shape ^ 1}, {"shape": shape, "model": 1}):
        assert (new(tmp_path, **how).left, stored(tmp_path)) == (1, before)
    smaller = open_store(FileStore(str(tmp_path), SIZE - 8, shape=shape))
    assert (everything(smaller), smaller.left, stored(tmp_path)) == ({}, 1, before)
    assert everything(new(tmp_path, shape=shape)) == {1: {0: data_of(1)}}


def test_more_than_there_are_slots_or_entries_for(tmp_path: Path) -> None:
    """The newest are taken, the others left alone for a start that has more."""
    store = new(tmp_path)
    for identity in range(4):
        slot = store.begin(identity)
        for i in range(3):
            put(store, slot, i, data_of(10 * identity + i))
    whole = everything(store)
    before = stored(tmp_path)
    fewer = new(tmp_path, slots=2)
    assert everything(fewer) == {2: whole[2], 3: whole[3]}
    assert fewer.left == 6
    short = new(tmp_path, blocks=4)
    assert everything(short) == {2: {2: whole[2][2]}, 3: whole[3]}
    assert stored(tmp_path) == before
    assert everything(new(tmp_path)) == whole
    # One of them begun anew is another sequence of that identity: nothing of the one before is found again.
    fewer.close(fewer.find(2))
    slot = fewer.begin(1)
    put(fewer, slot, 2, data_of(99))
    assert everything(new(tmp_path)) == {0: whole[0], 1: {2: data_of(99)}, 3: whole[3]}


@pytest.mark.parametrize("quick", [False, True])
def test_every_byte_flipped_and_every_length(tmp_path: Path, quick: bool) -> None:
    """Never other bytes than those put; a quick start finds damage when it reads."""
    store = open_store(FileStore(str(tmp_path), 24))
    put(store, store.begin(1), 0, data_of(1, 24))
    (path,) = tmp_path.iterdir()
    text = path.read_bytes()
    changes = [text[:n] for n in range(len(text))] + [text + b"\0"]
    for i in range(len(text)):
        changes.append(text[:i] + bytes([text[i] ^ (1 << i % 8)]) + text[i + 1 :])
    for change in changes:
        path.write_bytes(change)
        again = open_store(FileStore(str(tmp_path), 24), quick)
        slot = again.find(1)
        assert slot < 0 or (quick and read(again, slot, 0) is None and again.misses == 1)
        path.write_bytes(text)


def test_hostile_headers(tmp_path: Path) -> None:
    """Checksums right, numbers absurd: nothing raises, and the other sequence is there."""
    store = new(tmp_path)
    put(store, store.begin(1), 0, data_of(1))
    (first,) = stored(tmp_path).values()
    number = put(store, store.begin(2), 0, data_of(2))
    path = tmp_path / f"{number:08x}.kvr"
    text = path.read_bytes()
    values = (0, 1, 2, 0x7FFF, 0x1FFFFFFF, 0x20000000, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0xFFFFFFFF)
    for at in range(0, 44, 4):
        for value in values:
            (tmp_path / "00000001.kvr").write_bytes(first)
            path.write_bytes(changed_header(text, at, "<I", value))
            again = new(tmp_path)
            merged = (at, value) == (16, 1)  # a sound file of the other sequence, and newer
            assert everything(again)[1] == {0: data_of(2 if merged else 1)}
            assert again.used_bytes == FILE * sum(len(records) for records in everything(again).values())


def test_numbers_go_round(tmp_path: Path) -> None:
    store = new(tmp_path)
    store.number = 0x3FFFFFFD
    slot = store.begin(1)
    for i in range(6):
        put(store, slot, i % 2, data_of(i))
    again = new(tmp_path)
    assert everything(again) == {1: {0: data_of(4), 1: data_of(5)}}
    assert again.number == 3


def test_reading_fails(tmp_path: Path) -> None:
    """A miss, and counted; a file that cannot be read at a start is left alone."""

    class Failing(type(new(tmp_path).fs)):  # type: ignore[misc]
        fails = False

        def open(self, path: str, mode: str) -> Any:
            if self.fails and mode == "rb":
                raise OSError(errno.EIO)
            return super().open(path, mode)

    fs = Failing()
    store = new(tmp_path, fs)
    slot = store.begin(1)
    put(store, slot, 0, data_of(1))
    fs.fails = True
    assert read(store, slot, 0) is None
    assert store.misses == 1
    again = new(tmp_path, fs)
    assert (everything(again), again.left) == ({}, 1)
    fs.fails = False
    assert everything(new(tmp_path, fs)) == {1: {0: data_of(1)}}


def test_a_name_too_many_as_fat_leaves_it(tmp_path: Path) -> None:
    """A cut within its rename: both names, one file. It is copied before both go; or if there is no room,
    what was replaced is there."""
    store = new(tmp_path)
    slot = store.begin(1)
    put(store, slot, 0, data_of(1))
    old = stored(tmp_path)
    number = put(store, slot, 0, data_of(2))
    for name, text in old.items():
        (tmp_path / name).write_bytes(text)
    name = f"{number:08x}.kvr"
    text = (tmp_path / name).read_bytes()
    (tmp_path / "new.kvt").hardlink_to(tmp_path / name)
    beside = tmp_path / "beside"
    beside.hardlink_to(tmp_path / name)
    assert everything(new(tmp_path)) == {1: {0: data_of(2)}}
    assert stored(tmp_path) == {name: text, "beside": text}
    assert not beside.samefile(tmp_path / name)
    fs = PoorFiles(4 * FILE - 1)
    for each, bytes_of in {**old, name: text, "new.kvt": text}.items():
        with fs.open(f"/kv/{each}", "wb") as f:
            f.write(bytes_of)
    assert everything(new("/kv", fs)) == {1: {0: data_of(1)}}
    assert list(fs.names("/kv")) == list(old)


def test_worked_example_of_the_format() -> None:
    """What the code writes is what docs/SPEC.md shows."""
    (dump,) = re.findall(r"```text file-store\n(.*?)```", SPEC.read_text(), re.DOTALL)
    fs = PoorFiles()
    store = open_store(FileStore("/kv", 24, model=0x6AE1D013, shape=0x01020304, fs=fs))
    slot = store.begin(0x1234)
    store.put(slot, 0, bytes(range(16)), [0, 16])
    store.put(slot, 1, bytes(range(16, 32)), [0, 16, -1, 8])
    told = [re.match(r"([0-9a-f]+): ((?:[0-9a-f]{4} ?)+)", line) for line in dump.splitlines()]
    assert b"".join(bytes.fromhex(line[2]) for line in told if line) == fs.here["/kv/00000002.kvr"].data
    assert [int(line[1], 16) for line in told if line] == [0, 16, 32, 48, 64]


# No room, and other failures


@pytest.mark.parametrize("full", KINDS)
@pytest.mark.parametrize("rewrite", [False, True])
def test_no_room(full: str, rewrite: bool) -> None:
    """Room for one entry and a half: refused with numbers, the one that is there unharmed, and so is the
    caller's; the same put succeeds when there is room."""
    fs = PoorFiles(FILE * 3 // 2, full)
    store = new("/kv", fs)
    slot = store.begin(1)
    put(store, slot, 0, data_of(1))
    data = bytearray(data_of(2))
    record = 0 if rewrite else 1
    for _ in range(3):
        with pytest.raises(NoRoom, match="bytes"):
            put(store, slot, record, data)
        assert data == data_of(2)
        assert store.used_bytes == fs.used() == FILE
        assert list(fs.names("/kv")) == ["00000001.kvr"]
        assert everything(store) == {1: {0: data_of(1)}}
        assert everything(new("/kv", fs.after_cut(lambda n: n - 1))) == {1: {0: data_of(1)}}
    fs.room += FILE
    version = put(store, slot, record, data)
    assert store.durable(slot, version)
    want = {0: data_of(2)} if rewrite else {0: data_of(1), 1: data_of(2)}
    assert everything(store) == everything(new("/kv", fs.after_cut(lambda n: 0))) == {1: want}
    assert store.used_bytes == fs.used() == FILE * len(want)


def test_room_is_made_by_removing() -> None:
    fs = PoorFiles(FILE * 5 // 2)
    store = new("/kv", fs)
    one, two = store.begin(1), store.begin(2)
    put(store, one, 0, data_of(0))
    put(store, one, 1, data_of(1))
    for make in (lambda: store.trim(one, 1), lambda: store.truncate(one, 1), lambda: store.close(one)):
        with pytest.raises(NoRoom):
            put(store, two, store.count[two], data_of(9))
        make()
        if store.used_bytes > FILE:
            continue
        put(store, two, store.count[two], data_of(9))
    assert set(everything(store)) == {2}
    assert store.used_bytes == fs.used()


@pytest.mark.parametrize("error", [errno.EEXIST, errno.EPERM, errno.EIO])
def test_refused_to_rename(error: int) -> None:
    fs = PoorFiles()
    store = new("/kv", fs)
    slot = store.begin(1)
    put(store, slot, 0, data_of(1))
    fs.rename_error = error
    with pytest.raises(OSError, match=f"^{error}$"):
        put(store, slot, 0, data_of(2))
    assert everything(store) == {1: {0: data_of(1)}}
    assert fs.used() == store.used_bytes
    fs.rename_error = 0
    put(store, slot, 0, data_of(2))
    assert everything(store) == everything(new("/kv", fs.after_cut(lambda n: 0))) == {1: {0: data_of(2)}}


class Fails:
    """An error of the file system, or the end of the program, at one operation, or from it on."""

    def __init__(self, at: int, error: BaseException, on: bool) -> None:
        self.left, self.error, self.on = at, error, on

    def __call__(self, kind: str, path: str) -> None:
        self.left -= 1
        if self.left == 0 or (self.on and self.left < 0):
            raise self.error


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("error", [OSError(errno.EIO), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_failing_at_every_operation(error: BaseException, on: bool) -> None:
    """put: nothing has changed where it raises, in memory and at a start; afterwards it goes on."""
    for at in range(1, 20):
        fs = PoorFiles()
        store = new("/kv", fs)
        one, two = store.begin(1), store.begin(2)
        for i in range(2):
            put(store, one, i, data_of(i))
            put(store, two, i, data_of(10 + i))
        old = {1: {0: data_of(0), 1: data_of(1)}, 2: {0: data_of(10), 1: data_of(11)}}
        done = {**old, 1: {0: data_of(0), 1: data_of(20)}}
        fs.before = Fails(at, error, on)
        try:
            put(store, one, 1, data_of(20))
            told = True
        except (OSError, KeyboardInterrupt):
            told = False
        fs.before = None
        interrupted = not told and isinstance(error, KeyboardInterrupt)
        for found in (everything(store), everything(new("/kv", fs.after_cut(lambda n: 0)))):
            assert found == (done if told else old) or (interrupted and found == done)
        put(store, one, 1, data_of(30))
        old[1][1] = data_of(30)
        assert everything(new("/kv", fs.after_cut(lambda n: 0))) == old
    assert told


@pytest.mark.parametrize("on", [False, True])
def test_closing_fails(on: bool) -> None:
    """The sequence is there as long as a file of it is; told to be closed, it does not come back."""
    for at in range(1, 6):
        fs = PoorFiles()
        store = new("/kv", fs)
        slot = store.begin(1)
        for i in range(3):
            put(store, slot, i, data_of(i))
        fs.before = Fails(at, OSError(errno.EIO), on)
        try:
            store.close(slot)
            told = True
        except OSError:
            told = False
        fs.before = None
        if not told:
            assert store.used[slot]
            assert all(data == data_of(i) for i, data in everything(store)[1].items())
            store.close(slot)
        for left in (fs, fs.after_cut(lambda n: n - 1), fs.after_cut(lambda n: 0)):
            assert everything(new("/kv", left)) == {}
        assert fs.used() == store.used_bytes == 0
    assert told


# Cuts


def test_cuts() -> None:
    """A sample of `kvlab powercut`."""
    outcome = FileCuts(300, every=9).run()
    assert outcome.violations == []
    assert outcome.cuts > 200
    assert outcome.second_cuts > 20
    assert outcome.full > 3
    assert outcome.operations == 300


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 6))
def test_cuts_at_every_operation(seed: int) -> None:
    outcome = FileCuts(500, seed=seed).run()
    assert outcome.violations == []
    assert outcome.cuts > 3000


@pytest.mark.parametrize("name", FILE_BREAKS)
def test_without_a_safeguard(name: str) -> None:
    """Each of them is needed."""
    assert len(FileCuts(300, broken=name, most=1).run().violations) >= 1


def test_the_command(kvlab: Any, tmp_path: Path) -> None:
    path = tmp_path / "cuts.json"
    status, out, err = kvlab("powercut", "--operations", 40, "--json", path)
    assert (status, err) == (0, "")
    assert json.loads(path.read_text())["file_cuts"] > 4
    assert "cuts in plain files" in out
    status, out, err = kvlab("powercut", "--break", "flush-before-rename", "--operations", 60, "--json", path)
    assert status == 1
    assert json.loads(path.read_text())["violations"] > 0
    assert "a miss" in err
