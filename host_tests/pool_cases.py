"""What every pool must do, whatever its strategy: a list of cases and a state machine, over makers of pools.

    pool_cases.add(Maker("mine", make=..., four=...))     one more pool to hold to them, by its test file
    @pytest.mark.parametrize("case", pool_cases.CASES.values(), ids=pool_cases.CASES)
    def test_contract(case): case(MAKER)
    TestMine = pool_cases.machine(MAKER)

The model knows sizes, alignments, locks, owners and what was written where; a block's bytes are all filled
with a byte of its own, so that one block that changes through another is seen.
"""

from __future__ import annotations

import linecache
import random
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, KVError, Locked, PoolFull

LIMIT = 1 << 30  # values of a board's state stay below
BAD_SIZES = (0, -1, -(1 << 40), True, False, 1.5, 8.0, None, "4", [])
ABSURD_SIZES = (1 << 30, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 70)
BAD_ALIGNS = (0, -4, 3, 12, 1 << 40, 8.0, None, "4", True)
NO_HANDLES = (-1, -2, None, True, False, 1.5, "x", [], 1 << 29, 1 << 30, 1 << 70, -(1 << 29), -(1 << 40))


@dataclass(frozen=True)
class Maker:
    """make(arena): a pool of a few KB; the arena has `room` bytes. four(arena): one with room for exactly
    four blocks of `four_bytes`. max_size, max_align: what alloc of make()'s pool takes at most when it is
    empty."""

    name: str
    make: Callable[[Arena], Any]
    four: Callable[[Arena], Any]
    four_bytes: int = 64
    max_size: int = 256
    max_align: int = 4
    room: int = 1 << 15


MAKERS: dict[str, Maker] = {}


def add(maker: Maker) -> Maker:
    """Make it known under its name, and return it."""
    assert maker.name not in MAKERS, f"two makers named {maker.name}"
    MAKERS[maker.name] = maker
    return maker


def arena_of(maker: Maker, shift: int = 0) -> Arena:
    """`shift`: the buffer is a slice that starts that many bytes into its bytearray."""
    return Arena(maker.room, memoryview(bytearray(maker.room + 64))[shift:])


def state(pool: Any) -> tuple[Any, ...]:
    """All of a pool that must not change when it refuses; also that it is sound."""
    assert pool.check() == 0
    return pool.stats(), pool.free_bytes(), pool.largest_free_bytes(), integers(pool)


# By class: changes what integers() found where a pool keeps leftovers that mean nothing.
LEFTOVERS: dict[type, Callable[[dict[str, list[int]]], None]] = {}


def integers(pool: Any) -> dict[str, list[int]]:
    """The pool's arrays and lists of ints, by attribute, without leftovers."""
    found = {}
    for name, value in vars(pool).items():
        if isinstance(value, (array, bytearray)) or (
            type(value) is list and all(type(x) is int for x in value)
        ):
            found[name] = list(value)
    LEFTOVERS.get(type(pool), lambda found: None)(found)
    return found


def refused(error: type[KVError], pool: Any, call: Callable[[], Any], match: str | None = None) -> KVError:
    """`call` is refused with one line, and nothing has changed."""
    before = state(pool)
    with pytest.raises(error, match=match) as raised:
        call()
    assert type(raised.value) is error
    assert "\n" not in str(raised.value)
    assert state(pool) == before
    return raised.value


