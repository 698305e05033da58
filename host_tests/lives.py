"""Long lives of every structure: calls drawn by chance, right and wrong ones, told line by line.

A line is a call and what came of it: its result, or the refusal with its text and numbers; then what the
structure says of itself, and of its own numbers those that decide what the next call may do.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from paged_cases import HEAD_DIM, HEADS, LAYERS, SHAPE, WIDTH, requests_of, vector

from field_tables import tables
from mpy_kv import Geometry, KVCache, eviction, kernels
from mpy_kv.admission import admission
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.admission.waiting import Gate
from mpy_kv.arena import Arena
from mpy_kv.errors import KVError, NoRoom, StepError
from mpy_kv.eviction.tokens import params as T
from mpy_kv.int4_blocks import SealedCache, SealedGeometry
from mpy_kv.kernels import params as P
from mpy_kv.kernels.int4 import params as P4
from mpy_kv.kernels.kernel_registry import KernelSet
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.per_layer import MixedCache, MixedGeometry
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool
from mpy_kv.token_eviction import BudgetCache

META, STATE = tables.of("blocks"), tables.of("requests")

WRONG: tuple[Any, ...] = (-1, 1 << 30, 1.5, None, True, "x", 0)


class Life:
    """One structure, `seed`; lines() draws so many calls."""

    odd = 0.03  # of an argument to be wrong

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"{type(self).__name__} {seed}")
        self.told: list[str] = []
        self.make()

    def make(self) -> None:
        raise NotImplementedError

    def turn(self) -> None:
        """One call or two."""
        raise NotImplementedError

    def state(self) -> str:
        raise NotImplementedError

    def subject(self) -> Any:
        """The structure."""
        return next(
            vars(self)[name] for name in ("pool", "queue", "one", "cache", "all") if name in vars(self)
        )

    def lines(self, count: int) -> Iterator[str]:
        yield f"{public(self.subject())}"
        for _ in range(count):
            self.turn()
            yield re.sub(r" at 0x\w+", "", "; ".join(self.told) + " | " + self.state())
            self.told.clear()
        self.end()

    def end(self) -> None:
        """Nothing is left behind."""

    def arg(self, right: Any) -> Any:
        return self.rng.choice(WRONG) if self.rng.random() < self.odd else right

    def do(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """The result, None where it is refused."""
        shown = ", ".join([*map(_brief, arguments), *(f"{k}={_brief(v)}" for k, v in named.items())])
        told = f"{call.__name__}({shown})"
        try:
            found = call(*arguments, **named)
        except KVError as error:
            more = vars(error) if isinstance(error, NoRoom) else ""
            self.told.append(f"{told} !! {type(error).__name__}: {error} {more}")
            return None
        except (TypeError, AttributeError) as error:
            self.told.append(f"{told} !! {type(error).__name__}")
            return None
        self.told.append(f"{told} -> {_brief(found)}")
        return found


def _brief(x: Any) -> str:
    if isinstance(x, (bytes, bytearray, array)) and len(x) > 8:
        return f"{zlib.crc32(bytes(x)):08x}"
    if isinstance(x, (bool, int, float, str, type(None), tuple, list, dict, bytes, array)):
        return repr(x)
    return type(x).__name__


def public(made: Any) -> dict[str, Any]:
    """Attributes that a program may read."""
    found = {}
    for name in dir(made):
        if name[0] != "_" and name not in ("reasons",):
            value = getattr(made, name)
            if isinstance(value, (bool, int, str, tuple, type(None))):
                found[name] = value
            elif name == "geometry":
                found[name] = {k: v for k, v in public(value).items() if k != name}
            elif name == "kernels":
                found[name] = (value.name, value.codec) if hasattr(value, "codec") else value.name
    return found


def odd(rng: random.Random, handle: int) -> int:
    """A number near a handle: of another index, tag, generation, of a locked one, below 0."""
    near = (handle ^ rng.randrange(1, 32), handle ^ (1 << rng.randrange(31)), -1 - handle, -handle)
    return rng.choice((*near, handle | 15, handle | 1 << 29, rng.randrange(-40, 40), handle + (1 << 30)))


# --- pools


class Pool(Life):
    sizes: tuple[int, ...] = (1, 4, 5, 16, 30, 60, 64)
    aligns = (4, 4, 4, 8, 16)

    def make(self) -> None:
        self.pool = self.built()
        self.live: list[int] = []
        self.dead: list[int] = [self.pool.alloc(self.sizes[0])]
        self.pool.free(self.dead[0])

    def built(self) -> Any:
        raise NotImplementedError

    def state(self) -> str:
        p = self.pool
        return f"{p.stats()} {p.free_bytes()} {p.largest_free_bytes()} {p.check()}"

    def handle(self) -> Any:
        dead = self.rng.random() < 0.04 or not self.live
        one = self.rng.choice(self.dead if dead else self.live)
        if self.rng.random() < 0.03:
            one = odd(self.rng, one)
        return self.arg(one)

    def turn(self) -> None:
        rng, pool = self.rng, self.pool
        size = self.arg(rng.choice(self.sizes))
        kind = rng.choice(
            ("alloc",) * 6 + ("free",) * 4 + ("grow",) * 2
            + ("lock", "unlock", "unlock", "owner", "many", "back", "look", "own")
        )  # fmt: skip
        if kind == "alloc":
            self.came(self.do(pool.alloc, size, self.arg(rng.choice(self.aligns))))
        elif kind == "free":
            handle = self.handle()
            before = pool.stats()["used_blocks"]
            self.do(pool.free, handle)
            if pool.stats()["used_blocks"] < before:
                self.went(handle)
        elif kind == "grow":
            handle = self.handle()
            new = self.do(pool.grow, handle, size)
            if new is not None and new != handle:
                self.went(handle)
                self.came(new)
        elif kind in ("lock", "unlock"):
            self.do(getattr(pool, kind), self.handle())
        elif kind == "owner":
            self.do(pool.set_owner, self.handle(), self.arg(rng.choice((0, 7, 65535, 65536))),
                    self.arg(rng.choice((0, 9, 16383, 16384, 65535, 65536))))  # fmt: skip
        elif kind == "own":
            self.do(pool.owner, self.handle())
            self.do(pool.overhead_bytes, size)
        elif kind == "look":
            for ask in (pool.offset, pool.size, pool.is_locked):
                self.do(ask, self.handle())
        elif kind == "many":
            n = self.arg(rng.randint(1, 4))
            out: Any = array("i", [-1] * 4) if rng.random() < 0.5 else [-1] * 4
            before = pool.stats()["used_blocks"]
            self.do(pool.alloc_many, n, size, self.arg(out), rng.choice((4, 4, 8)))
            if pool.stats()["used_blocks"] > before:
                for one in out[:n]:
                    self.came(one)
        else:
            handles = [self.handle() for _ in range(rng.randint(1, 3))]
            before = pool.stats()["used_blocks"]
            self.do(pool.free_many, self.arg(handles), self.arg(len(handles)))
            if pool.stats()["used_blocks"] < before:
                for one in handles:
                    self.went(one)

    def came(self, handle: int | None) -> None:
        if handle is not None:
            self.live.append(handle)

    def went(self, handle: int) -> None:
        self.live.remove(handle)
        self.dead = [*self.dead[-5:], handle]


class Fixed(Pool):
    def built(self) -> Any:
        arena = Arena(12 * 64)
        arena.take(8)
        return FixedPool(arena, 9, 64, tag=3, align=8)


class Slab(Pool):
    sizes = (1, 5, 16, 17, 30, 60, 64, 100, 120)

    def built(self) -> Any:
        return SlabPool(Arena(8 * 256), 256, 8, (16, 64, 120), tag=3)


class Buddy(Pool):
    sizes = (1, 60, 64, 65, 100, 128, 200, 512, 1100)
    aligns = (4, 4, 64, 128)

    def built(self) -> Any:
        arena = Arena(24 * 64)
        arena.take(8)
        return BuddyPool(arena, 23 * 64 - 20, tag=3)


class Region(Pool):
    sizes = (1, 5, 30, 64, 100, 200, 400)
    aligns = (4, 4, 8, 32)

    def built(self) -> Any:
        return RegionPool(Arena(1203), 1203, 10, tag=3)

    def went(self, handle: int) -> None:
        if handle in self.live:
            super().went(handle)

    def turn(self) -> None:
        kind = self.rng.random()
        if kind < 0.06:
            self.do(self.pool.compact, self.arg(self.rng.choice((None, 40, 100, 400))))
        elif kind < 0.12:
            self.do(self.pool.retain, self.handle())
        elif kind < 0.18:
            handle = self.handle()
            self.do(self.pool.holders, handle)
            self.do(self.pool.header, handle)
        else:
            super().turn()


class RegionHeld(Region):
    """Many gaps below regions that stay."""

    sizes = (1, 5, 17, 30, 64, 100)

    def built(self) -> Any:
        return RegionPool(Arena(1203), 1203, 19, tag=3)

    def turn(self) -> None:
        kind = self.rng.random()
        if kind < 0.15 and self.live:
            self.do(self.pool.lock, self.rng.choice(self.live))
        elif kind < 0.3:
            self.do(self.pool.compact, self.rng.choice((None, None, 0, 4, 20, 60, 150)))
            self.told.append(f"{[self.pool.offset(h) for h in self.live]}")
        elif kind < 0.5 and self.live:
            handle = self.rng.choice(self.live)
            self.do(self.pool.unlock, handle)
            self.do(self.pool.free, handle)
            self.went(handle)
        else:
            super().turn()


class SlabRegion(Pool):
    def built(self) -> Any:
        self.regions: list[Any] = [None]
        self.closed: list[Any] = []
        return SlabRegionPool(Arena(10 * 256), 256, 10, (16, 64, 120), 3, tag=3)

    def region(self) -> Any:
        one = self.rng.choice(self.regions)
        if self.closed and self.rng.random() < 0.05:
            one = self.rng.choice(self.closed)
        if one is not None and self.rng.random() < 0.05:
            one = odd(self.rng, one)
        return self.arg(one)

    def turn(self) -> None:
        rng, pool = self.rng, self.pool
        kind = rng.random()
        if kind < 0.06:
            limit = rng.randint(1, 5)
            new = self.do(pool.open_region, self.arg(limit), self.arg(rng.randint(0, limit)), self.arg(7))
            if new is not None:
                self.regions.append(new)
        elif kind < 0.1:
            region = self.region()
            left = self.do(pool.close_region, region)
            if left == 0:
                self.regions.remove(region)
                self.closed.append(region)
                for handle in list(self.live):
                    try:
                        pool.size(handle)
                    except KVError:
                        self.went(handle)
        elif kind < 0.13:
            self.do(pool.retain_region, self.region())
        elif kind < 0.18:
            self.do(pool.region_header, self.region())
            self.do(pool.largest_free_bytes, self.region())
            self.do(pool.region_of, self.handle())
        elif kind < 0.5:
            self.came(
                self.do(pool.alloc, self.arg(rng.choice(self.sizes)), rng.choice(self.aligns), self.region())
            )
        elif kind < 0.55:
            out = array("i", [-1] * 3)
            before = pool.stats()["used_blocks"]
            self.do(pool.alloc_many, 3, rng.choice(self.sizes), out, 4, self.region())
            if pool.stats()["used_blocks"] > before:
                for one in out:
                    self.came(one)
        else:
            super().turn()


# --- queues and orders


class Queue(Life):
    reserve: Any = "maximum"

    def make(self) -> None:
        admission._serial = 3
        reserve = self.reserve
        if reserve == "predictor":
            reserve = LengthPredictor(tasks=3, memory=40, least=3)
        self.queue = admission.Admission(24, 4, 9, 3, 18, reserve)
        self.live: list[int] = []
        self.dead: list[int] = [100000]

    def state(self) -> str:
        q = self.queue
        said = [list(q.admitted[: q.n_admitted]), list(q.preempted[: q.n_preempted])]
        about = [(q.state(t), q.blocks(t), q.slot(t)) for t in self.live]
        return f"{q.stats()} {said} {about} {q.check()}"

    def ticket(self) -> Any:
        dead = self.rng.random() < 0.05 or not self.live
        one = self.rng.choice(self.dead[-6:] if dead else self.live)
        if self.rng.random() < 0.05:
            one = odd(self.rng, one)
        return self.arg(one)

    def turn(self) -> None:
        rng, q = self.rng, self.queue
        free = rng.choice((None, None, None, 3, 9))
        kind = rng.choice(
            ("submit",) * 5 + ("step",) * 4 + ("growth",) * 3 + ("wanted", "end", "end", "cancel", "state")
        )
        if kind == "submit":
            new = self.do(q.submit, self.arg(rng.randrange(5)), self.arg(rng.randint(1, 30)),
                          self.arg(rng.randint(1, 44)), self.arg(rng.randrange(3)))  # fmt: skip
            if new is not None:
                self.live.append(new)
        elif kind == "step":
            self.do(q.step, self.arg(free))
        elif kind == "growth":
            self.do(q.growth, self.ticket(), self.arg(rng.randint(1, 3)), self.arg(free))
        elif kind == "wanted":
            self.do(q.wanted, self.ticket(), self.arg(rng.randint(0, 30)))
        elif kind == "state":
            for ask in (q.state, q.blocks, q.slot):
                self.do(ask, self.ticket())
        else:
            ticket = self.ticket()
            before = len(self.told)
            if kind == "end":
                self.do(q.finish, ticket, self.arg(rng.choice((None, 0, 1, 5, 20))))
            else:
                self.do(q.cancel, ticket)
            if "!!" not in self.told[before]:
                self.live.remove(ticket)
                self.dead.append(ticket)


class QueueOfNothing(Queue):
    reserve = "nothing"


class QueueOfPredictions(Queue):
    reserve = "predictor"


class Gates(Queue):
    """Tasks that wait for tickets, woken, preempted, cancelled."""

    reserve = "nothing"

    def make(self) -> None:
        super().make()
        self.loop = asyncio.new_event_loop()
        self.gate = Gate(self.queue, self.heard)
        self.tasks: dict[int, asyncio.Task[None]] = {}

    def heard(self, ticket: int) -> None:
        self.told.append(f"preempted {ticket}")
        kind = self.rng.randrange(5)
        if kind == 0:
            self.told.append(f"step {self.gate.step()}")
        elif kind == 1:
            raise StepError(f"of {ticket}")

    def turn(self) -> None:
        rng, gate = self.rng, self.gate
        free = rng.choice((None, None, 3, 9))
        kinds = ("submit",) * 5 + ("step",) * 3 + ("growth",) * 3 + ("finish",) * 2 + ("cancel", "leave")
        kind = rng.choice(kinds)
        if kind == "submit":
            new = self.do(self.queue.submit, 1, rng.randint(1, 20), rng.randint(1, 30), rng.randrange(3))
            if new is not None:
                self.live.append(new)
                self.tasks[new] = self.loop.create_task(gate.wait(new))
        elif kind == "step":
            self.do(gate.step, free)
        elif kind == "leave" and self.tasks:
            self.tasks[rng.choice(list(self.tasks))].cancel()
        elif kind == "growth":
            ticket = self.ticket()
            self.do(gate.growth, ticket, rng.randint(1, 3), free)
            again = ticket in self.live and ticket not in self.tasks
            if again and rng.random() < 0.8:
                self.tasks[ticket] = self.loop.create_task(gate.wait(ticket))
        elif kind == "finish":
            self.do(gate.finish, self.ticket(), self.arg(rng.choice((None, 1, 5))), free)
        else:
            self.do(gate.cancel, self.ticket(), free)
        self.loop.run_until_complete(self.settled())

    def end(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        while self.tasks:
            self.loop.run_until_complete(self.settled())
        self.loop.close()

    async def settled(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)
        for ticket, task in list(self.tasks.items()):
            if task.done():
                error = None if task.cancelled() else task.exception()
                self.told.append(f"{ticket} woke: {task.cancelled()} {type(error).__name__}")
                del self.tasks[ticket]
        for ticket in list(self.live):
            try:
                self.queue.slot(ticket)
            except KVError:
                self.live.remove(ticket)
                self.dead.append(ticket)


class Predictor(Life):
    def make(self) -> None:
        self.one = LengthPredictor(tasks=3, per_mille=800, least=3, memory=21)

    def state(self) -> str:
        one = self.one
        return f"{[one.seen(task) for task in (None, 0, 1, 2, 3, 4)]} {one.check()}"

    def turn(self) -> None:
        rng, one = self.rng, self.one
        task = self.arg(rng.choice((0, 1, 2, 3, 4)))
        kind = rng.random()
        if kind < 0.6:
            self.do(one.observe, task, self.arg(rng.choice((0, 3, 8, 100, 1000, 1 << 18, 1 << 29))))
        elif kind < 0.9:
            limit = rng.choice((1, 50, 4000))
            self.do(one.predict, task, self.arg(limit), self.arg(rng.randrange(limit)))
        elif kind < 0.98:
            self.do(one.seen, task)
        else:
            self.do(one.reset)


class Order(Life):
    policy = "fifo"
    options: dict[str, int] = {}

    def make(self) -> None:
        self.one = eviction.make(self.policy, 7, **self.options)

    def state(self) -> str:
        counts = [self.one.count(i) for i in range(7)] if hasattr(self.one, "count") else ""
        return f"{self.one.stats()} {self.one.check()} {counts}"

    def turn(self) -> None:
        rng, one = self.rng, self.one
        i = rng.choice((0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, -1, 7, 8))
        kind = rng.choice(
            ("insert",) * 5
            + ("touch",) * 5
            + ("evict", "evict", "remove", "protect", "unprotect", "unprotect")
        )
        if kind == "evict":
            self.do(one.evict)
        elif kind == "insert":
            self.do(one.insert, i, rng.choice((-1, 3, 4, 5, 6, 7, 8, 9, 3 + (1 << 30))))
        else:
            self.do(getattr(one, kind), i)


def _order(policy: str, **options: int) -> type[Life]:
    return type(f"Order_{policy}_{len(options)}", (Order,), {"policy": policy, "options": options})


# --- sequences


class Steps(Life):
    """A cache: steps of one token and of several, cut short, undone; vectors of a wrong kind."""

    base: dict[str, Any] = SHAPE
    shifts: dict[str, Any] = {}
    rollback = 5
    several = 3
    odd = 0.01

    def make(self) -> None:
        self.width = self.base["kv_heads"] * self.base["head_dim"]
        self.row = self.base["heads"] * self.base["head_dim"]
        self.cache = self.built()
        self.serial = 0
        self.pending = 0

    def built(self) -> Any:
        raise NotImplementedError

    def vectors(self, n: int, role: int, width: int, layer: int) -> array:
        self.serial += 1
        values = [x for i in range(n) for x in vector(self.serial + i, role, layer, role, width)]
        if self.shifts:
            return array("h", [int(x * 4000) for x in values])
        return array("f", values)

    def state(self) -> str:
        c = self.cache
        turn, one, placement = list(c._turn), c.attention[0], c.placement
        runs = [-1, 0] if isinstance(c, MixedCache) else [one.runs_of, one.runs_floor]
        kept = [turn[1:2] + runs + turn[2:4], placement.floor]
        kept += [list(getattr(placement, "over", ())), getattr(placement, "uneven", None)]
        if hasattr(c, "plan"):
            kept += [c.plan[i] for i in (T.SINCE, T.BANK, T.EVICTED, T.MOVING, T.SHRINKING)]
        return f"{c.stats()} {c.visible()} {c.sink_query_position(1)} {c.check()} {kept}"

    def turn(self) -> None:
        rng, c = self.rng, self.cache
        kind = rng.choice(("step",) * 9 + ("several", "cut", "rollback", "abort", "look", "wrong"))
        if kind in ("step", "several"):
            self.step(rng.randint(1, self.several) if kind == "several" else 1, LAYERS)
        elif kind == "cut":
            self.step(rng.randint(1, self.several), rng.randint(0, LAYERS))
        elif kind == "rollback":
            self.do(c.rollback, self.arg(rng.randint(0, self.rollback)))
        elif kind == "abort":
            self.do(c.abort)
        elif kind == "look":
            self.looked()
        else:
            self.wrong()

    def step(self, n: int, layers: int) -> None:
        c = self.cache
        attended = self.rng.random() < 0.85
        sinks = self.rng.random() < 0.6
        for layer in range(layers):
            k, v = (self.vectors(n, role, self.width, layer) for role in (0, 1))
            q, qs = (self.vectors(n, role, self.row, layer) for role in (2, 3))
            out = array("h" if self.shifts else "f", bytes((2 if self.shifts else 4) * n * self.row))
            if n == 1 and self.rng.random() < 0.9:
                self.do(c.append, layer, k, v)
                n = 1
            else:
                self.do(c.prefill, layer, k, v, n)
            if attended or layer:
                self.do(c.attend, layer, q, out, qs if sinks else None, n)
                self.told.append(f"{_brief(out)} {runs(c)}")
        if layers == LAYERS:
            self.commit(n)

    def commit(self, n: int) -> None:
        self.do(self.cache.commit)

    def looked(self) -> None:
        rng, c = self.rng, self.cache
        self.do(c.settings)
        buffer, parameters = c.kernel_arguments()
        self.told.append(f"{len(buffer)} {list(parameters)}")
        position = rng.choice([*c.visible(), 3, c.length, 0])
        which = rng.choice(("k", "v", "x"))
        layer = self.arg(rng.randrange(LAYERS))
        self.do(c.place, layer, which, self.arg(position))
        self.do(c.read, layer, which, self.arg(position))
        self.do(c.sink_query_position, self.arg(2))
        if hasattr(c, "layer_geometry"):
            self.do(c.layer_geometry, layer)

    def wrong(self) -> None:
        rng, c = self.rng, self.cache
        k = self.vectors(1, 0, self.width, 0)
        q = self.vectors(1, 0, self.row, 0)
        kind = rng.randrange(11)
        if kind == 0:
            self.do(c.append, rng.choice(WRONG), k, k)
        elif kind > 8:
            self.cut()
        elif kind == 1:
            self.do(
                c.append,
                0,
                k,
                rng.choice((k[:-1], k + k[:1], [1.0], b"ab", k[:0], array("d", [1.0] * self.width))),
            )
        elif kind == 2:
            self.do(c.prefill, 0, k, k, rng.choice((*WRONG, 2)))
        elif kind == 3:
            self.do(c.attend, rng.choice((0, 1, 2, -1, None)), q, q, None, rng.choice((1, 2)))
        elif kind == 4:
            self.do(c.attend, 0, q, rng.choice((bytes(16), array("i", [1]), q[:5], q[:0], None)))
        elif kind == 5:
            self.do(c.append, 1, *(array("f", [float("inf")] * self.width) for _ in range(2)))
        elif kind == 6:
            self.do(c.rollback, rng.choice((*WRONG, c.length + 1)))
        elif kind == 7:
            self.commit(1)
        else:
            self.do(c.prefill, rng.choice((0, 1, 2, True)), k, k, 1)
            self.commit(1)

    def cut(self) -> None:
        """A prefill of which one row cannot be stored, and what may follow."""
        rng, c = self.rng, self.cache
        n = rng.randint(1, self.several)
        k, v = (self.vectors(n, role, self.width, 0) for role in (0, 1))
        if not self.shifts:
            rng.choice((k, v))[rng.randrange(n * self.width)] = rng.choice((float("nan"), 1e9))
        q = self.vectors(n, 2, self.row, 0)
        out = array(q.typecode, bytes(q.itemsize * len(q)))
        self.do(c.prefill, 0, k, v, n)
        for _ in range(rng.randint(0, 2)):
            self.do(c.attend, 0, q, out, None, n)
        if rng.random() < 0.5:
            self.do(c.prefill, 1, k, v, n)
            self.commit(n)
        if rng.random() < 0.3:
            self.do(c.prefill, 0, self.vectors(n, 0, self.width, 0), self.vectors(n, 1, self.width, 0), n)
            self.do(c.attend, 0, q, out, None, n)


def runs(sequence: Any) -> list[int]:
    """What the kernels were told to see: how many tokens, and the runs of their slots."""
    a = sequence.kernel_arguments()[1]
    assert a[P.N] == sum(a[P.RUN + 2 : P.RUN + 4 * a[P.RUNS] : 4]) + (
        a[P4.SEALED] if len(a) >= P4.A4_COUNT else 0
    )
    return [a[P.N], *a[P.RUN : P.RUN + 4 * a[P.RUNS]]]


def _plain(codec: str) -> Any:
    return kernels.of(codec).get("plain")


class Ring(Steps):
    shape: dict[str, Any] = {"window": 6, "sinks": 2}
    codec = "int8"

    def built(self) -> Any:
        return KVCache(
            Geometry(**self.base, **self.shape, codec=self.codec), kernels=_plain(self.codec), **self.shifts
        )

    def turn(self) -> None:
        if self.rng.random() < 0.03:
            self.do(self.cache.seek, self.arg(self.cache.length + self.rng.choice((-1, 0, 1, 50))))
        else:
            super().turn()


class RingOfOne(Ring):
    shape = {"window": 1, "sinks": 0}


class Whole(Ring):
    shape = {"capacity": 40}
    rollback = 30
    shifts = {"kv_shift": [(12, 11), (10, 12)], "q_shift": 12, "out_shift": 9}


class Half(Ring):
    shape = {"window": 5, "sinks": 3}
    codec = "int8-int4"


class Mixed(Steps):
    def built(self) -> Any:
        g = MixedGeometry(**self.base, codec=["int8", "float16"], window=6, sinks=2)
        return MixedCache(g, kernels={name: _plain(name) for name in g.types})


class Sealed(Steps):
    several = 19
    rollback = 20

    def built(self) -> Any:
        g = SealedGeometry(**self.base, **self.shape)
        dirty = bytearray(b"\xff" * g.bytes())
        return SealedCache(g, buffer=dirty, kernels=_plain("int4"), **self.shifts)

    shape: dict[str, Any] = {"window": 40, "sinks": 3}


class SealedWhole(Sealed):
    shape = {"capacity": 90}
    several = 30
    rollback = 60


class SealedShort(Sealed):
    shape = {"window": 9, "sinks": 1}


class Budget(Steps):
    policy = "window-lru"
    rollback = 2

    def built(self) -> Any:
        g = Geometry(**self.base, window=5, sinks=2)
        return BudgetCache(g, policy=self.policy, kernels=_plain("int8"), **self.shifts)

    def turn(self) -> None:
        if self.rng.random() < 0.04:
            ratio = self.rng.choice(
                (0.5, 1, 0.3, (2, 3), (1, 1), (3, 2), (0, 1), 0, 1.1, "x", (0.5, 1), -1, (1, 2, 3))
            )
            self.do(self.cache.compress, ratio, self.arg(self.rng.choice((0, 1, 3))))
        else:
            super().turn()


class BudgetOfUse(Budget):
    policy = "lru-peak"


class BudgetOfMass(Budget):
    policy = "heavy-hitters"
    shifts = {"kv_shift": 12, "q_shift": 11, "out_shift": 10}


SLICED = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 12, "group": 4}
SHARED = {"layers": 2, "heads": 2, "kv_heads": 2, "head_dim": 4, "group": 8}


class RingSliced(Ring):
    base = SLICED


class RingShared(Ring):
    base = SHARED
    codec = "int8-int4"


class SealedSliced(Sealed):
    base = SLICED
    shape = {"window": 33, "sinks": 2}


class SealedShared(Sealed):
    base = SHARED
    shape = {"window": 32, "sinks": 0}
    shifts = {"kv_shift": 12, "q_shift": 11, "out_shift": 10}


class BudgetSliced(Budget):
    base = SLICED
    policy = "lru-attention"


class BudgetOfDecay(Budget):
    base = SHARED
    policy = "lfu-decay"


class BudgetBlind(Budget):
    policy = "window"


class Paged(Life):
    """Requests: opened with and without shares, found prefixes, forks, pins."""

    shape: dict[str, Any] = {"capacity": 24}
    blocks = 12
    odd = 0.01

    def make(self) -> None:
        self.all = self.built()
        self.live: list[Any] = []
        self.gone: list[Any] = []
        self.pins: list[int] = []
        self.serial = 0

    def built(self) -> Any:
        return requests_of(self.blocks, block_tokens=4, max_requests=3, **self.shape)

    def state(self) -> str:
        of = self.all
        headers = [(of.header(r), r.visible(), r.pending(), r.check()) for r in self.live]
        kept = [list(of._ledger.state), list(of._ledger.gen), list(of._ledger.root), of._ledger.salts]
        return f"{of.stats()} {of.available_blocks()} {headers} {of.check()} {kept}"

    def prompt(self) -> list[int]:
        family = self.rng.randrange(2)
        n = self.rng.randint(1, 14)
        return [family * 100 + i if i < 9 else family * 100 + 50 + self.rng.randrange(2) for i in range(n)]

    def turn(self) -> None:
        rng, of = self.rng, self.all
        if rng.random() < 0.04:
            self.mended()
        kind = rng.choice(
            ("open", "open", "close", "pin", "unpin", "lookup", "fork", "reserve", "lock")
            + ("step",) * 10
            + ("rollback", "abort", "several", "cut", "moved", "look")
        )
        request = rng.choice(self.live) if self.live else None
        if self.gone and rng.random() < 0.02:
            request = rng.choice(self.gone)
        salt = rng.choice((b"", b"", b"", b"other", b"third"))
        if kind == "open" or request is None:
            tokens = self.prompt()
            share = rng.choice((0, 0, 8, 12))
            new = self.do(of.open, self.arg(len(self.gone)), self.arg(share), self.arg(tokens),
                          self.arg(rng.choice((None, None, 12, 24))), self.arg(rng.randrange(3)),
                          self.arg(rng.choice((None, 8))), salt)  # fmt: skip
            if new is not None:
                self.live.append(new)
                self.told.append(f"length {new.length}")
                for token in tokens[new.length :]:
                    self.step(new, [token])
        elif kind == "close":
            self.do(request.close)
            if request in self.live and request.closed():
                self.live.remove(request)
                self.gone.append(request)
        elif kind == "pin":
            pin = self.do(of.pin, request, self.arg(rng.choice((None, 4, 8, 9))))
            if pin is not None:
                self.pins.append(pin)
        elif kind == "unpin":
            pin = self.arg(rng.choice([*self.pins, 5, 1 << 20]))
            before = len(self.told)
            self.do(of.unpin, pin)
            if "!!" not in self.told[before]:
                self.pins.remove(pin)
        elif kind == "lookup":
            self.do(of.lookup, self.arg(self.prompt()), salt)
        elif kind == "fork":
            new = self.do(request.fork, self.arg(rng.choice((None, 9))), rng.choice((0, 0, 8)),
                          rng.choice((None, None, 8)), self.arg(None))  # fmt: skip
            if new is not None:
                self.live.append(new)
        elif kind == "reserve":
            self.do(request.reserve, self.arg(rng.choice((0, 4, 12, 24))))
        elif kind == "lock":
            self.do(rng.choice((request.lock, request.unlock, request.unlock)))
        elif kind == "rollback":
            self.do(request.rollback, self.arg(rng.randint(0, 6)))
        elif kind == "abort":
            self.do(request.abort)
        elif kind == "moved":
            self.do(of.moved)
        elif kind == "look":
            for ask in (of.header, of.pin):
                self.do(ask, rng.choice((request, None, "x")))
            self.do(request.place, self.arg(0), "k", rng.randint(0, 9))
            self.do(request.settings)
        elif kind == "several":
            self.step(request, [rng.randrange(200) for _ in range(rng.randint(2, 7))])
        else:
            self.step(request, [rng.randrange(3)], LAYERS if kind == "step" else rng.randint(0, 1))

    def mended(self) -> None:
        """As if a call had been cut short: all but the tables made anew, whatever stands there."""
        of, rng = self.all._ledger, self.rng
        b = of.blocks
        for words, most in (
            (b.ref, 3),
            (of.common, 3),
            (of.held, 9),
            (of.pinned, 5),
            (b.bucket, of.n),
            (b.children, 4),
            (b.chain, of.n),
            (b.nxt, of.n + 1),
            (b.prv, of.n + 1),
        ):
            for i in range(len(words)):
                if rng.random() < 0.5:
                    words[i] = rng.randint(0, most)
        for row in range(of.rows):
            if not of.open_rows[row]:
                for cell in range(row * of.geometry.pages, (row + 1) * of.geometry.pages):
                    of.table[cell] = of.undo[cell] = rng.randrange(of.n)
                of.share[row] = of.locked[row] = 1
        for i in (STATE.BOUND, STATE.COMMON, STATE.PINNED):
            of.state[i] = rng.randrange(9)
        for i in (META.TOP, META.FREE, META.REUSABLE, META.USED, META.ENTRIES):
            b.meta[i] = rng.randrange(of.n)
        of.state[STATE.BUSY] = 1
        self.do(of.mend)

    def step(self, request: Any, tokens: Sequence[int], layers: int = LAYERS) -> None:
        n = len(tokens)
        for layer in range(layers):
            first = self.do(lambda: request.length) or 0
            k, v, q = (
                array(
                    "f", [x for i, t in enumerate(tokens) for x in vector(t, first + i, layer, role, width)]
                )
                for role, width in ((0, WIDTH), (1, WIDTH), (2, HEADS * HEAD_DIM))
            )
            out = array("f", bytes(4 * n * HEADS * HEAD_DIM))
            if n == 1:
                self.do(request.append, layer, k, v)
            else:
                self.do(request.prefill, layer, k, v, n)
            self.do(request.attend, layer, q, out, None, n)
            self.told.append(_brief(out))
        if layers == LAYERS:
            ids: Any = list(tokens) if n > 1 or self.rng.random() < 0.3 else tokens[0]
            if self.rng.random() < 0.04:
                ids = self.rng.choice((None, -1, 65536, [1, 2, 3], "x", 1.5, [65536], bytes(n), 1 << 29))
            self.do(request.commit, ids)


class PagedWindow(Paged):
    shape = {"capacity": None, "window": 9, "sinks": 3}


class PagedWide(Paged):
    """Blocks of a pool that others use too, and has fewer; ids of 29 bits; vectors of 16 bits."""

    def built(self) -> Any:
        g = PagedGeometry(**SHAPE, window=7, sinks=0, block_tokens=4)
        arena = Arena(g.scratch_bytes + 10 * g.block_bytes)
        pool = FixedPool(arena, 9, g.block_bytes, tag=3)
        self.other = pool
        return Requests(
            g, 12, 3, arena=arena, pool=pool, kernels=_plain("int8"), wide_ids=True, identity=b"me"
        )

    def turn(self) -> None:
        if self.rng.random() < 0.03:
            held = getattr(self, "held", None)
            if held is None:
                self.held = self.do(self.other.alloc, 16)
            else:
                self.held = None
                self.do(self.other.free, held)
        super().turn()


# --- constructors


class Wide(Arena):
    """Hands out offsets in memory that is not there."""

    def __init__(self) -> None:
        Arena.__init__(self, 64)
        self.size = 1 << 31


NUMBERS = (-1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 1.5, True, None, "x")
ALIGNS = (-4, 0, 1, 2, 3, 4, 6, 8, 64, 1 << 16, 1 << 17, 1.5, True, None)
TAGS = (-1, 0, 7, 8, 1.5, True, None)
BYTES = (*NUMBERS, 10, 11, 12, 16, 100, (1 << 30) - 1, 1 << 30)
SHAPES: dict[str, Any] = {"window": 6, "sinks": 1}
# name -> (class, arguments, what each is in turn beside)
MADE: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, Sequence[Any]]]] = {
    "FixedPool": (
        FixedPool,
        {"arena": Wide, "n_blocks": 5, "block_bytes": 64, "tag": 3, "align": 4},
        {
            "arena": ("x",),
            "n_blocks": (*NUMBERS, (1 << 20) + 1),
            "block_bytes": BYTES,
            "align": ALIGNS,
            "tag": TAGS,
        },
    ),
    "BuddyPool": (
        BuddyPool,
        {"arena": Wide, "total_bytes": 1000, "min_block": 64, "max_align": None, "tag": 3},
        {
            "arena": ("x",),
            "total_bytes": (*NUMBERS, 63, 64, 65, 127, 4096, (64 << 20) + 64, 1 << 30),
            "min_block": (*ALIGNS, 512, 1024),
            "max_align": ALIGNS,
            "tag": TAGS,
        },
    ),
    "RegionPool": (
        RegionPool,
        {"arena": Wide, "total_bytes": 1000, "max_regions": 5, "tag": 3},
        {
            "arena": ("x",),
            "total_bytes": (*NUMBERS, 262143, 262144, 1 << 20, (1 << 30) - 1, 1 << 30),
            "max_regions": (*NUMBERS, 16, 17, 4095, 4096),
            "tag": TAGS,
        },
    ),
    "SlabPool": (
        SlabPool,
        {"arena": Wide, "slab_bytes": 256, "n_slabs": 5, "classes": (16, 64), "max_align": None, "tag": 3},
        {
            "arena": ("x",),
            "slab_bytes": (*BYTES, 44, 48, 52, 60, 64, 68, 1 << 26),
            "max_align": ALIGNS,
            "tag": TAGS,
            "n_slabs": (*NUMBERS, 65535, 1 << 22),
            "classes": (
                (),
                [16],
                (64, 16),
                (16, 16),
                (0, 16),
                (15,),
                (16, 1.5),
                (84,),
                (88,),
                (16, 256),
                (16, 260),
                tuple(range(4, 132, 4)),
                tuple(range(4, 136, 4)),
                "x",
                None,
                16,
            ),
        },
    ),
    "SlabPool of large objects": (
        SlabPool,
        {"arena": Wide, "slab_bytes": 3 << 26, "n_slabs": 1, "classes": (1 << 20, 1 << 25)},
        {"classes": ((1 << 20, (1 << 25) + 4), (1 << 25,), ((1 << 25) + 4,)), "n_slabs": (5, 6)},
    ),
    "SlabRegionPool": (
        SlabRegionPool,
        {"arena": Wide, "slab_bytes": 256, "n_slabs": 5, "classes": (16, 64), "max_regions": 3, "tag": 3},
        {"max_regions": (*NUMBERS, 1023, 1024), "classes": (tuple(range(4, 84, 4)),), "tag": TAGS},
    ),
    "SlabRegionPool of many classes": (
        SlabRegionPool,
        {
            "arena": Wide,
            "slab_bytes": 256,
            "n_slabs": 5,
            "classes": tuple(range(4, 132, 4)),
            "max_regions": 1023,
        },
        {},
    ),
    "Admission": (
        admission.Admission,
        {
            "total_blocks": 9,
            "block_tokens": 4,
            "tickets": 5,
            "levels": 3,
            "limit_blocks": None,
            "reserve": "maximum",
        },
        {
            "total_blocks": (*NUMBERS, 1 << 28, (1 << 28) + 1),
            "block_tokens": (*NUMBERS, 1 << 16, (1 << 16) + 1),
            "tickets": (*NUMBERS, 65001),
            "levels": NUMBERS,
            "limit_blocks": (*NUMBERS, 10),
            "reserve": ("nothing", "x", None, 3),
        },
    ),
    "LengthPredictor": (
        LengthPredictor,
        {"tasks": 3, "per_mille": 900, "least": 3, "memory": 9},
        {
            "tasks": (*NUMBERS, 1024, 1025),
            "per_mille": (*NUMBERS, 1000, 1001),
            "least": NUMBERS,
            "memory": (*NUMBERS, 65535, 65536),
        },
    ),
    "Arena": (
        Arena,
        {"size": 64, "buffer": None},
        {
            "size": (*NUMBERS, 1 << 30),
            "buffer": (
                bytearray(63),
                bytearray(64),
                bytes(64),
                memoryview(bytearray(65)),
                memoryview(array("i", [0] * 64)),
                memoryview(array("b", [0] * 64)),
                b"",
                bytearray(),
                "x",
                5,
            ),
        },
    ),
    **{
        name: (
            lambda name=name, **o: eviction.make(name, **o),
            {"n": 5},
            {"n": (*NUMBERS, (1 << 24) + 1), **dict.fromkeys(options, (*NUMBERS, (1 << 24) + 1))},
        )
        for name, options in (
            ("fifo", ()),
            ("lru", ("x",)),
            ("lfu", ("most_count",)),
            ("sieve", ()),
            ("hybrid", ("window", "most_count")),
            ("s3fifo", ("small", "ghosts")),
        )
    },
    "policy of no name": (eviction.make, {"name": "x", "n": 4}, {}),
    "PagedGeometry": (
        PagedGeometry,
        {**SHAPE, **SHAPES, "block_tokens": 4},
        {
            "block_tokens": (*NUMBERS, 4096, 4097),
            "codec": ("int4", "sparse", "x"),
            "window": (*NUMBERS, 20),
            "sinks": NUMBERS,
            "layers": NUMBERS,
            "group": NUMBERS,
        },
    ),
    "SealedGeometry": (
        SealedGeometry,
        {**SHAPE, **SHAPES},
        {
            "codec": ("int8", "x", None),
            "window": (*NUMBERS, 15, 16, 17, 31, 32, 33, 80),
            "sinks": NUMBERS,
            "group": (*NUMBERS, 32, 33),
            "group_limit": (*NUMBERS, 32, 33),
            "head_dim": (4, 5, 12, 16, 33, 64),
            "kv_heads": (2,),
            "layers": (1, 3),
        },
    ),
    "SealedGeometry, whole": (
        SealedGeometry,
        {**SHAPE, "capacity": 40},
        {"capacity": (*NUMBERS, 15, 16, 17, 31, 32, 33, 80)},
    ),
    "MixedGeometry": (
        MixedGeometry,
        {**SHAPE, **SHAPES, "codec": ["int8", "sparse"]},
        {
            "codec": (
                [],
                ["int8"],
                ["int8", "x"],
                ["int4", "int8"],
                ["float16", "int8-int4"],
                "int8",
                None,
                [1, "int8"],
                [[], "int8"],
                ("float32", "float32"),
                ["float16", "float16"],
            ),
            "layers": (*NUMBERS, 1025),
            "group": NUMBERS,
            "group_limit": NUMBERS,
            "capacity": (9,),
            "window": NUMBERS,
        },
    ),
    "MixedGeometry, whole": (MixedGeometry, {**SHAPE, "capacity": 9, "codec": ["int8", "float16"]}, {}),
    "Requests": (
        Requests,
        {
            "geometry": lambda: PagedGeometry(**SHAPE, **SHAPES, block_tokens=4),
            "blocks": 6,
            "kernels": lambda: _plain("int8"),
        },
        {
            "geometry": (None, Geometry(**SHAPE, **SHAPES)),
            "blocks": (*NUMBERS, (1 << 20) + 1),
            "max_requests": (*NUMBERS, 1000, 1001),
            "max_pins": (*NUMBERS, 1019, 1020),
            "pin_blocks": NUMBERS,
            "identity": (b"x", bytearray(b"y"), "x", None, 5),
            "wide_ids": (0, 1, True),
            "kernels": ("x", 5),
            "buffer": (bytearray(10), "x"),
            "arena": (Arena(10), "x"),
            "pool": ("x",),
            "kv_shift": (3, (1, 2), "x"),
            "q_shift": (3,),
            "out_shift": (3,),
        },
    ),
    "BudgetCache": (
        BudgetCache,
        {"geometry": lambda: Geometry(**SHAPE, **SHAPES), "kernels": lambda: _plain("int8"), "policy": "lfu"},
        {
            "geometry": (None, SealedGeometry(**SHAPE, **SHAPES), Geometry(**SHAPE, capacity=9), 5),
            "policy": (
                "window",
                "lru-attention",
                "lru-peak",
                "window-lru",
                "lfu-decay",
                "heavy-hitters",
                "x",
                None,
            ),
            "recent": NUMBERS,
            "kernels": ("x",),
            "buffer": (bytearray(10),),
        },
    ),
    "SealedCache": (
        SealedCache,
        {"geometry": lambda: SealedGeometry(**SHAPE, **SHAPES), "kernels": lambda: _plain("int4")},
        {"geometry": (None, Geometry(**SHAPE, **SHAPES)), "kernels": ("x",), "buffer": (bytearray(10),)},
    ),
    "MixedCache": (
        MixedCache,
        {
            "geometry": lambda: MixedGeometry(**SHAPE, **SHAPES, codec=["int8", "sparse"]),
            "kernels": lambda: {n: _plain(n) for n in ("int8", "sparse")},
        },
        {
            "geometry": (None, Geometry(**SHAPE, **SHAPES)),
            "kernels": ("x", {"x": 1}, {"int8": 5}),
            "buffer": (bytearray(10),),
        },
    ),
}


class Making(Life):
    """Every constructor with each argument in turn what it may and may not be."""

    def make(self) -> None:
        admission._serial = 3
        self.cases = []
        for name, (made, right, others) in MADE.items():
            self.cases.append((name, made, right))
            for argument, values in others.items():
                self.cases += [(name, made, right | {argument: value}) for value in values]
        self.cases.reverse()
        self.one: Any = None

    def turn(self) -> None:
        name, made, given = self.cases.pop()
        # An arena, a geometry and kernels anew for each.
        given = {k: v() if callable(v) and not isinstance(v, KernelSet) else v for k, v in given.items()}
        shown = {k: _brief(v) for k, v in given.items()}
        try:
            self.one = made(**given)
        except (KVError, TypeError) as error:
            self.one = None
            self.told.append(
                f"{name} {shown} !! {type(error).__name__}: {error if isinstance(error, KVError) else ''}"
            )

    def state(self) -> str:
        if self.one is None:
            return ""
        said = [public(self.one)]
        for name in (
            "check",
            "memory_bytes",
            "metadata_bytes",
            "bytes",
            "token_bytes",
            "block_bytes",
            "__repr__",
        ):
            ask = getattr(self.one, name, None)
            if callable(ask) and (name != "__repr__" or type(self.one).__name__.endswith("Geometry")):
                said.append(ask())
        if isinstance(self.one, Requests):
            said.append([self.one.stats(), self.one._ledger.root_hash])
        if isinstance(self.one, PagedGeometry):
            said.append([(self.one.blocks_of(n), self.one.entry(n), self.one.slot(n)) for n in range(12)])
        if isinstance(self.one, (SealedGeometry, MixedGeometry)):
            said.append([self.one.kv_bytes(n) for n in range(0, 90, 7)])
        return f"{said}"


CASES = sum(1 + sum(map(len, others.values())) for _, _, others in MADE.values())


# name -> (class, calls)
LIVES: dict[str, tuple[type[Life], int]] = {
    "constructors": (Making, CASES),
    "fixed": (Fixed, 1500),
    "slab": (Slab, 1500),
    "slab and region": (SlabRegion, 1500),
    "buddy": (Buddy, 1500),
    "region": (Region, 1500),
    "region, many locked": (RegionHeld, 1500),
    "queue": (Queue, 1500),
    "queue, nothing reserved": (QueueOfNothing, 1500),
    "queue, predicted": (QueueOfPredictions, 1500),
    "predictor": (Predictor, 1500),
    "fifo": (_order("fifo"), 1500),
    "lru": (_order("lru"), 1500),
    "lfu": (_order("lfu", most_count=4), 1500),
    "hybrid": (_order("hybrid", window=2), 1500),
    "hybrid without window": (_order("hybrid", window=0, most_count=2), 1000),
    "sieve": (_order("sieve"), 1500),
    "s3fifo": (_order("s3fifo", small=2, ghosts=3), 1500),
    "ring": (Ring, 150),
    "ring of one": (RingOfOne, 100),
    "whole": (Whole, 150),
    "int8-int4": (Half, 100),
    "mixed": (Mixed, 120),
    "sealed": (Sealed, 110),
    "sealed, whole": (SealedWhole, 90),
    "sealed, short": (SealedShort, 80),
    "window-lru": (Budget, 150),
    "lru-peak": (BudgetOfUse, 150),
    "heavy-hitters": (BudgetOfMass, 150),
    "ring, sliced": (RingSliced, 60),
    "ring, shared scales": (RingShared, 80),
    "sealed, sliced": (SealedSliced, 40),
    "sealed, shared scales": (SealedShared, 50),
    "lru-attention": (BudgetSliced, 60),
    "lfu-decay": (BudgetOfDecay, 80),
    "window": (BudgetBlind, 80),
    "gate": (Gates, 400),
    "requests": (Paged, 300),
    "requests with a window": (PagedWindow, 300),
    "requests of a shared pool": (PagedWide, 300),
}
EACH = 20  # lines a checksum
KNOWN = Path(__file__).parent / "goldens" / "lives.txt"


def told(name: str) -> list[str]:
    made, count = LIVES[name]
    return list(made(1).lines(count))


def summed(name: str, found: Sequence[str]) -> list[str]:
    """What the file of the known ones says of a life: a checksum for every EACH lines."""
    return [
        f"{name} {at}: {zlib.crc32(chr(10).join(found[at : at + EACH]).encode()):08x}"
        for at in range(0, len(found), EACH)
    ]


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        KNOWN.write_text("".join(f"{line}\n" for name in LIVES for line in summed(name, told(name))))
    else:
        print(*(f"{at}: {line}" for at, line in enumerate(told(sys.argv[1]))), sep="\n")
