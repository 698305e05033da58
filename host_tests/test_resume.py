"""A sequence goes on from its flash log after a power cut at any moment, as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from array import array
from typing import Any

import pytest
from known_cases import DEVICE
from resume_cases import RINGS, TAIL, Told, Twins, blank, cut_after, sectors
from snapshot_cases import plain, request, saved

from kvlab.paths import ROOT
from kvlab.powercut.flash import Nor, PowerCut
from mpy_kv import Geometry, KVCache
from mpy_kv.errors import BadArgument, NoRoom, StepError
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
from mpy_kv.resume import BlockLog, sizes
from mpy_kv.resume import blocks as resume_blocks
from mpy_kv.token_eviction import BudgetCache

BLOCK = 16
SPEC = ROOT / "docs" / "SPEC.md"


def newest(length: int, sinks: int) -> int:
    """Tokens of a sequence of which no block was lost, but the last of its newest block."""
    blocks = (length - sinks) // BLOCK
    return sinks + BLOCK * blocks - 1 if blocks > 0 else 0


@pytest.mark.parametrize("kind", RINGS)
def test_it_goes_on_as_if_nothing_had_happened(kind: str) -> None:
    """Switched off at several lengths one after the other, before and after the ring has wrapped, several
    times over: the same bytes as a twin's at each length from there on."""
    make = RINGS[kind]
    lengths = (5, 30, 31, 70, 71, 120, 160)
    after = [newest(to, make().geometry.sinks) + n for to in lengths for n in (1, 2, 16, 17, 18)]
    twins, nor = Twins(make, *after, *lengths), blank(make)
    went_on = []
    for to in lengths:
        told = Told(make, nor)
        went_on.append(told.went_on)
        # The token that whoever goes on runs first was seen by nobody yet.
        for length in sorted({n for n in after if told.went_on < n <= to} | {to}):
            assert saved(told.tell(length).cache) == twins.at(length)
        assert told.blocks.failed is None
        assert told.cache.check() == 0
    sinks = make().geometry.sinks
    assert went_on == [0, *(newest(to, sinks) for to in lengths[:-1])]


def test_a_restore_alone_is_the_state_before_the_last_token() -> None:
    """The oldest token of the ring has left: it would with the next one."""
    make = RINGS["int8"]
    nor = blank(make)
    Told(make, nor).tell(150)
    told = Told(make, nor)
    c = told.cache
    assert (told.went_on, c.length) == (145, 145)
    assert c.visible() == [0, 1, *range(106, 145)]
    assert c.evicted_tokens == 104
    assert c.check() == 0


def test_nothing_to_go_on_with() -> None:
    make = RINGS["int8"]
    nor = blank(make)
    assert Told(make, nor).went_on == 0  # blank
    assert Told(make, nor).tell(17).went_on == 0  # a sequence without a block
    assert Told(make, nor).tell(18).went_on == 0
    assert Told(make, nor).went_on == 17


def test_a_foreign_sequence_is_no_sequence_and_makes_room() -> None:
    make = RINGS["int8"]
    nor = blank(make)
    Told(make, nor, identity=5).tell(60)
    assert Told(make, nor, identity=6).went_on == 0
    assert Told(make, nor, identity=5).went_on == 0  # one at a time is in the region
    other = Told(make, nor, identity=6)
    assert saved(other.tell(60).cache) == Twins(make, 60).at(60)


def test_one_that_is_not_accepted_is_not_gone_on_with() -> None:
    make = RINGS["int8"]
    nor = blank(make)
    Told(make, nor).tell(60)
    told = Told(make, nor, accept=lambda: False)
    assert (told.went_on, told.cache.length) == (0, 0)
    assert saved(told.tell(50).cache) == Twins(make, 50).at(50)


def test_a_finished_one_is_over() -> None:
    make = RINGS["int8"]
    nor = blank(make)
    told = Told(make, nor).tell(60)
    told.blocks.finish()
    assert Told(make, nor).went_on == 0


CUT_TO = 150
CUT_KINDS = ("int8", "no sinks", "wide", "sealed")


def operations(make: Any) -> int:
    """Of a story of CUT_TO tokens that is not cut."""
    nor = blank(make)
    before = nor.erases + nor.programs
    Told(make, nor).tell(CUT_TO)
    return int(nor.erases + nor.programs - before)


@pytest.fixture(scope="module")
def cut_kinds() -> dict[str, tuple[Twins, Any, int]]:
    return {
        kind: (Twins(RINGS[kind], CUT_TO), blank(RINGS[kind]), operations(RINGS[kind])) for kind in CUT_KINDS
    }