class Blocks:
    """A pool with a model of what it handed out."""

    def __init__(self, pool: Any, arena: Arena) -> None:
        self.pool, self.buffer = pool, arena.buffer
        # Alignment is that of real memory; CPython's arena counts from the buffer's start.
        self.live: dict[int, dict[str, Any]] = {}
        self.dead: list[int] = []
        self.serial = self.allocs = self.most = 0

    def bytes_of(self, handle: int) -> memoryview:
        at = self.pool.offset(handle)
        return memoryview(self.buffer)[at : at + self.pool.size(handle)]

    def fill(self, handle: int) -> None:
        self.serial += 1
        self.live[handle]["byte"] = self.serial % 255 + 1
        self.bytes_of(handle)[:] = bytes([self.live[handle]["byte"]]) * self.pool.size(handle)

    def note(self, handle: int, size: int, align: int) -> int:
        assert type(handle) is int
        assert 0 <= handle < 1 << 29
        assert handle not in self.live
        assert handle not in self.dead[-8:], "issued again at once"
        assert self.pool.size(handle) >= size
        self.live[handle] = {"size": size, "align": align, "locked": False, "owner": None}
        self.allocs += 1
        self.most = max(self.most, len(self.live))
        self.fill(handle)
        return handle

    def alloc(self, size: int, align: int = 4) -> int:
        """A handle, or -1: then it was right to refuse."""
        before = state(self.pool)
        try:
            return self.note(self.pool.alloc(size, align), size, align)
        except PoolFull as error:
            full = error
        assert full.needed >= size
        assert full.free == self.pool.free_bytes()
        assert full.largest == self.pool.largest_free_bytes()
        assert align > 4 or size > full.largest, "there was room"
        assert state(self.pool) == before
        return -1

    def alloc_many(self, n: int, size: int) -> list[int]:
        out = array("i", [-5] * (n + 1))
        before = state(self.pool)
        try:
            self.pool.alloc_many(n, size, out)
        except PoolFull:
            assert state(self.pool) == before
            return []
        assert out[n] == -5
        return [self.note(handle, size, 4) for handle in out[:n]]

    def free(self, handle: int) -> None:
        self.pool.free(handle)
        self.gone(handle)

    def gone(self, handle: int) -> None:
        del self.live[handle]
        self.dead.append(handle)

    def grow(self, handle: int, size: int) -> int:
        """The handle it has now; the same one if refused."""
        block, before = self.live[handle], state(self.pool)
        old = bytes(self.bytes_of(handle))[: block["size"]]
        try:
            new = self.pool.grow(handle, size)
        except (PoolFull, Locked):
            assert state(self.pool) == before
            return handle
        if new != handle:
            assert not block["locked"], "a locked block moved"
            self.dead.append(handle)
            self.live[new] = self.live.pop(handle)
            if block["owner"] is not None:
                assert self.pool.owner(new) == block["owner"]
        assert self.pool.size(new) >= size
        assert bytes(self.bytes_of(new))[: block["size"]] == old
        block["size"] = max(size, block["size"]) if new == handle else size
        self.fill(new)
        return new

    def check(self) -> None:
        """Everything that holds at any time."""
        pool = self.pool
        assert pool.check() == 0
        taken = []
        for handle, block in self.live.items():
            at, size = pool.offset(handle), pool.size(handle)
            assert size >= block["size"]
            assert at % block["align"] == 0
            assert pool.is_locked(handle) == block["locked"]
            if block["owner"] is not None:
                assert pool.owner(handle) == block["owner"]
            assert bytes(self.buffer[at : at + size]) == bytes([block["byte"]]) * size, "bytes changed"
            taken.append((at, at + size))
        taken.sort()
        assert all(a[1] <= b[0] for a, b in zip(taken, taken[1:])), "blocks overlap"
        for values in integers(pool).values():
            assert all(-LIMIT <= x < LIMIT for x in values), "no small int of a board"
        stats = pool.stats()
        assert stats["used_blocks"] == len(self.live)
        assert stats["locked_blocks"] == sum(b["locked"] for b in self.live.values())
        assert stats["used_bytes"] + pool.free_bytes() <= stats["total_bytes"]
        assert stats["largest_free_bytes"] == pool.largest_free_bytes() <= pool.free_bytes()
        assert stats["high_water_blocks"] >= self.most
        assert stats["alloc_count"] - stats["free_count"] == len(self.live)
        assert 0 <= stats["fragmentation"] <= 1
        waste = sum(pool.size(h) - b["size"] for h, b in self.live.items())
        assert stats["internal_waste_bytes"] == waste


def cut_short(where: Any, lines_to_go: int, call: Callable[[], Any], heads: bool = False) -> bool:
    """Whether KeyboardInterrupt came before that many lines of the function had run.

    heads: only lines that begin a turn of a loop, where CPython lets signals in, count.
    """
    left = lines_to_go

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code is not where.__code__:
            return None if event == "call" else trace
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).split()
        if event == "line" and (not heads or text[0] in ("for", "while")):
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(old)
    return False


# --- cases -------------------------------------------------------------------------------------

CASES: dict[str, Callable[[Maker], None]] = {}


def case(function: Callable[[Maker], None]) -> Callable[[Maker], None]:
    CASES[function.__name__] = function
    return function


def blocks_of(maker: Maker, shift: int = 0) -> Blocks:
    arena = arena_of(maker, shift)
    return Blocks(maker.make(arena), arena)


@case
def double_free(maker: Maker) -> None:
    pool = maker.four(arena_of(maker))
    a = pool.alloc(maker.four_bytes)
    pool.free(a)
    empty = state(pool)
    assert empty[0]["used_blocks"] == 0
    for _ in range(3):
        refused(BadHandle, pool, lambda: pool.free(a), "stale")
    handles = [pool.alloc(maker.four_bytes) for _ in range(4)]
    assert len({pool.offset(h) for h in handles}) == 4
    full = refused(PoolFull, pool, lambda: pool.alloc(maker.four_bytes))
    assert (full.needed, full.free) == (maker.four_bytes, pool.free_bytes())
    for handle in handles:
        pool.free(handle)
    assert pool.free_bytes() == empty[1]


