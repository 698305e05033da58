"""Snapshots: what comes after a load is what would have come; what is not sound is refused."""

from __future__ import annotations

import random
import struct
import tracemalloc
from array import array
from pathlib import Path
from typing import Any

import pytest
import snapshot_cases as cases
from sampling import Sampled
from snapshot_cases import HEADER, KINDS, Stream, grown, load, mended, saved, sections, step

from mpy_kv import Geometry, KVCache, cache_for, geometry_for, snapshot
from mpy_kv.errors import BadArgument, KVError, NoRoom, StepError
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.snapshot import BadSnapshot
from mpy_kv.token_eviction import BudgetCache

SMALL = {"layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 4}


def same(one: Any, other: Any) -> None:
    """What can be seen of both."""
    assert one.visible() == other.visible()
    assert (one.length, one.evicted_tokens) == (other.length, other.evicted_tokens)
    assert one.kv_bytes == other.kv_bytes
    for which in "kv":
        for p in one.visible():
            assert one.read(0, which, p) == other.read(0, which, p)
    assert other.check() == 0


@pytest.mark.parametrize("name", KINDS)
def test_the_next_tokens_are_the_undisturbed_ones(name: str) -> None:
    """The length is rolled back and grows again, so that slots have gaps and blocks two forms."""
    cache = grown(KINDS[name], 45)
    cache.rollback(7)
    step(cache, 900)
    data = saved(cache)
    again = KINDS[name]()
    assert load(again, data) == len(cache.visible()) > 0
    same(cache, again)
    for t in range(60, 60 + (40 if cache.geometry.capacity else 50)):
        assert step(cache, t) == step(again, t)
    same(cache, again)


# Around the ends of blocks, with the sinks before them and without, and of the windows.
BLOCK_TOKENS = {"sealed": 16, "sealed, short": 16, "sealed, capacity": 16, "paged": 8, "paged, capacity": 8}


PLACED = ["ring", "capacity", "mixed", "lru-peak", "window", *BLOCK_TOKENS]  # each its own way


def ends(name: str) -> list[int]:
    g = KINDS[name]().geometry
    most = g.capacity - 10 if g.capacity else 100
    visible = g.capacity or g.sinks + g.window
    whole = [BLOCK_TOKENS[name], g.sinks + BLOCK_TOKENS[name]] if name in BLOCK_TOKENS else []
    around = [end + by for end in [*whole, g.window, visible] for by in (-1, 0, 1)]
    return sorted({n for n in [0, 1, *around, 100] if n <= most})


@pytest.mark.parametrize(("name", "tokens"), [(name, n) for name in PLACED for n in ends(name)])
def test_not_a_token_too_many_or_too_few(name: str, tokens: int) -> None:
    """Ten tokens after a load: positions come once each, with as many ids as tokens."""
    cache = grown(KINDS[name], tokens)
    again = KINDS[name]()
    ids: dict[int, int] = {}
    assert load(again, saved(cache, ids=range(200)), ids=ids) == len(cache.visible())
    same(cache, again)
    assert sorted(ids) == again.visible()
    g = cache.geometry
    for t in range(tokens, tokens + 10):
        assert step(cache, t) == step(again, t)
        assert again.length == t + 1
        assert again.visible()[-1] == t
        ids[t] = t
        assert all(ids[p] == p for p in again.visible())
        if not hasattr(again, "policy") and g.capacity is None:
            first = max(min(g.sinks, t + 1), t + 1 - g.window)
            assert again.visible() == [*range(min(g.sinks, t + 1)), *range(first, t + 1)]
    same(cache, again)
    if g.capacity:
        assert again.visible() == [*range(tokens + 10)]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("back", [1, 9, 30])
def test_a_rollback_after_the_load_is_one_before_it(name: str, back: int) -> None:
    cache = grown(KINDS[name], 50)
    again = KINDS[name]()
    load(again, saved(cache))
    cache.rollback(back)
    again.rollback(back)
    same(cache, again)
    for t in range(70, 90):
        assert step(cache, t) == step(again, t)


@pytest.mark.parametrize("name", KINDS)
def test_a_snapshot_of_what_was_loaded_is_the_same(name: str) -> None:
    cache = grown(KINDS[name], 41)
    cache.rollback(3)
    data = saved(cache, ids=range(100), sections=[(b"note", b"abc")])
    again = KINDS[name]()
    ids: dict[int, int] = {}
    note = bytearray(3)
    load(again, data, ids=ids, sections={b"note": note})
    assert ids == {p: p for p in cache.visible()}
    assert saved(again, ids=ids, sections=[(b"note", note)]) == data


def test_it_does_not_depend_on_where_tokens_lie() -> None:
    """The same tokens one by one, at once, in blocks of another size; a rolled-back step leaves nothing."""
    one = grown(KINDS["ring"], 15)
    many = KINDS["ring"]()
    width = one.geometry.width
    for layer in range(2):
        k = array("f", [x for t in range(15) for x in cases.vector(width, 3 * t + layer)])
        v = array("f", [x for t in range(15) for x in cases.vector(width, 7 * t + layer)])
        many.prefill(layer, k, v, 15)
    many.commit()
    step(many, 77)
    many.rollback(1)
    assert saved(one) == saved(many)
    paged = grown(cases.request(4, **cases.WINDOW), 15)
    assert paged.commit(None) is None if paged.pending() else True
    ids = list(range(15))
    assert saved(paged) == saved(one, ids=ids)


@pytest.mark.parametrize("block_tokens", [4, 8, 16, 32])
def test_a_request_is_loaded_into_blocks_of_any_size(block_tokens: int) -> None:
    cache = grown(cases.request(16, **cases.WINDOW), 20)
    again = cases.request(block_tokens, **cases.WINDOW)()
    assert load(again, saved(cache)) == 20
    ring = KINDS["ring"]()
    load(ring, saved(cache))
    for t in range(20, 40):
        found = step(cache, t)
        assert found == step(again, t) == step(ring, t)


def test_a_request_that_was_loaded_is_found_by_its_ids() -> None:
    data = saved(grown(cases.request(4, capacity=40), 13))
    requests = Requests(PagedGeometry(**cases.SHAPE, capacity=40, block_tokens=4), 12)
    request = requests.open()
    assert load(request, data) == 13
    assert requests.stats()["reused_tokens"] == 13
    assert requests.lookup([*range(13), 99]) == 12
    assert requests.check() == 0
    step(request, 13)
    assert requests.open(tokens=[*range(20)]).length == 12
    request.close()
    assert requests.check() == 0


@pytest.mark.parametrize(("tokens", "known"), [(20, True), (21, False), (40, False)])
def test_ids_of_a_request_beyond_its_window_are_the_programs(tokens: int, known: bool) -> None:
    """It knows ids for others to find its tokens by, so not behind some that are gone; a program may."""
    data = saved(grown(KINDS["paged"], tokens), ids=range(100))
    again = KINDS["paged"]()
    ids: dict[int, int] = {}
    load(again, data, ids=ids)
    assert saved(again, ids=ids) == data
    assert (b"IDS " in [tag for tag, _, _, _ in sections(saved(again))]) == known


def test_a_request_takes_no_more_than_it_may() -> None:
    data = saved(grown(cases.request(4, capacity=40), 13))
    requests = Requests(PagedGeometry(**cases.SHAPE, capacity=40, block_tokens=4), 6)
    for request, missing in ((requests.open(limit_tokens=8), 1), (requests.open(reserve_tokens=12), 0)):
        with pytest.raises(NoRoom) if missing else pytest.raises(ZeroDivisionError):
            load(request, data)
            raise ZeroDivisionError  # it had room
        assert requests.check() == 0
        assert request.length == (0 if missing else 13)
    full = requests.available_blocks()
    third = requests.open()
    with pytest.raises(NoRoom):
        load(third, data)
    assert requests.available_blocks() == full
    assert requests.check() == 0


# SNP-4: one setting changed.
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "layers": ({"layers": 3}, "layers is 3 here and 2 in the snapshot"),
    "heads": ({"heads": 8}, "heads is 8 here and 4 in the snapshot"),
    "kv_heads": ({"kv_heads": 4}, "kv_heads is 4 here and 2 in the snapshot"),
    "head_dim": ({"head_dim": 16}, "head_dim is 16 here and 8 in the snapshot"),
    "codec": ({"codec": "float16", "group": None}, "codec of layer 0 is float16 here and int8 in the"),
    "group": ({"group": 4}, "group of layer 0 is 4 here and 8 in the snapshot"),
    "window": ({"window": 17}, "window is 17 here and 16 in the snapshot"),
    "sinks": ({"sinks": 3}, "sinks is 3 here and 4 in the snapshot"),
    "capacity": ({"window": None, "sinks": None, "capacity": 99}, "window is none here and 16 in the"),
}
WRITTEN: dict[str, Any] = {
    "layers": 2,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 8,
    "codec": "int8",
    "group": 8,
    "window": 16,
    "sinks": 4,
}