def cut_once(kind: str, cut: int, found: tuple[Twins, Any, int]) -> int:
    """Cut in that operation, and once more in one of the start after it or of what follows: what goes on then
    is the twin's, and not older than what was kept. Tokens it went on with."""
    twins, start, _ = found
    make = RINGS[kind]
    nor = start.copy(cut + 1)
    first = cut_after(make, nor, cut, CUT_TO)
    kept = 0 if first is None else first.kept()
    for again in (random.Random(cut).randrange(40), -1):
        nor.power_on()
        nor.cut_after = again
        try:
            told = Told(make, nor)
            sinks = told.blocks.sinks
            assert told.went_on >= (sinks + BLOCK * kept - 1 if kept else 0)
            went_on = told.went_on
            told.tell(CUT_TO)
            assert told.blocks.failed is None
            assert saved(told.cache) == twins.at(CUT_TO)
        except PowerCut:
            assert again >= 0
    return went_on


@pytest.mark.parametrize("kind", CUT_KINDS)
def test_cut_in_some_operations(kind: str, cut_kinds: Any) -> None:
    found = cut_kinds[kind]
    went_on = [cut_once(kind, cut, found) for cut in range(3, found[2], found[2] // 5)]
    assert max(went_on) > 40


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", CUT_KINDS)
@pytest.mark.parametrize("part", range(8))
def test_cut_in_every_operation(kind: str, part: int, cut_kinds: Any) -> None:
    """Each cut torn by its own chance, and cut once more."""
    for cut in range(part, cut_kinds[kind][2], 8):
        cut_once(kind, cut, cut_kinds[kind])


def test_what_is_damaged_is_not_gone_on_with() -> None:
    """A byte of every record in turn: the story goes on from an older block, or begins anew, with the right
    bytes, and the miss is counted."""
    make = RINGS["int8"]
    start = blank(make)
    Told(make, start).tell(120)
    twins = Twins(make, 130)
    seen = set()
    for at in range(2 * 4096 + 100, len(start.cells), 1500):
        nor = start.copy(1)
        nor.cells[at] ^= 0x10
        told = Told(make, nor)
        seen.add(told.went_on)
        if told.went_on != 113:
            assert told.blocks.log.misses or told.went_on < 113
        assert saved(told.tell(130).cache) == twins.at(130)
    assert {0, 97, 113} <= seen or {0, 113} <= seen


class Refusing(Nor):  # type: ignore[misc]
    """A flash whose sectors are not to be written from some time on."""

    refuses = False

    def writeblocks(self, block: int, buf: Any, offset: Any = None) -> None:
        if self.refuses:
            raise OSError(30)
        super().writeblocks(block, buf, offset)


def test_a_device_that_fails_ends_the_logging_and_nothing_else() -> None:
    make = RINGS["int8"]
    nor = Refusing(sectors(make))
    nor.cells[:] = blank(make).cells
    told = Told(make, nor).tell(60)
    nor.refuses = True
    told.tell(100)
    assert isinstance(told.blocks.failed, OSError)
    assert saved(told.cache) == Twins(make, 100).at(100)
    told.blocks.finish()  # writes nothing
    nor.refuses = False
    again = Told(make, nor)
    assert again.went_on == newest(60, 2)
    assert saved(again.tell(130).cache) == Twins(make, 130).at(130)


@pytest.mark.parametrize("kind", [*RINGS])
def test_the_smallest_region_is_enough(kind: str) -> None:
    """For a sequence of any length, nothing ever copied for room; one sector less is refused by number."""
    make = RINGS[kind]
    cache = make()
    nor = blank(make)
    told = Told(make, nor)
    blocks = told.blocks
    for _ in range(1200 if cache.geometry.capacity is None else cache.geometry.capacity):
        blocks.cache.length += 1
        blocks.stepped()  # of bytes that do not matter
    assert blocks.failed is None
    assert blocks.log.copied_bytes == 0
    assert blocks.records >= 12
    with pytest.raises(NoRoom, match=f"{4096 * sectors(make)}"):
        sizes.make(Nor(sectors(make) - 1), cache, TAIL)


def test_what_is_refused() -> None:
    cache = RINGS["int8"]()
    log = sizes.make(Nor(sectors(RINGS["int8"])), cache, TAIL)
    g = Geometry(layers=2, heads=4, kv_heads=2, head_dim=4, window=9, sinks=2)
    for other in (BudgetCache(g, policy="lru-peak"), request(window=18, sinks=2)()):
        with pytest.raises(BadArgument, match="cache must be a ring"):
            BlockLog(log, other, 1, bytearray(TAIL))
    with pytest.raises(BadArgument, match="tail must be a bytearray, a multiple of 8 bytes"):
        BlockLog(log, cache, 1, bytearray(12))
    with pytest.raises(BadArgument, match="log must have records of 664 bytes, 12 blocks and 2 slots"):
        BlockLog(FlashLog(Nor(60), 320, slots=2, blocks=100), cache, 1, bytearray(TAIL))


def test_rows_that_have_no_short_step_in_common() -> None:
    """They are put as well, though a sector's end may cut one."""
    cache = plain("sparse", layers=1, heads=1, kv_heads=1, head_dim=1024, window=1, sinks=1)()
    assert sizes.step_bytes(cache) == 8
    assert sizes.step_bytes(plain("sparse", head_dim=64, window=40)()) == 448
    assert sizes.step_bytes(plain("float16", head_dim=12, window=40)()) == 24


@pytest.mark.parametrize("page", range(0, 33, 3))
def test_an_interrupt_while_it_logs(page: int) -> None:
    """Told on after it, the log says that it ended, and what it has is gone on with."""
    make = RINGS["int8"]
    nor = blank(make)
    told = Told(make, nor).tell(60)
    device = Interrupted(nor, page)
    told.blocks.log.device = device
    with pytest.raises(KeyboardInterrupt):
        told.tell(200)
    told.blocks.log.device = nor
    told.tell(260)
    assert isinstance(told.blocks.failed, StepError)
    again = Told(make, nor)
    assert 40 < again.cache.length <= 200
    again.tell(260)
    assert bytes(again.cache.buffer) == bytes(Told(make, blank(make)).tell(260).cache.buffer)


class Interrupted:
    """A flash of which one call to program is interrupted."""

    def __init__(self, nor: Any, at: int) -> None:
        self.nor, self.left = nor, at

    def writeblocks(self, block: int, buf: Any, offset: int) -> None:
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt
        self.nor.writeblocks(block, buf, offset)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.nor, name)


def test_only_an_empty_cache_takes_one_over() -> None:
    from mpy_kv.errors import StepError

    make = RINGS["int8"]
    told = Told(make, blank(make)).tell(60)
    with pytest.raises(StepError, match="empty"):
        told.blocks.restore()


def test_a_larger_region_is_as_good() -> None:
    make = plain("int8", window=40, sinks=2)
    nor = blank(make, 30)
    Told(make, nor).tell(300)
    assert saved(Told(make, nor).tell(310).cache) == Twins(make, 310).at(310)


def test_worked_example_of_the_format() -> None:
    """What the code puts is what docs/SPEC.md shows."""
    cache = KVCache(Geometry(1, 1, 1, 4, window=20, sinks=1))
    nor = Nor(sizes.smallest_sectors(cache, 8))
    format_log(sizes.make(nor, cache, 8))
    log = open_log(sizes.make(nor, cache, 8))
    while log.step():
        pass
    blocks = BlockLog(log, cache, 7, bytearray(b"tail...."))
    assert not blocks.restore()
    blocks.begin()
    for t in range(17):
        cache.append(0, array("f", [t, 0, -t, t / 2]), array("f", [1, 0, -1, 0.25]))
        cache.commit()
        blocks.stepped()
    for part, identity in (("sinks", 0x3E3779B8), ("block", 0x1E3779B8)):
        (dump,) = re.findall(rf"```text sequence-{part}\n(.*?)```", SPEC.read_text(), re.DOTALL)
        words = "".join(line[5:44] for line in dump.splitlines())
        into = bytearray(log.record_bytes)
        size = log.read(log.find(identity), 0, into)
        assert bytes(into[:size]) == bytes.fromhex(words)


def test_one_of_another_version_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    make = RINGS["int8"]
    nor = blank(make)
    Told(make, nor).tell(60)
    monkeypatch.setattr(resume_blocks, "VERSION", 2)
    assert Told(make, nor).went_on == 0


def test_on_a_device(upy: Any) -> None:
    """No token allocates, whatever it puts and erases; cache and flash are what CPython leaves."""
    there = json.loads(upy.run(DEVICE / "resume.py"))
    for each in there:
        assert each["failed"] == "None"
        assert each.pop("allocated") == [0, 0]
        assert each["first"] == [49, 0, "None"]
        assert each["went_on"] == newest(800, 2)
    here = json.loads(
        subprocess.run(
            [sys.executable, str(DEVICE / "resume.py")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    )
    for each in here:
        each.pop("allocated")
    assert there == here