@case
def handles_never_issued(maker: Maker) -> None:
    """Of another pool, made up, inner offsets, stale though the block is in use again."""
    pool, other = maker.make(arena_of(maker)), maker.make(arena_of(maker))
    mine, theirs = pool.alloc(8), other.alloc(8)
    stale = pool.alloc(8)
    pool.free(stale)
    again = pool.alloc(8)
    assert again != stale
    wrong = [*NO_HANDLES, theirs, stale, mine | 1 << 29, -1 - mine, mine + 1, mine - 1, mine ^ 1 << 28]
    wrong += [pool.offset(mine) + 4, *range(12)]
    for handle in wrong:
        if type(handle) is int and handle in (mine, again):
            continue
        for call in (pool.free, pool.lock, pool.unlock, pool.is_locked, pool.owner, pool.offset, pool.size):
            refused(BadHandle, pool, lambda call=call, handle=handle: call(handle))
        refused(BadHandle, pool, lambda handle=handle: pool.grow(handle, 8))
        refused(BadHandle, pool, lambda handle=handle: pool.set_owner(handle, 1, 2))
        refused(BadHandle, pool, lambda handle=handle: pool.free_many([mine, handle], 2))
        if type(handle) is int and abs(handle) < LIMIT:
            batch = array("i", [mine, handle])
            refused(BadHandle, pool, lambda batch=batch: pool.free_many(batch, 2))


@case
def a_stale_handle_whatever_was_issued_since(maker: Maker) -> None:
    pool = maker.four(arena_of(maker))
    seen: list[int] = []
    for _ in range(300):
        handle = pool.alloc(maker.four_bytes)
        assert handle not in seen[-60:]
        for old in seen[-3:]:
            refused(BadHandle, pool, lambda old=old: pool.free(old))
        seen.append(handle)
        pool.free(handle)


@case
def sizes_and_alignments(maker: Maker) -> None:
    pool = maker.make(arena_of(maker))
    held = pool.alloc(8)
    total = pool.stats()["total_bytes"]
    out = array("i", [0] * 4)
    for size in BAD_SIZES:
        refused(BadArgument, pool, lambda size=size: pool.alloc(size), "size")
        refused(BadArgument, pool, lambda size=size: pool.grow(held, size), "size")
        refused(BadArgument, pool, lambda size=size: pool.alloc_many(2, size, out), "size")
    for size in (*ABSURD_SIZES, total + 1):
        assert refused(PoolFull, pool, lambda size=size: pool.alloc(size)).needed == size
        refused(PoolFull, pool, lambda size=size: pool.grow(held, size))
        refused(PoolFull, pool, lambda size=size: pool.alloc_many(2, size, out))
    for align in BAD_ALIGNS:
        refused(BadArgument, pool, lambda align=align: pool.alloc(8, align), "align")
        refused(BadArgument, pool, lambda align=align: pool.alloc_many(2, 8, out, align), "align")
    for align in (1, 2, 4):
        pool.free(pool.alloc(8, align))
    pool.free(pool.alloc(min(64, maker.max_size)))
    assert list(out) == [0] * 4


@case
def alignment_survives_growth(maker: Maker) -> None:
    for shift in (0, 1, 2, 3):
        blocks = blocks_of(maker, shift)
        align = min(32, maker.max_align)
        blocks.alloc(1)
        handle = blocks.alloc(min(24, maker.max_size), align)
        assert blocks.pool.offset(handle) % align == 0
        blocks.alloc(1)
        handle = blocks.grow(handle, min(200, maker.max_size))
        assert blocks.pool.offset(handle) % align == 0
        blocks.check()


@case
def random_sizes_each_filled(maker: Maker) -> None:
    """No byte of one block changes through another, whatever else happens."""
    rng = random.Random(7)
    blocks = blocks_of(maker)
    aligns = [a for a in (1, 2, 4, 8, 16, 32) if a <= maker.max_align]
    for turn in range(400):
        live = [h for h, b in blocks.live.items() if not b["locked"]]
        what = rng.random()
        if what < 0.5:
            blocks.alloc(rng.randint(1, min(80, maker.max_size)), rng.choice(aligns))
        elif what < 0.6 and live:
            blocks.grow(rng.choice(live), rng.randint(1, maker.max_size))
        elif what < 0.65:
            blocks.alloc_many(rng.randint(1, 6), rng.randint(1, min(80, maker.max_size)))
        elif live:
            blocks.free(rng.choice(live))
        if turn % 8 == 0:
            blocks.check()
    for handle in list(blocks.live):
        blocks.free(handle)
    blocks.check()
    assert blocks.pool.stats()["used_bytes"] == blocks.pool.stats()["internal_waste_bytes"] == 0