@pytest.fixture(scope="module")
def written() -> bytes:
    return saved(grown(lambda: KVCache(Geometry(**WRITTEN)), 25), model=7, rope=1)


def is_refused(cache: Any, data: bytes, says: str, tmp_path: Path, **options: Any) -> None:
    """From a stream and from a file, by a message that has that in it; nothing of the cache is touched."""
    path = tmp_path / "a.mkvs"
    path.write_bytes(data)
    was = bytes(cache.buffer), list(cache._turn), saved(cache)
    for read in (
        lambda: load(cache, data, **options),
        lambda: snapshot.load_file(cache, str(path), **options),
    ):
        with pytest.raises(BadSnapshot) as error:
            read()
        assert says in str(error.value)
        assert (bytes(cache.buffer), list(cache._turn), saved(cache)) == was
    assert cache.check() == 0
    new, other = step(cache, 0), step(cache, 1)
    cache.rollback(2)
    assert [step(cache, 0), step(cache, 1)] == [new, other]


@pytest.mark.parametrize("field", CHANGES)
def test_another_setting_is_refused_by_name(field: str, written: bytes, tmp_path: Path) -> None:
    change, says = CHANGES[field]
    cache = KVCache(Geometry(**{**WRITTEN, **change}))
    is_refused(cache, written, says, tmp_path, model=7, rope=1)


