"""Long lives of every structure: calls drawn by chance, right and wrong ones, told line by line.

A line is a call and what came of it: its result, or the refusal with its text and numbers; then what the
structure says of itself. Nothing else than public methods is asked.
"""

from __future__ import annotations

import random
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from paged_cases import HEAD_DIM, HEADS, LAYERS, SHAPE, WIDTH, requests_of, vector

from mpy_kv import Geometry, KVCache, eviction, kernels
from mpy_kv.admission import admission
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.arena import Arena
from mpy_kv.budget import BudgetCache
from mpy_kv.errors import KVError, NoRoom
from mpy_kv.mixed import MixedCache, MixedGeometry
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool
from mpy_kv.sealed import SealedCache, SealedGeometry

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

    def lines(self, count: int) -> Iterator[str]:
        for _ in range(count):
            self.turn()
            yield "; ".join(self.told) + " | " + self.state()
            self.told.clear()

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
        return self.arg(self.rng.choice(self.dead if dead else self.live))

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


class SlabRegion(Pool):
    def built(self) -> Any:
        self.regions: list[Any] = [None]
        self.closed: list[Any] = []
        return SlabRegionPool(Arena(10 * 256), 256, 10, (16, 64, 120), 3, tag=3)

    def region(self) -> Any:
        if self.closed and self.rng.random() < 0.05:
            return self.rng.choice(self.closed)
        return self.arg(self.rng.choice(self.regions))

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
        return self.arg(self.rng.choice(self.dead[-6:] if dead else self.live))

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

    most = 200  # tokens
    shifts: dict[str, Any] = {}
    rollback = 5
    several = 3
    odd = 0.01

    def make(self) -> None:
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
        return f"{c.stats()} {c.visible()} {c.sink_query_position(1)} {c.check()}"

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
            k, v = (self.vectors(n, role, WIDTH, layer) for role in (0, 1))
            q, qs = (self.vectors(n, role, HEADS * HEAD_DIM, layer) for role in (2, 3))
            out = array("h" if self.shifts else "f", bytes((2 if self.shifts else 4) * n * HEADS * HEAD_DIM))
            if n == 1 and self.rng.random() < 0.9:
                self.do(c.append, layer, k, v)
                n = 1
            else:
                self.do(c.prefill, layer, k, v, n)
            if attended or layer:
                self.do(c.attend, layer, q, out, qs if sinks else None, n)
                self.told.append(_brief(out))
        if layers == LAYERS:
            self.commit(n)

    def commit(self, n: int) -> None:
        self.do(self.cache.commit)

    def looked(self) -> None:
        rng, c = self.rng, self.cache
        self.do(c.settings)
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
        k = self.vectors(1, 0, WIDTH, 0)
        q = self.vectors(1, 0, WIDTH * 2, 0)
        kind = rng.randrange(9)
        if kind == 0:
            self.do(c.append, rng.choice(WRONG), k, k)
        elif kind == 1:
            self.do(c.append, 0, k, rng.choice((k[:-1], k + k[:1], [1.0], b"ab", array("d", [1.0] * WIDTH))))
        elif kind == 2:
            self.do(c.prefill, 0, k, k, rng.choice((*WRONG, 2)))
        elif kind == 3:
            self.do(c.attend, rng.choice((0, 1, 2, -1, None)), q, q, None, rng.choice((1, 2)))
        elif kind == 4:
            self.do(c.attend, 0, q, rng.choice((bytes(16), array("i", [1]), q[:5], None)))
        elif kind == 5:
            self.do(c.append, 1, *(array("f", [float("inf")] * WIDTH) for _ in range(2)))
        elif kind == 6:
            self.do(c.rollback, rng.choice((*WRONG, c.length + 1)))
        elif kind == 7:
            self.commit(1)
        else:
            self.do(c.prefill, rng.choice((0, 1, 2, True)), k, k, 1)
            self.commit(1)


def _plain(codec: str) -> Any:
    return kernels.of(codec).get("plain")


class Ring(Steps):
    shape: dict[str, Any] = {"window": 6, "sinks": 2}
    codec = "int8"

    def built(self) -> Any:
        return KVCache(
            Geometry(**SHAPE, **self.shape, codec=self.codec), kernels=_plain(self.codec), **self.shifts
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
    shifts = {"kv_shift": [(12, 11), (10, 12)], "q_shift": 12, "out_shift": 9}


class Half(Ring):
    shape = {"window": 5, "sinks": 3}
    codec = "int8-int4"


class Mixed(Steps):
    def built(self) -> Any:
        g = MixedGeometry(**SHAPE, codec=["int8", "float16"], window=6, sinks=2)
        return MixedCache(g, kernels={name: _plain(name) for name in g.types})


class Sealed(Steps):
    several = 19
    rollback = 20

    def built(self) -> Any:
        g = SealedGeometry(**SHAPE, **self.shape)
        dirty = bytearray(b"\xff" * g.bytes())
        return SealedCache(g, buffer=dirty, kernels=_plain("int4"), **self.shifts)

    shape: dict[str, Any] = {"window": 40, "sinks": 3}


class SealedWhole(Sealed):
    shape = {"capacity": 90}
    several = 30


class SealedShort(Sealed):
    shape = {"window": 9, "sinks": 1}


class Budget(Steps):
    policy = "window-lru"
    rollback = 2

    def built(self) -> Any:
        return BudgetCache(
            Geometry(**SHAPE, window=5, sinks=2), policy=self.policy, kernels=_plain("int8"), **self.shifts
        )

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
        return f"{of.stats()} {of.available_blocks()} {headers} {of.check()}"

    def prompt(self) -> list[int]:
        family = self.rng.randrange(2)
        n = self.rng.randint(1, 14)
        return [family * 100 + i if i < 9 else family * 100 + 50 + self.rng.randrange(2) for i in range(n)]

    def turn(self) -> None:
        rng, of = self.rng, self.all
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


# name -> (class, calls)
LIVES: dict[str, tuple[type[Life], int]] = {
    "fixed": (Fixed, 1500),
    "slab": (Slab, 1500),
    "slab and region": (SlabRegion, 1500),
    "buddy": (Buddy, 1500),
    "region": (Region, 1500),
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