@case
def many_or_none(maker: Maker) -> None:
    pool = maker.four(arena_of(maker))
    size = maker.four_bytes
    held = pool.alloc(size)
    out = array("i", [-7] * 6)
    refused(PoolFull, pool, lambda: pool.alloc_many(4, size, out))
    for n in (0, -1, 7, True, None, 1.0, "2"):
        refused(BadArgument, pool, lambda n=n: pool.alloc_many(n, 8, out))
        refused(BadArgument, pool, lambda n=n: pool.free_many(out, n))
    for wrong in ([0], (0, 0), array("f", [0, 0]), array("h", [0, 0]), bytearray(2), "xx", None, {}):
        refused(BadArgument, pool, lambda wrong=wrong: pool.alloc_many(2, size, wrong))
    assert held not in out[:3]
    for out in (array("i", [0] * 3), [0] * 3):
        pool.alloc_many(3, size, out)
        assert len({held, *out}) == 4
        refused(BadHandle, pool, lambda out=out: pool.free_many([out[0], out[1], out[0]], 3))
        refused(BadHandle, pool, lambda out=out: pool.free_many([out[0], 1.5], 2))
        pool.lock(out[2])
        refused(Locked, pool, lambda out=out: pool.free_many(out, 3))
        refused(Locked, pool, lambda out=out: pool.free_many([out[0], out[2], 1.5], 3))
        pool.unlock(out[2])
        pool.free_many(out, 3)
        refused(BadHandle, pool, lambda out=out: pool.free_many(out, 3))
    assert pool.stats()["used_blocks"] == 1
    assert pool.check() == 0


@case
def locked_stays(maker: Maker) -> None:
    blocks = blocks_of(maker)
    pool = blocks.pool
    handle = blocks.alloc(8)
    blocks.alloc(8)
    for _ in range(2):
        pool.lock(handle)
    at = pool.offset(handle)
    blocks.live[handle]["locked"] = True
    refused(Locked, pool, lambda: pool.free(handle), "unlock it")
    assert blocks.grow(handle, min(200, maker.max_size)) == handle
    assert pool.offset(handle) == at
    blocks.check()
    for _ in range(2):
        pool.unlock(handle)
    blocks.free(handle)
    assert pool.stats()["locked_blocks"] == 0
    assert pool.check() == 0


@case
def owners(maker: Maker) -> None:
    pool = maker.make(arena_of(maker))
    a, b = pool.alloc(8), pool.alloc(8)
    for owner in ((0, 0), (65535, 0), (0, 65535), (65535, 65535), (3, 9)):
        pool.set_owner(a, *owner)
        assert pool.owner(a) == owner
    pool.set_owner(b, 7)
    assert (pool.owner(a), pool.owner(b)) == ((3, 9), (7, 0))
    for wrong in (-1, 65536, None, 1.0, "1", True):
        refused(BadArgument, pool, lambda wrong=wrong: pool.set_owner(a, wrong), "layer")
        refused(BadArgument, pool, lambda wrong=wrong: pool.set_owner(a, 1, wrong), "batch")
    assert pool.owner(a) == (3, 9)


@case
def what_a_request_takes(maker: Maker) -> None:
    pool = maker.make(arena_of(maker))
    for size in (1, 3, 4, 5, 63, 64, maker.max_size):
        if size > maker.max_size:
            continue
        before = pool.stats()["used_bytes"]
        promised = pool.overhead_bytes(size)
        handle = pool.alloc(size)
        assert pool.stats()["used_bytes"] - before == size + promised
        assert pool.size(handle) <= size + promised
        assert pool.stats()["internal_waste_bytes"] == pool.size(handle) - size
        pool.free(handle)


@case
def statistics(maker: Maker) -> None:
    pool = maker.four(arena_of(maker))
    handles = [pool.alloc(maker.four_bytes) for _ in range(3)]
    pool.free(handles[1])
    stats = pool.stats()
    assert type(stats["pool"]) is str
    assert (stats["used_blocks"], stats["alloc_count"], stats["free_count"]) == (2, 3, 1)
    assert stats["high_water_blocks"] == 3
    assert stats["max_block_bytes"] >= maker.four_bytes
    assert stats["blocks"] >= 4
    assert type(stats["fragmentation"]) is float
    again = pool.stats()
    assert again == stats
    assert again is not stats