def test_another_model_rotation_or_kind_is_refused_by_name(written: bytes, tmp_path: Path) -> None:
    def cache() -> Any:
        return KVCache(Geometry(**WRITTEN))

    for other, says, settings in (
        (cache(), "model is 00000008 here and 00000007 in the snapshot", {"model": 8, "rope": 1}),
        (cache(), "rope is 0 here and 1 in the snapshot", {"model": 7}),
        (
            BudgetCache(Geometry(**WRITTEN), policy="lfu"),
            "kind of cache is tokens that a policy chose here and tokens by position in the snapshot",
            {"model": 7, "rope": 1},
        ),
    ):
        is_refused(other, written, says, tmp_path, **settings)
    assert load(cache(), written, model=7, rope=1) == 20


@pytest.mark.parametrize(
    ("mine", "its", "says"),
    [
        (
            {"codec": "int8"},
            {"codec": "int4"},
            "kind of cache is tokens by position here and sealed blocks of",
        ),
        ({"sinks": 0}, {"sinks": 3}, "sinks is 0 here and 3 in the snapshot"),
        ({"sinks": 3}, {"sinks": 0}, "sinks is 3 here and 0 in the snapshot"),
        (
            {"codec": ["int8", "int8-int4"]},
            {"codec": ["int8", "float16"]},
            "codec of layer 1 is int8-int4 here and float16 in the snapshot",
        ),
        (
            {"window": None, "sinks": None, "capacity": 9},
            {"window": 8},
            "window is none here and 8 in the snapshot",
        ),
        ({"window": 8}, {"window": None, "sinks": None, "capacity": 9}, "window is 8 here and none in the"),
        ({"group": 2}, {"group": 1}, "group of layer 0 is 2 here and 1 in the snapshot"),
    ],
)
def test_other_settings_are_refused_by_name(
    mine: dict[str, Any], its: dict[str, Any], says: str, tmp_path: Path
) -> None:
    usual = {"codec": "int8", "window": 20, "sinks": 1}
    data = saved(grown(cases.plain(**{**usual, **its}), 7))
    is_refused(cases.plain(**{**usual, **mine})(), data, says, tmp_path)


@pytest.mark.parametrize("change", [{"window": 17}, {"sinks": 1}, {"kv_heads": 1}, {"head_dim": 2}])
def test_a_request_of_other_settings_takes_no_block(change: dict[str, Any], tmp_path: Path) -> None:
    data = saved(grown(KINDS["paged"], 25))
    g = PagedGeometry(**{**cases.SHAPE, **cases.WINDOW, **change}, block_tokens=8)
    requests = Requests(g, 3 * g.pages)
    free = requests.available_blocks()
    (name, value), was = *change.items(), {**cases.SHAPE, **cases.WINDOW}
    with pytest.raises(BadSnapshot, match=f"{name} is {value} here and {was[name]} in the snapshot"):
        load(requests.open(), data)
    assert requests.available_blocks() == free
    assert requests.check() == 0


