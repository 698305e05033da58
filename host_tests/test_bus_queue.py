"""The bus's queue of copies: joined runs do what copies one by one do, and touch nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from known_cases import DEVICE  # noqa: F401  (the folder of bus_lists)

from mpy_kv import Geometry, KVCache, cache_for, geometry_for
from mpy_kv.bus.copying import Copying
from mpy_kv.bus.queue import Queue
from mpy_kv.bus.rows import Rows
from mpy_kv.errors import BadArgument
from mpy_kv.snapshot.planes import planes

import bus_lists  # isort: skip

BLOCK = 64
SENTINEL = 0xEE


def pair(size: int = 1024, descriptors: int = 32, burst: int = 0) -> tuple[Any, bytearray, bytearray, Any]:
    source = bytearray(i * 7 + 3 & 255 for i in range(size))
    to = bytearray([SENTINEL] * size)
    return Queue(descriptors, (source, to)), source, to, Copying(burst)


# Block numbers of the source and of where they go -> transfers.
BLOCKS = {
    "rising, then falling": ([3, 4, 5, 9, 8, 7], [0, 1, 2, 6, 5, 4], 2),
    "a gap where it is read": ([3, 5], [0, 1], 2),
    "a gap where it goes": ([3, 4], [0, 2], 2),
    "one twice": ([3, 3], [0, 1], 2),
    "the same twice": ([3, 3], [0, 0], 2),
    "crossed": ([3, 4], [1, 0], 2),
    "none": ([], [], 0),
    "falling alone": ([5, 4, 3], [5, 4, 3], 1),
    "both ways from the middle": ([4, 5, 3, 6], [4, 5, 3, 6], 1),
}


@pytest.mark.parametrize(("reads", "writes", "transfers"), BLOCKS.values(), ids=BLOCKS)
def test_adjacent_blocks_are_joined(reads: list[int], writes: list[int], transfers: int) -> None:
    queue, source, to, backend = pair()
    want = bytearray([SENTINEL] * 1024)
    for read, write in zip(reads, writes):
        assert queue.push(BLOCK * read, queue.at(1) + BLOCK * write, BLOCK) is True
        want[BLOCK * write : BLOCK * (write + 1)] = source[BLOCK * read : BLOCK * (read + 1)]
    assert (queue.waiting(), queue.check()) == (transfers, 0)
    assert queue.start(backend)
    assert queue.done()
    assert to == want
    assert (queue.started, queue.descriptors, queue.pushes()) == (bool(reads), transfers, len(reads))


def test_rows_with_gaps_leave_the_gaps() -> None:
    queue, source, to, backend = pair()
    queue.shape(64, 80, 80)
    assert queue.push_rows(0, queue.at(1), 12)
    assert queue.waiting() == 12
    assert queue.start(backend)
    assert queue.done()
    for i in range(1024):
        assert to[i] == (source[i] if i < 960 and i % 80 < 64 else SENTINEL)


def test_rows_of_any_steps_go_where_single_pushes_go() -> None:
    for seed in range(60):
        random = bus_lists.Random(seed)
        nbytes, read_step, write_step = 1 + random.below(20), random.below(40), 20 + random.below(30)
        read, write, rows = random.below(100), random.below(50), random.below(13)
        queue, source, to, backend = pair()
        queue.shape(nbytes, read_step, write_step)
        assert queue.push_rows(read, queue.at(1) + write, rows)
        assert queue.waiting() == rows
        assert queue.check() == 0
        queue.start(backend)
        want = bytearray([SENTINEL] * 1024)
        for i in range(rows):
            at = read + i * read_step
            want[write + i * write_step : write + i * write_step + nbytes] = source[at : at + nbytes]
        assert to == want


def test_no_run_crosses_a_border() -> None:
    """Two regions in one buffer: what is adjacent in memory is joined on neither side of the border."""
    memory = bytearray(range(200))
    view = memoryview(memory)
    queue = Queue(8, (view[:100], view[100:200], bytearray(200)))
    for at in (96, 100):
        queue.push(at, 200 + at, 4)
    assert queue.waiting() == 2
    queue = Queue(8, (bytearray(200), view[:100], view[100:200]))
    for at in (96, 100):
        queue.push(at, 200 + at, 4)
    assert queue.waiting() == 2
    with pytest.raises(BadArgument, match="must lie in one region"):
        queue.push(0, 296, 8)
    assert queue.waiting() == 2


# What is refused, and what it says.
REFUSED = {
    "beyond the end": ((1020, 1024, 8), "must lie in one region"),
    "nowhere": ((0, 5000, 4), "must lie in one region"),
    "nowhere read": ((5000, 1024, 4), "must lie in one region"),
    "below 0": ((-4, 1024, 4), "below 0"),
    "less than nothing": ((0, 1024, -4), "below 0"),
    "up over itself": ((1024, 1030, 8), "lie over each other"),
    "too long": ((0, 1024, 1 << 28), "must lie in one region"),
    "far away": ((0, 1 << 30, 4), "must lie in one region"),
}


@pytest.mark.parametrize(("push", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(push: tuple[int, int, int], says: str) -> None:
    queue, _, to, backend = pair()
    queue.push(0, 1024, 4)
    with pytest.raises(BadArgument, match=says):
        queue.push(*push)
    assert (queue.waiting(), queue.pushes(), queue.check()) == (1, 1, 0)
    queue.start(backend)
    assert to[4:] == bytes([SENTINEL]) * 1020


def test_what_may_only_be_read() -> None:
    queue = Queue(4, (bytes(64), bytearray(64)))
    assert queue.push(0, 64, 8)
    for read, write in ((64, 0), (0, 8)):
        with pytest.raises(BadArgument, match="only be read"):
            queue.push(read, write, 4)


def test_regions_that_are_none() -> None:
    for regions, says in (
        ((), "one or more"),
        ((4,), "no buffer"),
        ((bytearray(0),), "1..268435455 items"),
        ((memoryview(bytearray(8)).cast("I"),), "bytes each"),
    ):
        with pytest.raises(BadArgument, match=says):
            Queue(4, regions)
    for descriptors in (0, 4097, "4"):
        with pytest.raises(BadArgument, match="descriptors"):
            Queue(descriptors, (bytearray(4),))


def test_a_full_queue_holds_back_and_changes_nothing() -> None:
    queue, source, to, backend = pair(descriptors=3)
    for at in (0, 100, 200):
        assert queue.push(at, 1024 + at, 4)
    before = list(queue.words)
    assert queue.push(300, 1324, 4) is False
    queue.shape(4, 8, 8)
    assert queue.push_rows(300, 1324, 2) is False
    assert list(queue.words) == before
    assert queue.push(204, 1228, 4)  # what is joined takes no place
    assert queue.start(backend)
    assert queue.push(300, 1324, 4)
    with pytest.raises(BadArgument, match="more rows than fit"):
        queue.push_rows(0, 1024, 4)


def test_one_chain_runs_while_the_next_is_filled() -> None:
    queue, source, to, backend = pair(burst=16)
    queue.push(0, 1024, 64)
    assert queue.start(backend)
    assert (queue.started, queue.passed, queue.waiting()) == (1, 0, 0)
    for at in range(64, 128, 16):
        queue.push(at, 1024 + at, 16)
    looks = 0
    while not queue.start(backend):  # each look copies a burst
        assert queue.waiting() == 1
        looks += 1
    assert looks == 4
    assert to[:64] == source[:64]
    assert to[64] == SENTINEL
    while not queue.done():
        pass
    assert (queue.started, queue.passed) == (2, 2)
    assert to[:128] == source[:128]
    assert queue.start(backend)
    assert queue.done()
    assert queue.started == 2


def test_widths_by_what_both_sides_allow() -> None:
    """A width that is less than what there was is taken where that costs less than a transfer more."""
    queue, _, _, _ = pair()
    for read, write, size, width, count in (
        (0, 0, 64, 2, 16),
        (102, 100, 64, 1, 32),
        (201, 200, 64, 0, 64),
        (300, 300, 7, 0, 7),
        (400, 404, 6, 1, 3),
    ):
        before = queue.waiting()
        queue.push(read, 1024 + write, size)
        record = list(queue.words[queue.words[2] + 4 * before :][:4])
        assert record == [read, 1024 + write, count, width << 2 | 1]
    queue.clear()
    assert (queue.waiting(), queue.check()) == (0, 0)
    queue.push(0, 1024, 640)
    queue.push(640, 1664, 1)  # 641 bytes one by one instead of 161 transfers
    assert queue.waiting() == 2
    queue.clear()
    queue.push(0, 1024, 16)
    queue.push(16, 1040, 1)
    assert queue.waiting() == 1


def lists_agree(seeds: range, make: Any, unaligned: int = 0) -> tuple[int, int]:
    """Of so many random lists of 24 copies; how many descriptors these took in all, and chains."""
    total = chains = 0
    for seed in seeds:
        copies = bus_lists.lists(seed)
        plain, queued = bus_lists.buffers(), bus_lists.buffers()
        bus_lists.one_by_one(bus_lists.regions(plain, unaligned), copies)
        views = bus_lists.regions(queued, unaligned)
        views[0] = memoryview(bytes(views[0]))
        descriptors, n = bus_lists.queued(Queue(1 + seed % 9, views), make(), copies)
        assert queued == plain, seed
        total += descriptors
        chains += n
    return total, chains


def test_random_lists_are_what_copies_one_by_one_are() -> None:
    descriptors, chains = lists_agree(range(500), Copying)
    assert 500 * 8 < descriptors < 500 * 20  # of 24 copies: many are joined
    assert chains > 500


@pytest.mark.exhaustive
@pytest.mark.parametrize("burst", [0, 4, 20])
def test_ten_thousand_random_lists(burst: int) -> None:
    lists_agree(range(10_000), lambda: Copying(burst), unaligned=burst and 1)


# Tokens of a KV cache


def told(geometry: Any, tokens: int) -> Any:
    cache = cache_for(geometry) if geometry.codec != "int8" else KVCache(geometry)
    g = cache.geometry
    for t in range(tokens):
        for layer in range(g.layers):
            k = [((t * 5 + layer + i * 3) % 23 - 11) / 8 for i in range(g.width)]
            cache.append(layer, _floats(k), _floats(k[::-1]))
        cache.commit()
    return cache


def _floats(values: list[float]) -> Any:
    from array import array

    return array("f", values)


STORIES = {"layers": 5, "heads": 8, "kv_heads": 4, "head_dim": 8}


@pytest.mark.parametrize("tokens", [1, 2, 7, 16, 64])
def test_a_layer_is_one_chain_of_a_run_a_plane(tokens: int) -> None:
    """However many tokens: codes of 4 heads and a scale, of K and V each; twice that at a ring's end."""
    cache = told(Geometry(**STORIES, window=80, sinks=4), 150)
    record = bytearray([SENTINEL] * 24_000)
    queue = Queue(20, (cache.buffer, record))
    rows = Rows(queue, cache, 0, queue.at(1), 64)
    backend = Copying()
    ring_end = 4 + 81  # position that lies in the ring's first slot again
    for first, runs in ((70, 10) if tokens < 16 else (10, 10), (ring_end, 10), (ring_end - 1, 20)):
        if tokens == 1 and runs == 20:
            continue
        record[:] = bytes([SENTINEL]) * len(record)
        started = queue.started
        for layer in range(5):
            assert rows.push(layer, first, tokens)
            assert (queue.waiting(), queue.check()) == (runs, 0)
            assert queue.start(backend)
            assert queue.done()
        assert queue.started - started == 5
        assert record == packed(cache, first, tokens, 64, len(record))


