"""Soaks a pool through its protocol: every operation, good and bad, against what must hold of any pool.

Kept here is only what a caller knows: his handles, what he asked for, and what he wrote. After each operation
every live block must hold its bytes, none may overlap another, and the counts must add up; a call that is
refused must have changed nothing at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvlab.engine.state import arrays_of
from kvlab.soak.subject import Subject
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, KVError, Locked, PoolFull

BAD_SIZES = (0, -1, 1 << 30, 1 << 31, (1 << 32) - 1, True, 1.5, None, "4")
BAD_ALIGNS = (0, -4, 3, 12, True, 4.0, None, "4")
BAD_HANDLES = (-1, True, 1.5, None, "4", 1 << 29, 1 << 30, 1 << 70)

Make = Callable[[Arena, int], Any]
Errors = type[KVError] | tuple[type[KVError], ...]

# How many handles that were given back are kept, to be tried again.
_STALE = 64

_BATCH = 4


@dataclass
class Block:
    """A live block as its owner sees it. `asked`: bytes, all of them written with `data`."""

    asked: int
    align: int
    data: bytes
    owner: tuple[int, int] = (0, 0)
    locked: bool = False


class PoolSubject(Subject):
    """make(arena, tag): a pool, in an arena of `room` bytes. sizes: bytes worth asking for, from and to.
    aligns: those that the pool takes.

    A second pool of the same kind has handles that are foreign here.
    """

    def __init__(
        self, make: Make, room: int, seed: int, sizes: tuple[int, int], aligns: tuple[int, ...] = (4,)
    ) -> None:
        super().__init__()
        arena = Arena(room)
        self.pool, self.buffer = make(arena, 1), arena.buffer
        self.arrays = list(arrays_of(self.pool).values())
        other = make(Arena(room), 2)
        self.sizes, self.aligns = sizes, aligns
        self.rng = random.Random(seed)
        self.live: dict[int, Block] = {}
        self.stale: list[int] = []
        self.written = 0
        self.foreign = [other.alloc(sizes[0]) for _ in range(3)]
        self.operations: dict[str, tuple[int, Callable[[], None]]] = {
            "alloc": (30, self.alloc),
            "free": (22, self.free),
            "grow": (10, self.grow),
            "lock": (4, self.lock),
            "unlock": (6, self.unlock),
            "set_owner": (3, self.set_owner),
            "write": (6, self.write),
            "alloc_many": (4, self.alloc_many),
            "free_many": (4, self.free_many),
            "bad handle": (6, self.bad_handle),
            "bad size": (4, self.bad_size),
            "free all": (1, self.free_all),
        }

    # --- operations ------------------------------------------------------------------------------

    def step(self) -> str:
        names = list(self.operations)
        weights = [weight for weight, _ in self.operations.values()]
        name = self.rng.choices(names, weights)[0]
        self.operations[name][1]()
        return name

    def pick(self) -> int | None:
        return self.rng.choice(list(self.live)) if self.live else None

    def size(self) -> int:
        """Mostly small ones, as most things are."""
        least, most = self.sizes
        return max(least, min(most, int(most * self.rng.random() ** 3) + 1))

    def fill(self, handle: int, block: Block, since: int = 0) -> None:
        """Write the block from byte `since` on with what nobody else writes."""
        self.written += 1
        data = self.rng.randbytes(block.asked - since)
        at = self.pool.offset(handle) + since
        self.buffer[at : at + len(data)] = data
        block.data = block.data[:since] + data

    def took(self, handle: int, asked: int, align: int) -> None:
        self.expect(type(handle) is int and 0 <= handle < 1 << 29, f"handle {handle!r} is none")
        self.expect(handle not in self.live, f"handle {handle} was given out twice")
        self.expect(handle not in self.stale, f"handle {handle} was given out anew too soon")
        self.live[handle] = Block(asked, align, b"")
        self.fill(handle, self.live[handle])
        self.live[handle].owner = self.pool.owner(handle)

    def gave(self, handle: int) -> None:
        del self.live[handle]
        self.stale = [*self.stale[1 - _STALE :], handle]

    def refused(self, errors: Errors, call: Callable[[], Any]) -> None:
        """The call must raise one of `errors`, in one line, and change nothing."""
        before = self.state()
        try:
            got = call()
        except errors as error:
            self.expect(self.state() == before, f"refused, yet something changed: {error}")
            text = str(error)
            self.expect(bool(text) and "\n" not in text, f"not one line: {text!r}")
            return
        self.expect(False, f"not refused, but gave {got!r}")

    def state(self) -> list[Any]:
        """All that a pool has: its arrays, and the bytes of its blocks."""
        return [bytes(self.buffer), *(array[:] for array in self.arrays)]

    def alloc(self) -> None:
        self.alloc_in()

    def alloc_in(self, *region: Any) -> int | None:
        """A block, if there is room for it, in a region where a pool has some; its handle."""
        size, align = self.size(), self.rng.choice(self.aligns)
        before = self.state()
        largest = self.pool.largest_free_bytes(*region)
        try:
            handle: int = self.pool.alloc(size, align, *region)
        except PoolFull as full:
            self.expect(self.state() == before, "alloc was refused, yet something changed")
            self.full(full, size, largest if align <= 4 else 0)
            self.expect(full.largest == largest, "PoolFull names another largest block")
            return None
        self.expect(size <= largest, f"{size} bytes given where {largest} were the most")
        self.took(handle, size, align)
        return handle

    def full(self, full: PoolFull, size: int, largest: int) -> None:
        """What PoolFull says is so, and it was right to say it. largest: of what must have been given."""
        self.expect(size > largest, f"{size} bytes refused where {largest} were free in one piece")
        self.expect(full.needed >= size, f"PoolFull says {full.needed} needed of {size}")
        self.expect(full.free == self.pool.free_bytes(), "PoolFull names another number of free bytes")

    def free(self) -> None:
        handle = self.pick()
        if handle is None:
            return
        if self.live[handle].locked:
            self.refused(Locked, lambda: self.pool.free(handle))
        else:
            self.pool.free(handle)
            self.gave(handle)
            self.refused(BadHandle, lambda: self.pool.free(handle))

    def free_all(self) -> None:
        for handle in list(self.live):
            self.pool.unlock(handle)
            self.pool.free(handle)
            self.gave(handle)
        self.expect(self.pool.free_bytes() == self.pool.stats()["total_bytes"], "empty, yet not all is free")

    def grow(self) -> None:
        handle = self.pick()
        if handle is None:
            return
        block = self.live[handle]
        size = block.asked + self.rng.randrange(1, self.sizes[1] + 1)
        before, at = self.state(), self.pool.offset(handle)
        try:
            new = self.pool.grow(handle, size)
        except (PoolFull, Locked):
            self.expect(self.state() == before, "grow was refused, yet something changed")
            return
        if block.locked:
            self.expect(new == handle and self.pool.offset(new) == at, "a locked block was moved")
        if new != handle:
            self.gave(handle)
            self.live[new] = block
        was = block.asked
        start = self.pool.offset(new)
        self.expect(bytes(self.buffer[start : start + was]) == block.data, "grow lost what was written")
        block.asked = size
        self.fill(new, block, was)

    def lock(self) -> None:
        handle = self.pick()
        if handle is not None:
            self.pool.lock(handle)
            self.live[handle].locked = True

    def unlock(self) -> None:
        handle = self.pick()
        if handle is not None:
            self.pool.unlock(handle)
            self.live[handle].locked = False

    def set_owner(self) -> None:
        handle = self.pick()
        if handle is not None:
            owner = self.rng.choice((0, 1, 65535, 7)), self.rng.choice((0, 65535, 3))
            self.pool.set_owner(handle, *owner)
            self.live[handle].owner = owner

    def write(self) -> None:
        handle = self.pick()
        if handle is not None:
            self.fill(handle, self.live[handle])

    def alloc_many(self) -> None:
        count, size = self.rng.randrange(1, _BATCH + 1), self.size()
        out: list[Any] = [None] * count
        before = self.state()
        try:
            self.pool.alloc_many(count, size, out)
        except PoolFull:
            self.expect(self.state() == before, "alloc_many was refused, yet something changed")
        else:
            for handle in out:
                self.took(handle, size, 4)

    def free_many(self) -> None:
        """Some at once; with one of them twice, locked or stale none is freed."""
        if not self.live:
            return
        handles = self.rng.sample(list(self.live), min(len(self.live), self.rng.randrange(1, _BATCH + 1)))
        bad = self.rng.random() < 0.3
        if bad:
            odd = [handles[0], *self.foreign, *self.stale[-3:]]
            handles.insert(self.rng.randrange(len(handles) + 1), self.rng.choice(odd))
        if bad or any(self.live[handle].locked for handle in handles):
            self.refused((BadHandle, Locked), lambda: self.pool.free_many(handles, len(handles)))
        else:
            self.pool.free_many(handles, len(handles))
            for handle in handles:
                self.gave(handle)

    def bad_handle(self) -> None:
        wrong: list[Any] = [*BAD_HANDLES, *self.foreign, *self.stale[-8:], self.rng.randrange(1 << 29)]
        wrong += [handle + 1 for handle in list(self.live)[:3]]
        handle = self.rng.choice(wrong)
        if type(handle) is int and handle in self.live:
            return
        call = self.rng.choice(
            (
                *(self.pool.free, self.pool.lock, self.pool.unlock, self.pool.is_locked),
                *(self.pool.offset, self.pool.size, self.pool.owner),
                lambda wrong: self.pool.grow(wrong, self.sizes[1]),
                lambda wrong: self.pool.set_owner(wrong, 1),
                lambda wrong: self.pool.free_many([wrong], 1),
            )
        )
        self.refused(BadHandle, lambda: call(handle))

    def bad_size(self) -> None:
        total = self.pool.stats()["total_bytes"]
        size: Any = self.rng.choice((*BAD_SIZES, total + 1))
        handle = self.pick()
        calls = [
            lambda: self.pool.alloc(size),
            lambda: self.pool.alloc_many(1, size, [None]),
            lambda: self.pool.alloc(self.sizes[0], self.rng.choice(BAD_ALIGNS)),
        ]
        if handle is not None:
            calls.append(lambda: self.pool.grow(handle, size))
        self.refused((BadArgument, PoolFull, Locked), self.rng.choice(calls))

    # --- promises --------------------------------------------------------------------------------

    def inspect(self) -> None:
        pool, buffer = self.pool, self.buffer
        broken = pool.check()
        self.expect(broken == 0, f"check() finds {broken} broken invariants")
        stats = pool.stats()
        self.expect(
            stats["used_bytes"] + pool.free_bytes() == stats["total_bytes"], "free + used is not the total"
        )
        self.expect(stats["used_blocks"] == len(self.live), f"{len(self.live)} blocks live, not used_blocks")
        self.expect(
            0 <= pool.largest_free_bytes() <= pool.free_bytes() <= stats["total_bytes"],
            "free bytes out of range",
        )
        self.expect(0 <= stats["fragmentation"] <= 1, "fragmentation is not within 0..1")
        self.expect(stats["internal_waste_bytes"] >= 0, "internal waste is negative")
        locked = sum(block.locked for block in self.live.values())
        self.expect(stats["locked_blocks"] == locked, "locked_blocks is off")
        spans = []
        for handle, block in self.live.items():
            at, size = pool.offset(handle), pool.size(handle)
            spans.append((at, at + size))
            self.expect(size >= block.asked, f"block {handle} is smaller than asked for")
            self.expect(at % block.align == 0, f"block {handle} lost its alignment")
            self.expect(buffer[at : at + block.asked] == block.data, f"bytes of block {handle} changed")
            self.expect(pool.is_locked(handle) == block.locked, f"the lock of block {handle} is off")
            self.expect(pool.owner(handle) == block.owner, f"the owner of block {handle} changed")
        spans.sort()
        self.expect(all(one[1] <= other[0] for one, other in zip(spans, spans[1:])), "two blocks share bytes")
        self.expect(not spans or (spans[0][0] >= 0 and spans[-1][1] <= len(buffer)), "a block lies outside")


class FixedSubject(PoolSubject):
    def state(self) -> list[Any]:
        """Without what lies above the top of the stack of free blocks, which means nothing."""
        pool = self.pool
        top = pool.n_blocks + pool.free_bytes() // pool.block_bytes
        return [*super().state()[:1], pool._meta[:], pool._word[:top]]


class RegionSubject(PoolSubject):
    """With what a region pool adds: holders, and compaction."""

    def __init__(self, *how: Any, **more: Any) -> None:
        super().__init__(*how, **more)
        self.operations["compact"] = (4, self.compact)
        self.operations["retain"] = (3, self.retain)

    def full(self, full: PoolFull, size: int, largest: int) -> None:
        """Its entries may be used up, whatever is free."""
        spent = len(self.live) == self.pool.max_regions
        super().full(full, size, 0 if spent else largest)

    def compact(self) -> None:
        """All at once, or a little: afterwards no two gaps but around what cannot move."""
        free = self.pool.free_bytes()
        limit = self.rng.choice((None, None, 0, 64, 300))
        moved = self.pool.compact(limit)
        self.expect(limit is None or moved <= limit, f"compact({limit}) moved {moved} bytes")
        self.expect(self.pool.free_bytes() == free, "compact() changed the number of free bytes")
        still = any(block.locked or block.align > 4 for block in self.live.values())
        if limit is None and not still:
            self.expect(self.pool.largest_free_bytes() == free, "compact() left gaps")

    def retain(self) -> None:
        handle = self.pick()
        if handle is not None and not self.live[handle].locked:
            self.pool.retain(handle)
            self.expect(self.pool.holders(handle) == 2, "a holder more, yet not two")
            self.pool.free(handle)
            self.expect(self.pool.holders(handle) == 1, "a holder less, yet not one")


class SlabSubject(PoolSubject):
    def free_all(self) -> None:
        super().free_all()
        self.expect(self.pool.stats()["fragmentation"] == 0, "empty, yet fragmented")


class QuotaSubject(SlabSubject):
    """With the regions of a slab and region pool: quotas of slabs."""

    def __init__(self, *how: Any, **more: Any) -> None:
        super().__init__(*how, **more)
        # Of each region its limit and guarantee; of each block the region that it was asked for.
        self.regions: dict[int, tuple[int, int]] = {}
        self.within: dict[int, int | None] = {}
        self.closed: list[int] = []
        self.operations["alloc in a region"] = (20, self.alloc_somewhere)
        self.operations["open region"] = (4, self.open_region)
        self.operations["close region"] = (3, self.close_region)
        self.operations["bad region"] = (2, self.bad_region)

    def took(self, handle: int, asked: int, align: int) -> None:
        super().took(handle, asked, align)
        self.within[handle] = None

    def gave(self, handle: int) -> None:
        super().gave(handle)
        del self.within[handle]

    def grow(self) -> None:
        """A block that moves stays in its region."""
        before = dict(self.within)
        super().grow()
        (gone,) = before.keys() - self.live.keys() or (None,)
        (new,) = self.live.keys() - before.keys() or (None,)
        if gone is not None and new is not None:
            self.within[new] = before[gone]

    def inside_of(self, region: int) -> list[int]:
        return [handle for handle, where in self.within.items() if where == region]

    def alloc_somewhere(self) -> None:
        if self.regions:
            region = self.rng.choice(list(self.regions))
            handle = self.alloc_in(region)
            if handle is not None:
                self.within[handle] = region

    def open_region(self) -> None:
        limit = self.rng.randrange(1, self.pool.n_slabs + 1)
        guaranteed = self.rng.choice((0, 0, 1, 2, 4))
        before = self.state()
        try:
            region = self.pool.open_region(limit, min(limit, guaranteed), self.rng.randrange(1 << 16))
        except PoolFull:
            self.expect(self.state() == before, "open_region was refused, yet something changed")
            return
        self.expect(region not in self.regions and region not in self.closed, f"region {region} twice")
        self.regions[region] = limit, min(limit, guaranteed)

    def close_region(self) -> None:
        """All at once, whatever is in it; but nothing locked."""
        if not self.regions:
            return
        region = self.rng.choice(list(self.regions))
        inside = self.inside_of(region)
        if any(self.live[handle].locked for handle in inside):
            self.refused(Locked, lambda: self.pool.close_region(region))
            return
        self.pool.close_region(region)
        for handle in inside:
            self.gave(handle)
        del self.regions[region]
        self.closed = [*self.closed[-20:], region]
        self.refused(BadHandle, lambda: self.pool.close_region(region))
        if not self.live:
            self.expect(self.pool.stats()["fragmentation"] == 0, "empty, yet fragmented")

    def bad_region(self) -> None:
        region: Any = self.rng.choice((*BAD_HANDLES[:3], *self.closed[-3:], *self.foreign))
        if type(region) is int and region in self.regions:
            return
        calls = [
            (BadHandle, lambda: self.pool.alloc(self.sizes[0], 4, region)),
            (BadHandle, lambda: self.pool.close_region(region)),
            (BadArgument, lambda: self.pool.open_region(0)),
            (BadArgument, lambda: self.pool.open_region(2, 3)),
            (BadArgument, lambda: self.pool.open_region(self.pool.n_slabs + 1)),
            (BadArgument, lambda: self.pool.open_region(True)),
        ]
        self.refused(*self.rng.choice(calls))

    def inspect(self) -> None:
        super().inspect()
        pool = self.pool
        for handle, region in self.within.items():
            self.expect(pool.region_of(handle) == region, f"block {handle} is in another region")
        for region, (limit, guaranteed) in self.regions.items():
            header = pool.region_header(region)
            held = header["held_slabs"]
            self.expect(held <= limit, f"a region of {limit} slabs holds {held}")
            self.expect(header["objects"] == len(self.inside_of(region)), "a region counts other objects")
            if held < guaranteed:
                most = pool.largest_free_bytes(region)
                self.expect(most == pool.max_block_bytes, "a slab that was guaranteed cannot be had")