def test_another_policy_is_refused_by_name() -> None:
    data = saved(grown(cases.budget("lru-attention"), 20))
    with pytest.raises(BadSnapshot, match="policy is lru-peak here and lru-attention in the snapshot"):
        load(cases.budget("lru-peak")(), data)
    with pytest.raises(BadSnapshot, match="recent is 2 here and 1 in the snapshot"):
        load(cases.budget("lru-attention", recent=2)(), data)


def test_a_capacity_takes_what_it_has_room_for() -> None:
    def of(capacity: int) -> Any:
        return KVCache(Geometry(**SMALL, capacity=capacity))

    cache = grown(lambda: of(20), 12)
    data = saved(cache)
    with pytest.raises(BadSnapshot, match="capacity is 11 here, the snapshot has 12 tokens"):
        load(of(11), data)
    for capacity in (12, 13, 50):
        again = of(capacity)
        load(again, data)
        same(cache, again)


@pytest.mark.parametrize(("version", "says"), [(2, "version 2; this program"), (0, "version 0; this")])
def test_another_version_is_refused_by_its_number(version: int, says: str, written: bytes) -> None:
    data = bytearray(written)
    data[4] = version
    with pytest.raises(BadSnapshot, match=says):
        load(KVCache(Geometry(**WRITTEN)), mended(data), model=7, rope=1)


# Damage.

TINY = {
    "ring": lambda: KVCache(Geometry(1, 1, 1, 4, window=3, sinks=1)),
    "mixed": lambda: cache_for(geometry_for(["int8", "float16"], 2, 1, 1, 2, window=2, sinks=0)),
    "sealed": lambda: cache_for(geometry_for("int4", 1, 1, 1, 2, window=16, sinks=0)),
    "chosen": lambda: BudgetCache(Geometry(1, 1, 1, 4, window=3, sinks=1), policy="lfu"),
    "paged": lambda: Requests(PagedGeometry(1, 1, 1, 4, window=3, sinks=1, block_tokens=2), 6).open(),
}


def refused(name: str, data: bytes, **options: Any) -> None:
    """By load and, where its checksums are wrong, by check; the cache as it was, and of use."""
    cache = TINY[name]()
    with pytest.raises(BadSnapshot):
        load(cache, data, **options)
    assert (cache.length, cache.visible(), cache.evicted_tokens, cache.check()) == (0, [], 0, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TINY)
def test_every_byte_changed_is_refused(name: str, sampled: Sampled) -> None:
    data = saved(grown(TINY[name], 37), ids=range(99), sections=[(b"note", b"xyz")])
    for at in sampled(range(len(data))):
        for bits in (1, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= bits
            refused(name, bytes(damaged))
            with pytest.raises(BadSnapshot):
                snapshot.check(Stream(damaged).readinto)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TINY)
def test_every_truncation_is_refused(name: str, sampled: Sampled) -> None:
    data = saved(grown(TINY[name], 37), ids=range(99), sections=[(b"note", b"xyz")])
    for end in sampled(range(len(data))):
        refused(name, data[:end])
        if end >= 80:
            refused(name, mended(data[:end]), sections={b"note": bytearray(3)})
        with pytest.raises(BadSnapshot):
            snapshot.check(Stream(data[:end]).readinto)


def test_sections_of_two_snapshots_are_none() -> None:
    """What a file is that was overwritten in place and not to its end: checksums go on from the first on."""
    one, two = (grown(TINY["mixed"], n) for n in (9, 9))
    two.rollback(1)
    step(two, 500)
    old, new = saved(one), saved(two)
    assert len(old) == len(new)
    assert old[:80] == new[:80]
    for _, _, at, _ in sections(new):
        torn = new[: at - 12] + old[at - 12 :]
        if torn in (old, new):
            continue
        refused("mixed", torn)


@pytest.mark.parametrize("number", [0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x10000])
def test_hostile_lengths_are_refused_before_anything_is_made(number: int) -> None:
    """In the header and in each section, checksums made right; and nothing beyond the bytes is asked for."""
    for name in TINY:
        data = saved(grown(TINY[name], 37), sections=[(b"note", b"xyz")])
        load(TINY[name](), data)  # all that is loaded once
        places = [at - 4 for _, _, at, _ in sections(data)] + [8, 24, 28, 32, 44, 52, 56]
        cache = TINY[name]()
        for place in places:
            bad = bytearray(data)
            struct.pack_into("<I", bad, place, number)
            stream = Stream(mended(bad, total=False))
            tracemalloc.start()
            with pytest.raises(BadSnapshot):
                snapshot.load(cache, stream.readinto, sections={b"note": bytearray(3)})
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 30000, place
            assert stream.asked <= len(data) + 2 * 256
            assert cache.length == 0


