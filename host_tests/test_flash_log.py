"""The flash log: what is put is read back, through starts and cuts; what it writes and what it wears."""

from __future__ import annotations

import json
import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from known_cases import DEVICE

from kvlab.powercut.breaks import BREAKS, OF_FILES
from kvlab.powercut.cuts import KINDS, Cuts, Plan
from kvlab.powercut.flash import Nor, PowerCut
from mpy_kv.errors import BadArgument, NoRoom, StepError
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
from mpy_kv.flash_log.places import where

SPEC = Path(__file__).parents[1] / "docs" / "SPEC.md"

INT8 = 5440  # bytes of 16 tokens of the stories' model, codes and scales
INT4 = 3560


def steps(log: Any) -> None:
    while log.step():
        pass


def fresh(nor: Any, record_bytes: int = INT8, slots: int = 1, blocks: int = 256) -> Any:
    log = open_log(FlashLog(nor, record_bytes, slots=slots, blocks=blocks))
    steps(log)
    return log


def made(sectors: int, record_bytes: int = INT8, slots: int = 1, number: int = 1) -> tuple[Any, Any]:
    nor = Nor(sectors)
    format_log(FlashLog(nor, record_bytes, slots=slots, blocks=256), number)
    return nor, fresh(nor, record_bytes, slots)


def told(log: Any, slot: int, size: int, records: int, seed: int = 1) -> list[bytes]:
    """Append so many records, with time in between."""
    data = [random.Random(seed + i).randbytes(size) for i in range(records)]
    for one in data:
        steps(log)
        log.put(slot, log.count[slot], one, [0, size])
    return data


def read(log: Any, slot: int) -> list[bytes]:
    found = []
    for i in range(log.base[slot], log.count[slot]):
        into = bytearray(log.record_bytes)
        found.append(bytes(into[: max(0, log.read(slot, i, into))]))
    return found