def packed(cache: Any, first: int, n: int, tokens: int, size: int) -> bytearray:
    """A record of positions first .. first + n - 1, made byte by byte."""
    record = bytearray([SENTINEL] * size)
    at = 0
    for layer, attention in enumerate(cache.attention):
        g = attention.geometry
        for begin, row, count, stride in planes(g):
            for plane in range(count):
                lies = attention.codes[layer] + begin + plane * stride
                for i in range(n):
                    slot = g.slot(first + i)
                    record[at + i * row : at + (i + 1) * row] = cache.buffer[lies + slot * row :][:row]
                at += tokens * row + 3 & -4
    return record


@pytest.mark.parametrize("codec", ["int8", "float32", "float16", "int8-int4", "sparse"])
def test_there_and_back(codec: str) -> None:
    """Out of a cache and into another one: all of its rows, and no other byte."""
    shape = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 8, "window": 20, "sinks": 2}
    cache = told(geometry_for(codec, **shape), 30)
    other = bytearray([SENTINEL] * len(cache.buffer))
    record = bytearray(8000)
    queue = Queue(64, (cache.buffer, record, other))
    out = Rows(queue, cache, 0, queue.at(1), 8)
    back = Rows(queue, cache, queue.at(2), queue.at(1), 8, True)
    backend = Copying()
    want = bytearray([SENTINEL] * len(cache.buffer))
    for first, n in ((0, 2), (11, 8), (20, 6)):
        for layer in range(2):
            assert out.push(layer, first, n)
            queue.start(backend)
            assert back.push(layer, first, n)
            queue.start(backend)
            g = cache.attention[layer].geometry
            for begin, row, count, stride in planes(g):
                for plane in range(count):
                    for p in range(first, first + n):
                        at = cache.attention[layer].codes[layer] + begin + plane * stride + g.slot(p) * row
                        want[at : at + row] = cache.buffer[at : at + row]
    assert other == want
    assert queue.check() == 0