def test_a_header_at_an_odd_place_is_read(written: bytes) -> None:
    stream = Stream(b"\0" + written + b"more", short=7)
    stream.at = 1
    snapshot.load(KVCache(Geometry(**WRITTEN)), stream.readinto, model=7, rope=1)
    assert stream.at == 1 + len(written)  # what follows is left alone


@pytest.mark.parametrize("short", [1, 3, 255])
def test_a_stream_may_give_little_at_a_time(short: int, written: bytes) -> None:
    cache = KVCache(Geometry(**WRITTEN))
    stream = Stream(written, short=short)
    assert snapshot.load(cache, stream.readinto, model=7, rope=1) == 20
    assert saved(cache, model=7, rope=1) == written


def test_each_word_of_the_slots_is_checked() -> None:
    """1 + position of its token: none of a sink, none twice, none beyond the length, as many as told."""
    make = cases.budget("lfu")
    cache = grown(make, 30)
    data = saved(cache)
    at = next(at for tag, _, at, _ in sections(data) if tag == b"SLOT")
    slots = struct.unpack_from(f"<{len(cache.at)}I", data, at)
    held = [x for x in slots if x]
    sinks = cache.geometry.sinks
    assert min(held) > sinks == 2
    at += 4 * slots.index(held[0])
    for wrong in (0, 1, sinks, held[1], 31, 0xFFFFFFFF):
        bad = bytearray(data)
        struct.pack_into("<I", bad, at, wrong)
        again = make()
        with pytest.raises(BadSnapshot, match="damaged: (another number|a sink in|a token beyond|a worth)"):
            load(again, mended(bad))
        assert (again.length, again.check()) == (0, 0)
    unused = next(x for x in range(sinks + 1, 31) if x not in held)
    struct.pack_into("<I", bad, at, unused)
    load(make(), mended(bad))


def test_what_the_header_has_to_spare_is_zero(written: bytes) -> None:
    """The u16 behind the rotation."""
    fields = list(HEADER.unpack_from(written))
    assert (fields[13], fields[14], fields[15]) == (1, 0, 25)
    for wrong in (1, 0x8000):
        bad = bytearray(written)
        HEADER.pack_into(bad, 0, *fields[:14], wrong, *fields[15:])
        with pytest.raises(BadSnapshot, match="numbers in the header that no program writes"):
            load(KVCache(Geometry(**WRITTEN)), mended(bad), model=7, rope=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TINY)
def test_what_a_hostile_writer_changes_is_refused_or_harmless(name: str, sampled: Sampled) -> None:
    """Any byte, checksums made right: codes that no encoder writes, worths, places in the table."""
    data = saved(grown(TINY[name], 37), ids=range(99))
    for at in sampled(range(8, len(data))):
        for bits in (1, 0x80, 0xFF):
            bad = bytearray(data)
            bad[at] ^= bits
            cache = TINY[name]()
            try:
                load(cache, mended(bad, total=False))
            except KVError:
                assert cache.length == 0, at
            assert cache.check() == 0, at
            step(cache, 1)


@pytest.mark.parametrize("name", KINDS)
def test_a_running_object_is_not_touched(name: str, written: bytes) -> None:
    cache = grown(KINDS[name], 30)
    was, bytes_were = saved(cache), bytes(cache.buffer)
    for data in (was, written, b"", was[:-1]):
        with pytest.raises(StepError, match="empty sequence"):
            load(cache, data)
    assert saved(cache) == was
    assert bytes(cache.buffer) == bytes_were


def test_not_within_a_step() -> None:
    for name in ("ring", "sealed", "lru-peak", "paged"):
        cache = KINDS[name]()
        data = saved(grown(KINDS[name], 3))
        width = cache.geometry.width
        cache.append(0, cases.vector(width, 1), cases.vector(width, 2))
        with pytest.raises(StepError, match="commit or abort"):
            saved(cache)
        with pytest.raises(StepError, match="commit or abort"):
            load(cache, data)
        cache.abort()
        load(cache, data)


# Sections of the program's own, and files.