@pytest.mark.parametrize(
    ("tokens", "size", "most"), [(1024, INT8, 1.06), (1024, INT4, 1.10), (256, INT8, 1.08), (256, INT4, 1.12)]
)
def test_bytes_written_for_those_put(tokens: int, size: int, most: float) -> None:
    """Heads, headers, summaries, and what stays blank in closed sectors: one sequence of so many tokens."""
    nor, log = made(110, size)
    before = nor.fresh_pages
    slot = log.begin(7)
    data = told(log, slot, size, tokens // 16)
    log.sync(slot)
    written = (nor.fresh_pages - before) * 256 + log.blank_bytes
    assert 1 < written / log.payload_bytes <= most
    assert log.payload_bytes == tokens // 16 * size
    assert nor.longest_program == 256
    assert nor.lost_bits == 0
    assert read(log, slot) == data
    assert read(fresh(nor, size), 0) == data


def test_where_the_bytes_of_a_record_lie() -> None:
    """What is read there is the record, rows whole and on multiples of 8; None of one that is absent,
    or of which a header is not what it was."""
    nor, log = made(64)
    slot = log.begin(1)
    records = [random.Random(i).randbytes(48 * 110) for i in range(12)]
    for i, data in enumerate(records):
        steps(log)
        log.put(slot, i, data, [0, len(data)], 48)
    log.trim(slot, 2)
    for _ in range(2):
        for i in range(2, 12):
            places = where(log, slot, i)
            assert all(offset % 8 == 0 for _, offset, _ in places)
            assert all(n % 48 == 0 for _, _, n in places)
            seen = b"".join(bytes(nor.cells[s * 4096 + at :][:n]) for s, at, n in places)
            assert seen == records[i]
        assert log.misses == 0
        log = fresh(nor)
    for i in (12, -1):
        assert where(log, slot, i) is None
    sector, at, _ = where(log, slot, 5)[1]
    for k in (4, 8, 16, 18, 20):  # of the header of its second fragment: version, record, begin, length, size
        nor.cells[sector * 4096 + at - 24 + k] ^= 1
        assert where(log, slot, 5) is None
        nor.cells[sector * 4096 + at - 24 + k] ^= 1
    assert log.misses == 7
    assert where(log, slot, 5) is not None


def test_a_row_is_never_cut() -> None:
    """Fragments begin and end on multiples of the step, and on 8 bytes of the flash."""
    from mpy_kv.flash_log.words import half

    nor, log = made(64)
    slot = log.begin(1)
    told(log, slot, 48 * 110, 0)
    for i in range(12):
        steps(log)
        log.put(slot, i, bytes(48 * 110), [0, 48 * 110], 48)
    log.sync(slot)
    seen = 0
    for s in range(2, 64):
        at = 24
        while nor.cells[s * 4096] == 0x4C and at < 4064 - 24 and half(nor.cells, s * 4096 + at + 18) < 0xFFFF:
            header = nor.cells[s * 4096 + at :][:24]
            done, here, size = half(header, 16) * 8, half(header, 18) * 8, half(header, 20) * 8
            assert at % 8 == done % 48 == 0
            assert here % 48 == 0 or done + here == size
            seen += 1
            at += 24 + here
    assert seen > 20


def test_what_is_worn_evenly() -> None:
    """Rewritten 640 times over 64 sectors: the most worn has been erased at most once more than the least."""
    nor, log = made(66, 3840)
    slot = log.begin(1)
    log.put(slot, 0, bytes(3840), [0, 3840])
    for _ in range(640):
        steps(log)
        log.put(slot, 0, bytes(3840), [0, 3840])
    wear = nor.wear[2:]
    assert max(wear) - min(wear) <= 1
    assert sum(wear) <= 645
    assert max(nor.wear[:2]) <= 2


def test_small_records_wear_no_more_than_their_bytes() -> None:
    """256 records of 64 bytes: so many sectors as they take with their headers, not an erase each. What the
    log has counted is what the flash has."""
    nor, log = made(32, 64)
    erased, programmed = nor.erases, nor.fresh_pages
    headers = list(nor.wear[:2])
    ready = log.ready
    slot = log.begin(1)
    data = told(log, slot, 64, 256)
    log.sync(slot)
    sectors = -(-256 * (64 + 24 + 8) // (4064 - 24))
    assert sectors == 7
    assert len({s for s in range(2, 32) if log.owner[s] == slot}) == sectors
    assert nor.erases - erased <= sectors - ready + log.ready
    assert nor.wear[:2] == headers
    assert nor.fresh_pages - programmed <= 16 * sectors
    assert log.payload_bytes == 256 * 64
    assert read(log, slot) == data
    steps(log)
    assert [log.floor + log.wear[s] for s in range(2, 32)] == nor.wear[2:]


def test_the_hook_is_called_before_each_erase() -> None:
    calls = []
    nor = Nor(64)
    format_log(FlashLog(nor, INT8, slots=1, blocks=256))
    log = open_log(FlashLog(nor, INT8, slots=1, blocks=256, feed=lambda: calls.append(nor.erases)))
    formatted = nor.erases
    nor.before = lambda kind, *_: calls.append(kind) if kind == "erase" else None
    steps(log)
    told(log, log.begin(1), INT8, 30)
    erases = [i for i, call in enumerate(calls) if call == "erase"]
    assert len(erases) == nor.erases - formatted > 40
    assert all(isinstance(calls[i - 1], int) for i in erases)


def test_full() -> None:
    """Refused with numbers, nothing changed; when something is closed the same record fits."""
    nor, log = made(32, slots=2)
    one, two = log.begin(1), log.begin(2)
    kept = told(log, one, INT8, 3)
    with pytest.raises(NoRoom, match="sectors"):
        told(log, two, INT8, 40)
    count = log.count[two]
    before = bytes(nor.cells)
    with pytest.raises(NoRoom):
        log.put(two, count, bytes(INT8), [0, INT8])
    assert bytes(nor.cells) == before
    assert log.count[two] == count
    log.close(two)
    two = log.begin(3)
    told(log, two, INT8, 3)
    log.sync(one)
    assert read(log, one) == kept
    assert read(fresh(nor, slots=2), one) == kept


def test_records_left_out() -> None:
    """Of the begin and of the end; a later start finds the same."""
    nor, log = made(64)
    slot = log.begin(1)
    data = told(log, slot, INT8, 8)
    log.truncate(slot, 5)
    log.trim(slot, 2)
    data = data[2:5] + told(log, slot, INT8, 1, 99)
    log.sync(slot)
    assert read(log, slot) == data
    log = fresh(nor)
    assert (log.base[slot], log.count[slot]) == (2, 6)
    assert read(log, slot) == data


def test_more_records_are_found_than_there_are_at_a_time() -> None:
    """What was trimmed lies in closed sectors yet: a start that has no room for it lost the newest."""
    nor = Nor(64)
    format_log(FlashLog(nor, INT8, slots=1, blocks=6))
    log = fresh(nor, blocks=6)
    slot = log.begin(1)
    data = []
    for i in range(40):
        if i >= 4 and not log.waits[slot]:
            log.trim(slot, i - 4)
        data += told(log, slot, INT8, 1, i)
    log.sync(slot)
    base = log.base[slot]
    log = fresh(nor, blocks=6)
    assert (log.base[slot], log.count[slot]) == (base, 40)
    assert read(log, slot) == data[base:]
    assert len(log.index) == 7


class Failing:
    """A flash of which one call to program raises."""

    def __init__(self, nor: Any, at: int, error: BaseException) -> None:
        self.nor, self.at, self.error, self.calls = nor, at, error, 0

    def writeblocks(self, block: int, buf: Any, offset: int) -> None:
        self.calls += 1
        if self.calls == self.at + 1:
            raise self.error
        self.nor.writeblocks(block, buf, offset)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.nor, name)


@pytest.mark.parametrize("error", [OSError(5), KeyboardInterrupt()], ids=["fails", "interrupted"])
def test_a_write_that_breaks_off(error: BaseException) -> None:
    """At each page of a record: nothing goes on but a start, which has the old records or the new one too."""
    seen = set()
    for page in range(24):
        nor, log = made(32)
        slot = log.begin(1)
        data = told(log, slot, INT8, 4)
        log.sync(slot)
        steps(log)
        device = Failing(nor, page, error)
        log.device = device
        new = random.Random(99).randbytes(INT8)
        try:
            version = log.put(slot, 4, new, [0, INT8])
        except (OSError, KeyboardInterrupt):
            assert device.calls == page + 1
            tries = [partial(log.put, slot, 4, new, [0, INT8]), partial(log.sync, slot)]
            for call in (*tries, partial(log.close, slot), log.step):
                with pytest.raises(StepError, match=r"open_log\(log\)"):
                    call()
        else:
            assert not log.durable(slot, version)
        log.device = nor
        open_log(log)
        steps(log)
        assert read(log, slot)[:4] == data
        seen.add(log.count[slot])
        log.put(slot, log.count[slot], new, [0, INT8])
        log.sync(slot)
        assert read(log, slot)[-1] == new
    assert seen == {4, 5}


def test_what_is_no_buffer_changes_nothing() -> None:
    _, log = made(16)
    slot = log.begin(1)
    for buffer, runs in (([1] * 80, [0, 80]), ("a" * 80, [0, 80]), (bytes(80), [0])):
        with pytest.raises(BadArgument):
            log.put(slot, 0, buffer, runs)
    assert log.count[slot] == 0
    assert told(log, slot, 80, 1) == read(log, slot)


def test_a_number_goes_round() -> None:
    nor, log = made(64, number=(1 << 30) - 60)
    slot = log.begin(1)
    told(log, slot, INT8, 20)
    data = [bytes([i]) * INT8 for i in range(20)]
    for i in range(20):
        steps(log)
        log.put(slot, i, data[i], [0, INT8])
    log.sync(slot)
    assert log.number < 1000 or log.number > 4096
    assert read(fresh(nor), slot) == data


def test_what_is_refused() -> None:
    nor = Nor(64)
    log = FlashLog(nor, INT8)
    with pytest.raises(BadArgument, match="no log"):
        open_log(log)
    nor.cells[50 * 4096 + 77] = 3
    with pytest.raises(BadArgument, match="neither blank nor a log"):
        format_log(log)
    nor.cells[50 * 4096 + 77] = 255
    format_log(log)
    with pytest.raises(BadArgument, match="8 slots"):
        open_log(FlashLog(nor, INT8, slots=3))
    nor.cells[4] = 2  # of another version, its CRC right
    nor.cells[252:256] = __import__("zlib").crc32(nor.cells[:252]).to_bytes(4, "little")
    with pytest.raises(BadArgument, match="version 2"):
        open_log(log)
    with pytest.raises(NoRoom, match="needed"):
        FlashLog(Nor(8), INT8)


def test_nothing_before_the_steps_of_a_start() -> None:
    nor, log = made(64)
    log = open_log(FlashLog(nor, INT8, slots=1, blocks=256))
    with pytest.raises(StepError, match="step"):
        log.begin(1)


def test_a_flipped_bit_is_a_miss() -> None:
    """Never other bytes; the rest is unharmed."""
    nor, log = made(64)
    slot = log.begin(1)
    data = told(log, slot, INT8, 6)
    log.sync(slot)
    for at in range(2 * 4096 + 24, 4 * 4096, 997):
        nor.cells[at] ^= 1
        found = read(log, slot)
        wrong = [i for i in range(6) if found[i] != data[i]]
        assert all(found[i] == b"" for i in wrong)
        assert len(wrong) <= 1
        nor.cells[at] ^= 1
    assert log.misses > 3


def test_a_damaged_header_harms_no_other_sequence() -> None:
    """Neither a record number nor counts of a sequence that are not as they were written leave too little
    room for what is found of another one."""
    for field in (8, 12, 14):
        nor, log = made(16, 1200, slots=2)
        one, two = log.begin(1), log.begin(2)
        lost = told(log, two, 1200, 3)
        log.sync(two)
        kept = told(log, one, 1200, 3, 50)
        log.sync(one)
        place = log._entry(two, 2)
        header = (place >> 9) * 4096 + ((place & 511) << 3)
        nor.cells[header + field : header + field + 2] = b"\xf0\xff"
        log = fresh(nor, 1200, slots=2)
        assert read(log, log.find(1)) == kept
        assert all(found in (b"", *lost) for found in read(log, log.find(2)))
        assert log.count[two] <= 3


def test_on_a_device(upy: Any) -> None:
    """Nothing is allocated by put, read and step; the flash is that which CPython leaves."""
    told_there = json.loads(upy.run(DEVICE / "flash_log.py"))
    assert told_there["wrong"] == 0
    assert told_there["count"] == 24
    for name, counted in told_there["allocated"].items():
        assert counted == [0] * 24, name
    assert told_there["a_sector"] <= 4
    assert told_there["a_record"] <= 4


def test_cuts() -> None:
    """A sample of `kvlab powercut`."""
    outcome = Cuts(Plan(64, INT8, every=331, whole=1)).run()
    assert outcome.violations == []
    assert outcome.cuts > 30
    assert outcome.second_cuts > 40  # one of each cut, and those of the whole recovery
    assert outcome.whole == 1
    assert outcome.operations == 500
    assert all(outcome.states[name] for name in ("wrapped", "full", "closed"))
    assert outcome.write_amplification <= 1.3
    assert set(outcome.cuts_by_kind) <= set(KINDS)


def test_worked_example_of_the_format() -> None:
    """What the code writes is what docs/SPEC.md shows."""
    nor = Nor(16)
    format_log(FlashLog(nor, 24, slots=2, blocks=8))
    log = open_log(FlashLog(nor, 24, slots=2, blocks=8))
    steps(log)
    slot = log.begin(0x1234)
    log.put(slot, 0, bytes(range(16)), [0, 16])
    log.put(slot, 1, bytes(range(16, 32)), [0, 16, -1, 8])
    log.sync(slot)
    for part in ("begin", "end"):
        (dump,) = re.findall(rf"```text flash-log-{part}\n(.*?)```", SPEC.read_text(), re.DOTALL)
        for line in dump.splitlines():
            found = re.fullmatch(r"([0-9a-f]+): ((?:[0-9a-f]{4} ?)+).*", line)
            assert found is not None
            at, words = found.groups()
            assert nor.cells[int(at, 16) :][:16] == bytes.fromhex(words), at


@pytest.mark.parametrize("name", [name for name in BREAKS if name not in OF_FILES])
def test_without_a_safeguard(name: str) -> None:
    """Each of them is needed: without it a cut does harm, which is found."""
    kinds = {
        "superblock-alternation": ("superblock",),
        "last-close": ("summary",),
        "erase-record": ("erase",),
    }
    plan = Plan(64, INT8, every=1, whole=0, broken=name, most_violations=1, kinds=kinds.get(name, ()))
    assert len(Cuts(plan).run().violations) == 1


@pytest.mark.parametrize("size", [64, 200, 1000, 3000, INT8])
def test_cut_again_and_again(size: int) -> None:
    """Start after start is cut at some operation, in its recovery or while it tells on: what was told to be
    kept is there each time, and what is there is what was put, without a gap."""
    for seed in range(1, 4):
        nor = Nor(40, seed)
        format_log(FlashLog(nor, size, slots=1, blocks=120))
        kept = 0
        for _ in range(12):
            nor.power_on()
            nor.cut_after = nor.chance(90)
            try:
                log = fresh(nor, size, blocks=120)
                slot = log.find(3) if log.find(3) >= 0 else log.begin(3)
                assert read(log, slot) == [bytes([i]) * size for i in range(log.count[slot])]
                assert log.count[slot] >= kept
                told_now = {}
                while log.count[slot] < (10 if size > 4000 else 50):
                    i = log.count[slot]
                    told_now[i] = log.put(slot, i, bytes([i]) * size, [0, size])
                    safe = [k + 1 for k, number in told_now.items() if log.durable(slot, number)]
                    kept = max([kept, *safe])
                    steps(log)
            except PowerCut:
                continue


def test_the_command(kvlab: Any, tmp_path: Path) -> None:
    path = tmp_path / "cuts.json"
    status, out, err = kvlab("powercut", "--board", "rp2040", "--operations", 40, "--json", path)
    figures = json.loads(path.read_text())
    assert (status, err) == (0, "")
    assert figures["violations"] == 0
    assert figures["cuts"] > 10
    assert figures["irq_off_us"] == 400_000
    assert figures["lifetime_tokens"] > 1e8
    assert "Raspberry Pi Pico" in out
    status, _, err = kvlab("powercut", "--break", "crc", "--operations", 60)
    assert status == 1
    assert "seed 1" in err
    status, _, err = kvlab("powercut", "--break", "crv")
    assert status == 2
    assert "crc" in err


def test_a_start_on_a_pico(qemu: Any) -> None:
    """180 records in 246 sectors are found within 50 ms, by the cost model."""
    from kvlab.powercut import reopening

    assert 10_000 < reopening.reopen_us(INT8, 125e6) <= 50_000