def test_a_mirror_of_a_cache() -> None:
    cache = told(Geometry(**STORIES, window=12, sinks=0), 30)
    other = bytearray(len(cache.buffer))
    queue = Queue(20, (cache.buffer, other))
    mirror = Rows(queue, cache, 0, queue.at(1))
    block = cache.geometry.layer_bytes
    for layer in range(5):
        assert mirror.push(layer, 26, 13)  # all slots, which begin with that position: a run a kind of plane
        assert queue.waiting() == 4
        queue.start(Copying())
        at = cache.attention[layer].codes[layer]
        assert other[at : at + block] == cache.buffer[at : at + block]


def test_rows_that_are_refused() -> None:
    cache = told(Geometry(**STORIES, window=12, sinks=2), 5)
    record = bytearray(4000)
    queue = Queue(20, (cache.buffer, record, bytes(4000)))
    rows = Rows(queue, cache, 0, queue.at(1), 8)
    for layer, first, n in ((5, 0, 1), (-1, 0, 1), (0, -1, 1), (0, 0, 9), (0, 0, -1), (0, 1, 1 << 29)):
        with pytest.raises(BadArgument, match="layers of 15 slots"):
            rows.push(layer, first, n)
    rows.move(queue.at(1), 6)
    with pytest.raises(BadArgument, match="to slot 6"):
        rows.push(0, 3, 3)
    assert rows.push(0, 3, 0)
    assert queue.waiting() == 0
    with pytest.raises(BadArgument, match="only be read"):
        rows.move(queue.at(2))
    with pytest.raises(BadArgument, match="one region"):
        rows.move(queue.at(1) + 4000 - rows.bytes + 4)
    with pytest.raises(BadArgument, match="20 needed"):
        Rows(Queue(19, (cache.buffer, record)), cache, 0, queue.at(1), 8)
    sealed = cache_for(geometry_for("int4", 2, 4, 2, 8, window=40))
    with pytest.raises(BadArgument, match="ring"):
        Rows(Queue(64, (sealed.buffer, record)), sealed, 0, len(sealed.buffer), 8)