def test_sections_of_the_programs() -> None:
    cache = grown(TINY["ring"], 5)
    data = saved(cache, sections=[(b"aaaa", b""), (b"long", bytes(1000)), (b"zone", bytearray(2))])
    found: dict[bytes, bytearray] = {}

    def take(n: int) -> bytearray:
        found[b"long"] = bytearray(n)
        return found[b"long"]

    load(TINY["ring"](), data, sections={b"long": take, b"aaaa": bytearray()})
    assert found[b"long"] == bytes(1000)
    for wanted, says in (
        ({b"long": bytearray(999)}, "section long 0 has 1000 bytes, not the 999"),
        ({b"none": bytearray(1)}, "has no section none"),
    ):
        again = TINY["ring"]()
        with pytest.raises(BadSnapshot, match=says):
            load(again, data, sections=wanted)
        assert again.length == 0
    for bad in (b"Abcd", b"abc", "abcd", b""):
        with pytest.raises(BadArgument, match="tag"):
            saved(cache, sections=[(bad, b"")])
    with pytest.raises(BadArgument, match="must be bytes"):
        saved(cache, sections=[(b"abcd", array("H", [1]))])
    with pytest.raises(BadArgument, match="two sections"):
        saved(cache, sections=[(b"abcd", b""), (b"abcd", b"")])


def test_settings_of_a_snapshot_are_checked() -> None:
    cache = grown(TINY["ring"], 5)
    for bad in ({"model": -1}, {"model": 1 << 32}, {"rope": 256}, {"buffer": bytearray(15)}, {"model": "7"}):
        with pytest.raises(BadArgument):
            saved(cache, **bad)
    with pytest.raises(BadArgument, match="one of mpy_kv"):
        saved([])
    small = saved(cache, buffer=bytearray(16))
    assert small == saved(cache, buffer=bytearray(5000))
    again = TINY["ring"]()
    load(again, small, buffer=bytearray(16))
    same(cache, again)


@pytest.mark.parametrize("took", [0, 3, -1])
def test_a_stream_that_takes_less_is_no_success(took: int) -> None:
    cache = grown(TINY["ring"], 5)
    with pytest.raises(BadSnapshot, match="cannot be written"):
        snapshot.save(cache, lambda part: took)
    assert snapshot.save(cache, lambda part: None) > 80


def test_files(tmp_path: Path) -> None:
    path = str(tmp_path / "a.mkvs")
    one, two = grown(TINY["ring"], 5), grown(TINY["ring"], 9)
    snapshot.save_file(one, path)
    first = Path(path).read_bytes()
    snapshot.save_file(two, path)
    assert Path(path).read_bytes() == saved(two) != first
    assert [x.name for x in tmp_path.iterdir()] == ["a.mkvs"]
    again = TINY["ring"]()
    snapshot.load_file(again, path)
    same(two, again)
    Path(path).write_bytes(saved(two) + b"\0")
    with pytest.raises(BadSnapshot, match="longer than"):
        snapshot.load_file(TINY["ring"](), path)


def test_a_file_is_verified_before_anything_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.mkvs"
    data = saved(grown(TINY["ring"], 9), sections=[(b"note", b"abc")])
    path.write_bytes(data[:-2] + b"!!")
    cache = TINY["ring"]()
    note = bytearray(3)
    before = bytes(cache.buffer)
    for wanted in ({b"note": note}, {}):
        with pytest.raises(BadSnapshot, match="section note"):
            snapshot.load_file(cache, str(path), sections=wanted)
    path.write_bytes(data)
    with pytest.raises(BadSnapshot, match="has no section more"):
        snapshot.load_file(cache, str(path), sections={b"more": bytearray(1)})
    assert bytes(cache.buffer) == before
    assert note == bytes(3)


# PER-5: the old file or none, and no left-overs.
@pytest.mark.parametrize("fails", ["short", "full", "at close", "empty", "rename"])
def test_a_full_disk_leaves_what_was_there(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mpy_kv.transient import load_module

    path = tmp_path / "a.mkvs"
    cache = grown(TINY["ring"], 9)
    snapshot.save_file(cache, str(path))
    was = path.read_bytes()
    step(cache, 50)

    class File:
        def __init__(self, name: str, mode: str) -> None:
            self.file = open(name, mode, buffering=0)  # noqa: SIM115
            self.mode = mode

        def write(self, part: Any) -> int:
            if fails == "full":
                raise OSError(28, "full")
            if fails == "empty":
                return len(part)
            return self.file.write(part[: len(part) // 2] if fails == "short" else part)

        def __enter__(self) -> File:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()
            if fails == "at close" and self.mode == "wb":
                raise OSError(28, "full")

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    files = load_module("mpy_kv.snapshot.files")
    with monkeypatch.context() as patch:
        patch.setattr(files, "open", File, raising=False)
        if fails == "rename":
            patch.setattr(files.os, "replace", _refuse)
        with pytest.raises((OSError, BadSnapshot)):
            snapshot.save_file(cache, str(path))
    assert path.read_bytes() == was
    assert [x.name for x in tmp_path.iterdir()] == ["a.mkvs"]
    snapshot.save_file(cache, str(path))
    again = TINY["ring"]()
    snapshot.load_file(again, str(path))
    same(cache, again)


def _refuse(*_: str) -> None:
    raise OSError(13, "refused")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"hi\n", "no snapshot: it begins with other bytes"),
        (b"\0" * 4000, "no snapshot: it begins with other bytes"),
        (b"MKV", "ends after 3 bytes, too early"),
        (b"MKVS\1", "ends after 5 bytes, too early"),
    ],
)
def test_other_files_are_none_and_the_begin_of_one_is_cut(data: bytes, says: str) -> None:
    with pytest.raises(BadSnapshot) as error:
        snapshot.check(Stream(data).readinto)
    assert str(error.value) == says