@case
def bookkeeping_is_small(maker: Maker) -> None:
    """At most 16 bytes a block, as the arrays on a board are counted, and 256 a pool."""
    pool = maker.make(arena_of(maker))
    assert 0 < pool.metadata_bytes() <= 16
    assert metadata(pool) <= pool.metadata_bytes() * pool.stats()["blocks"] + 256


def metadata(pool: Any) -> int:
    """Bytes of the pool's arrays; a list stands for array('i'), see port.ints."""
    found = 0
    for value in vars(pool).values():
        if isinstance(value, (array, bytearray)):
            found += len(value) * memoryview(value).itemsize
        elif type(value) is list:
            found += 4 * len(value)
    return found


# --- the state machine -------------------------------------------------------------------------


def machine(maker: Maker, examples: int = 25, steps: int = 40) -> Any:
    """A TestCase: random operations on maker's pool, everything checked after each."""

    class Machine(RuleBasedStateMachine):
        @initialize(shift=st.integers(0, 3))
        def start(self, shift: int) -> None:
            self.blocks = blocks_of(maker, shift)

        def some(self, data: Any) -> int:
            return data.draw(st.sampled_from(sorted(self.blocks.live)))

        def any_live(self) -> bool:
            return bool(self.blocks.live)

        @rule(
            size=st.one_of(st.integers(1, maker.max_size), st.integers(1, min(64, maker.max_size))),
            align=st.sampled_from([a for a in (1, 2, 4, 8, 16, 32, 64) if a <= maker.max_align]),
        )
        def alloc(self, size: int, align: int) -> None:
            self.blocks.alloc(size, align)

        @rule(n=st.integers(1, 9), size=st.integers(1, maker.max_size))
        def alloc_many(self, n: int, size: int) -> None:
            self.blocks.alloc_many(n, size)

        @rule(size=st.integers(maker.room + 1, 1 << 40))
        def alloc_too_much(self, size: int) -> None:
            refused(PoolFull, self.blocks.pool, lambda: self.blocks.pool.alloc(size))

        @precondition(any_live)
        @rule(data=st.data())
        def free(self, data: Any) -> None:
            handle = self.some(data)
            if self.blocks.live[handle]["locked"]:
                refused(Locked, self.blocks.pool, lambda: self.blocks.pool.free(handle))
            else:
                self.blocks.free(handle)

        @precondition(any_live)
        @rule(data=st.data(), most=st.integers(1, 6), twice=st.booleans())
        def free_many(self, data: Any, most: int, twice: bool) -> None:
            handles = [h for h, b in self.blocks.live.items() if not b["locked"]][:most]
            if not handles:
                return
            if twice:
                batch = [*handles, handles[0]]
                refused(BadHandle, self.blocks.pool, lambda: self.blocks.pool.free_many(batch, len(batch)))
            self.blocks.pool.free_many(handles, len(handles))
            for handle in handles:
                self.blocks.gone(handle)

        @precondition(any_live)
        @rule(data=st.data(), size=st.integers(1, maker.max_size))
        def grow(self, data: Any, size: int) -> None:
            self.blocks.grow(self.some(data), size)

        @precondition(any_live)
        @rule(data=st.data(), locked=st.booleans())
        def lock(self, data: Any, locked: bool) -> None:
            handle = self.some(data)
            (self.blocks.pool.lock if locked else self.blocks.pool.unlock)(handle)
            self.blocks.live[handle]["locked"] = locked

        @precondition(any_live)
        @rule(data=st.data(), layer=st.integers(0, 65535), batch=st.integers(0, 65535))
        def own(self, data: Any, layer: int, batch: int) -> None:
            handle = self.some(data)
            self.blocks.pool.set_owner(handle, layer, batch)
            self.blocks.live[handle]["owner"] = (layer, batch)

        @rule(data=st.data(), rubbish=st.integers(-(1 << 31), 1 << 31))
        def free_what_is_not_there(self, data: Any, rubbish: int) -> None:
            wrong = [rubbish, *self.blocks.dead[-4:], *(h | 1 << 29 for h in sorted(self.blocks.live)[:2])]
            for handle in wrong:
                if handle not in self.blocks.live:
                    refused(BadHandle, self.blocks.pool, lambda handle=handle: self.blocks.pool.free(handle))

        @invariant()
        def sound(self) -> None:
            if hasattr(self, "blocks"):
                self.blocks.check()

    found = Machine.TestCase
    found.settings = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=True
    )
    return found