def test_a_full_queue_takes_no_part_of_a_layer() -> None:
    cache = told(Geometry(**STORIES, window=12, sinks=2), 30)
    queue = Queue(20, (cache.buffer, bytearray(4000)))
    rows = Rows(queue, cache, 0, queue.at(1), 8)
    assert rows.push(0, 3, 4)
    words = list(queue.words[1:11])
    assert rows.push(1, 12, 8) is False  # 20 runs, room for 10
    assert list(queue.words[1:11]) == words
    assert rows.push(1, 3, 4)
    assert queue.waiting() == 20


# Errors


class Failing:
    """A backend that raises at the n-th look, or when it is begun."""

    ctrl = None

    def __init__(self, at: int) -> None:
        self.at = at
        self.stopped = 0

    def begin(self, queue: Any, first: int, descriptors: int) -> None:
        self.looks = 0
        self.done()

    def done(self) -> bool:
        self.looks += 1
        if self.looks > self.at:
            raise OSError(5)
        return False

    def stop(self) -> None:
        self.stopped += 1


def at_work(queue: Any, backend: Any) -> None:
    queue.start(backend)
    queue.push(100, 1124, 8)
    while not queue.done():
        pass


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_error_ends_a_chain_and_nothing_else(at: int) -> None:
    queue, source, to, backend = pair()
    queue.push(0, 1024, 8)
    failing = Failing(at)
    with pytest.raises(OSError, match="5"):
        at_work(queue, failing)
    assert (queue.started, queue.passed, failing.stopped, queue.check()) == (1, 1, 1, 0)
    queue.redo(backend)
    assert queue.done()
    assert to[:8] == source[:8]
    queue.push(200, 1224, 8)
    assert queue.start(backend)
    assert queue.done()
    assert to[200:208] == source[200:208]
    assert (to[100] == SENTINEL) == (at == 0)