def test_random_bytes_are_none() -> None:
    r = random.Random(1)
    head = saved(grown(TINY["ring"], 9))[:80]
    for _ in range(150):
        data = r.randbytes(r.randrange(200))
        refused("ring", data)
        refused("ring", mended(head + data + bytes(16)))


def test_header_fields_are_where_the_format_says(written: bytes) -> None:
    fields = HEADER.unpack_from(written)
    assert fields[:20] == (
        *(b"MKVS", 1, 80, len(written), 7, 2, 4, 2, 8, 16, 4, 0, 0, 1, 0),
        *(25, 9, 5, 20, 0),
    )
    assert [(tag, index) for tag, index, _, _ in sections(written)] == [
        (b"TYPE", 0),
        (b"KV  ", 0),
        (b"KV  ", 1),
    ]


def test_blocks_that_are_lost_are_not_saved() -> None:
    """Rows of a block of which no token is visible are whatever a buffer had: of a moved one nothing."""
    for window, sinks, tokens, back in ((3, 0, 46, 14), (2, 2, 113, 62), (17, 1, 90, 40), (40, 0, 130, 60)):
        cache = grown(cases.plain("int4", window=window, sinks=sinks), tokens)
        width = cache.geometry.width
        for layer in range(2):  # beyond the window, so that a rollback finds less
            cache.prefill(layer, cases.vector(50 * width, layer), cases.vector(50 * width, 9), 50)
        cache.commit()
        moved = cache
        for n in (back, 2, 1):
            again = cases.plain("int4", window=window, sinks=sinks)()
            load(again, saved(moved))
            again.rollback(n)
            cache.rollback(n)
            moved = again
            same(cache, moved)
        data = saved(moved)
        assert data == saved(cache)
        again = cases.plain("int4", window=window, sinks=sinks)()
        load(again, data)
        for t in range(300, 350):
            assert step(cache, t) == step(moved, t) == step(again, t)


@pytest.mark.parametrize("kind", ["ring", "int4", "paged"])
def test_memory_does_not_grow_with_what_is_saved(kind: str) -> None:
    peaks = []
    for window in (30, 30, 900):
        make = {
            "ring": cases.plain("int8", window=window, sinks=1),
            "int4": cases.plain("int4", window=window, sinks=1),
            "paged": cases.request(64, window=window, sinks=1),
        }[kind]
        cache, again = make(), make()
        width = cache.geometry.width
        for layer in range(2):
            rows = [cases.vector(width * window, 1), cases.vector(width * window, 2)]
            cache.prefill(layer, *rows, window)
        cache.commit()
        data = saved(cache)
        stream = Stream(data)
        tracemalloc.start()
        snapshot.save(cache, lambda part: None)
        snapshot.load(again, stream.readinto)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert len(data) > 25000
    assert peaks[2] < peaks[1] + 2500, peaks
    assert peaks[2] < 12000


def test_a_jump_leaves_the_sinks() -> None:
    cache, again = grown(KINDS["ring"], 30), KINDS["ring"]()
    cache.seek(500)
    load(again, saved(cache))
    assert again.visible() == [0, 1]
    for t in range(30):
        assert step(cache, t) == step(again, t)
    same(cache, again)


@pytest.mark.parametrize("capacity", [50, 64, 200])
def test_sealed_blocks_go_where_another_capacity_has_them(capacity: int) -> None:
    cache = grown(cases.plain("int4", capacity=80), 50)
    again = cases.plain("int4", capacity=capacity)()
    load(again, saved(cache))
    for t in range(50, min(capacity, 80)):
        assert step(cache, t) == step(again, t)
    assert again.check() == 0


def test_a_request_that_was_loaded_is_forked_and_rolled_back() -> None:
    for make in (cases.request(4, capacity=40), cases.request(4, window=9, sinks=2)):
        cache = grown(make, 21)
        requests = Requests(cache.geometry, 24)
        again = requests.open()
        load(again, saved(cache))
        child = again.fork()
        cache.rollback(6)
        again.rollback(6)
        for t in range(60, 75):
            assert step(cache, t) == step(again, t)
        other = make()
        load(other, saved(grown(make, 21)))
        for t in range(80, 90):
            assert step(child, t) == step(other, t)
        assert requests.check() == 0
        again.close()
        child.close()
        assert requests.available_blocks() == 24
        assert requests.check() == 0


@pytest.mark.parametrize("name", KINDS)
def test_a_sequence_that_was_used_and_emptied_is_a_new_one(name: str) -> None:
    """Also of compressed ones, and while a victim is chosen: nothing of what it had shows."""
    source = grown(KINDS[name], 41)
    data = saved(source)
    for tokens in (12, 47):
        used = grown(KINDS[name], tokens)
        width = used.geometry.width
        if used.geometry.capacity is None:
            used.append(0, cases.vector(width, 1), cases.vector(width, 2))  # a step begun
        used.abort()
        used.rollback(used.length)
        load(used, data)
        new = KINDS[name]()
        load(new, data)
        same(new, used)
        assert saved(used) == saved(new)
        for t in range(200, 225):
            assert step(used, t) == step(new, t)


@pytest.mark.parametrize("name", [*KINDS, "sealed, padded"])
@pytest.mark.parametrize("which", "kv")
def test_what_no_encoder_writes_is_refused(name: str, which: str) -> None:
    """Codes, scales, powers, minima, padding: of the last token and of the oldest, in the last layer."""
    kinds = {**KINDS, "sealed, padded": cases.plain("int4", window=37, sinks=1, head_dim=5)}
    cache = grown(kinds[name], 40)
    g = cache.layer_geometry(1)
    buffer = cache.buffer
    behind = [p for p in cache.visible() if p >= g.sinks]
    for position in (behind[0], behind[-1]):
        codes, scales = cache.place(1, which, position)
        codec = cache.codec_of(1, position) if hasattr(cache, "codec_of") else g.codec
        places = {codes: 0, scales + 1: 0x7C}
        if codec == "int4":
            places = {scales + 1: 0x7C}
            if which == "v":
                places[scales + g.minima_gap + 1] = 0xFC
            if name == "sealed, padded":
                places[codes + 2] = 0x10
        elif codec == "float16":
            places = {codes + 1: 0xFC}
        elif codec == "float32":
            places = {codes + 3: 0x7F}
        for place, byte in places.items():
            was = buffer[place]
            assert was != byte
            buffer[place] = byte
            data = saved(cache)
            buffer[place] = was
            again = kinds[name]()
            with pytest.raises(BadSnapshot, match="codes or scales that no encoder writes"):
                load(again, data)
            assert again.length == 0
            assert again.check() == 0


QUICK = {"int8": 8, "int8-int4": 8, "int8-int4, padded": 6, "float16": 4, "float16, padded": 3}


@pytest.mark.parametrize("name", QUICK)
def test_whole_planes_are_checked_as_rows_are(name: str) -> None:
    """Each value of each byte of a token, codes, scales and padding: as many are wrong, to the last byte."""
    from mpy_kv.codecs import named
    from mpy_kv.transient import load_module

    codec = name.partition(",")[0]
    cache = grown(
        cases.plain(codec, window=7, sinks=1, head_dim=QUICK[name], kv_heads=1, heads=1, layers=1), 8
    )
    g, form = cache.geometry, load_module("mpy_kv.snapshot.forms").of(cache)
    header = load_module("mpy_kv.snapshot.header").made(form, 0, 0)
    buffer = cache.buffer
    check = named(codec).broken

    def of_rows() -> int:
        return sum(check(buffer, g, w, *cache.place(0, w, p)) for p in (6, 7) for w in "kv")

    assert form.broken(header) == of_rows() == 0
    wrong = 0
    for which in "kv":
        codes, scales = cache.place(0, which, 7)
        size = g.v_row_bytes if which == "v" else g.row_bytes
        for place in [*range(codes, codes + size), *([scales, scales + 1] if g.groups else [])]:
            was = buffer[place]
            for byte in range(256):
                buffer[place] = byte
                expected = of_rows()
                assert bool(form.broken(header)) == bool(expected), (which, place - codes, byte)
                wrong += expected != 0
            buffer[place] = was
    assert wrong > 10
