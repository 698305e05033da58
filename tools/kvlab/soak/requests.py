"""Soaks requests that share one memory: open, step, fork, pin, roll back, close, at random.

What a token's keys and values are follows from its salt and all ids up to it, as in a model: so blocks that
the prefix index lends to another request must hold just what that one would have stored. After each operation
every visible token of every open request is compared, byte for byte, with what a cache of its own stores.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvlab.soak.pools import Errors
from kvlab.soak.subject import Subject
from mpy_kv.arena import Arena
from mpy_kv.cache import KVCache
from mpy_kv.errors import BadArgument, BadHandle, CacheFull, KVError, Locked, NoRoom, PoolFull, StepError
from mpy_kv.geometry import Geometry
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.pools.slab import SlabPool

LAYERS, HEADS, HEAD_DIM = 2, 2, 8
BLOCKS, BLOCK_TOKENS = 22, 4
MAX_REQUESTS, MAX_PINS = 5, 3
SHIFT = 8

SALTS = (b"", b"", b"", b"another user's")

# Beyond the ids that prompts are made of: marks a token whose id commit() was not told.
_UNTOLD = 1 << 20

# Stored tokens remembered by their chain; of more the memory is cleared, and they are computed anew.
_MOST_KNOWN = 20_000

Stored = tuple[bytes, ...]


@dataclass
class Open:
    """An open request as its owner sees it. `chain`: a digest a token, of all that led to it."""

    request: Any
    salt: bytes
    ids: list[int] = field(default_factory=list)
    chain: list[bytes] = field(default_factory=list)
    locked: bool = False
    told: int = 0  # tokens at the beginning whose ids the cache knows

    def grow(self, ids: Sequence[int]) -> list[bytes]:
        """Digests of tokens that follow."""
        last = self.chain[-1] if self.chain else self.salt
        new = []
        for token in ids:
            last = digest(last, token)
            new.append(last)
        return new


def digest(before: bytes, token: int) -> bytes:
    """64 bytes: the K and V rows of both layers too."""
    return hashlib.blake2b(before + token.to_bytes(4, "little")).digest()


def rows(chain: Sequence[bytes], layer: int) -> tuple[array[int], array[int]]:
    """K and V of consecutive tokens for a layer, as int16."""
    width = 2 * HEAD_DIM
    parts = [array("h"), array("h")]
    for which, part in enumerate(parts):
        at = (2 * layer + which) * width
        for link in chain:
            part.frombytes(link[at : at + width])
    return parts[0], parts[1]


class Ring:
    """What a cache of one sequence stores for a token."""

    def __init__(self) -> None:
        geometry = Geometry(LAYERS, HEADS, 1, HEAD_DIM, window=1, sinks=0)
        self.cache = KVCache(geometry, kv_shift=SHIFT, q_shift=SHIFT, out_shift=SHIFT)
        self.known: dict[bytes, Stored] = {}

    def stored(self, link: bytes) -> Stored:
        """Codes and scale, of each layer K and V."""
        found = self.known.get(link)
        if found is None:
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            for layer in range(LAYERS):
                self.cache.append(layer, *rows([link], layer))
            self.cache.commit()
            found = self.known[link] = stored(self.cache, 0)
            self.cache.rollback(1)
        return found


def stored(cache: Any, position: int) -> Stored:
    found = []
    for layer in range(LAYERS):
        for which in "kv":
            codes, scale = cache.place(layer, which, position)
            found.append(bytes(cache.buffer[codes : codes + HEAD_DIM] + cache.buffer[scale : scale + 2]))
    return tuple(found)


class RequestSubject(Subject):
    """`kind`: of PagedGeometry, what a request sees (window and sinks, or capacity).

    memory(geometry): arguments of Requests for memory that it shares, if it has none of its own.
    """

    def __init__(
        self, seed: int, memory: Callable[[Any], dict[str, Any]] = lambda geometry: {}, **kind: int
    ) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        geometry = PagedGeometry(LAYERS, HEADS, 1, HEAD_DIM, block_tokens=BLOCK_TOKENS, **kind)
        self.requests = Requests(
            *(geometry, BLOCKS, MAX_REQUESTS),
            kv_shift=SHIFT,
            q_shift=SHIFT,
            out_shift=SHIFT,
            max_pins=MAX_PINS,
            **memory(geometry),
        )
        self.whole = "capacity" in kind
        self.ring = Ring()
        self.open: list[Open] = []
        self.closed: list[Any] = []
        # A pin, the salt and the ids that it keeps.
        self.pins: list[tuple[int, bytes, list[int]]] = []
        self.untold = _UNTOLD
        self.out = array("h", bytes(2 * HEADS * HEAD_DIM))
        self.families = [[self.rng.randrange(3) for _ in range(24)] for _ in range(3)]
        self.operations: dict[str, tuple[int, Callable[[], None]]] = {
            "open": (10, self.open_one),
            "step": (50, self.step_one),
            "prefill": (12, self.prefill),
            "abort": (5, self.abort),
            "rollback": (5, self.rollback),
            "fork": (4, self.fork),
            "pin": (3, self.pin),
            "unpin": (3, self.unpin),
            "lock": (2, self.lock),
            "close": (7, self.close),
            "bad call": (6, self.bad_call),
        }

    def step(self) -> str:
        names = list(self.operations)
        name = self.rng.choices(names, [weight for weight, _ in self.operations.values()])[0]
        self.operations[name][1]()
        return name

    def pick(self) -> Open | None:
        return self.rng.choice(self.open) if self.open else None

    def refused(self, errors: Errors, call: Callable[[], Any]) -> None:
        """The call must raise one of `errors`, in one line, and leave all counts; inspect() sees the rest."""
        before = self.requests.stats()
        try:
            got = call()
        except errors as error:
            self.unchanged(before, error)
            return
        self.expect(False, f"not refused, but gave {got!r}")

    def unchanged(self, before: dict[str, Any], error: KVError) -> None:
        after = self.requests.stats()
        changed = [key for key in before if before[key] != after[key]]
        self.expect(not changed, f"refused, yet {', '.join(changed)} changed: {error}")
        text = str(error)
        self.expect(bool(text) and "\n" not in text, f"not one line: {text!r}")

    # --- operations ------------------------------------------------------------------------------

    def open_one(self) -> None:
        rng = self.rng
        prompt = list(rng.choice(self.families)[: rng.randrange(1, 20)])
        if rng.random() < 0.3:
            prompt[-1] = rng.randrange(3)
        salt = rng.choice(SALTS)
        before = self.requests.stats()
        there = self.requests.lookup(prompt, salt)
        try:
            request = self.requests.open(
                task=rng.randrange(4),
                reserve_tokens=rng.choice((0, 0, 0, 5, 12)),
                tokens=prompt,
                limit_tokens=rng.choice((None, None, 20)),
                priority=rng.randrange(256),
                pin_tokens=rng.choice((None, 8, 16)),
                salt=salt,
            )
        except NoRoom as error:
            self.unchanged(before, error)
            return
        found = request.length
        whole = found % BLOCK_TOKENS == 0 and found < len(prompt)
        self.expect(whole, f"{found} of {len(prompt)} tokens reused")
        self.expect(found <= there, f"{found} tokens reused where lookup() said {there}")
        new = Open(request, salt)
        new.ids, new.chain, new.told = prompt[:found], new.grow(prompt[:found]), found
        self.open.append(new)

    def put(self, one: Open, ids: list[int], tell: bool) -> None:
        """A step of these tokens; with more than one as prefill."""
        count, request = len(ids), one.request
        header, before = self.requests.header(request), self.requests.stats()
        links = one.grow(ids)
        try:
            for layer in range(LAYERS):
                k, v = rows(links, layer)
                if count == 1:
                    request.append(layer, k, v)
                else:
                    request.prefill(layer, k, v, count)
                if count == 1 and self.rng.random() < 0.2:
                    request.attend(layer, self.out, self.out[:])
        except CacheFull as error:
            self.unchanged(before, error)
            self.expect(self.whole, "a window was full")
            return
        except NoRoom as error:
            self.unchanged(before, error)
            mine = header["references"] < min(header["share"], header["size"])
            self.expect(count > 1 or not mine or self.starved(), "refused a block of its own share")
            return
        if tell:
            request.commit(ids[0] if count == 1 and self.rng.random() < 0.5 else ids)
            if one.told == len(one.ids):
                one.told += count
        else:
            request.commit()
        one.ids += ids
        one.chain += links

    def starved(self) -> bool:
        """Whether the memory that others use too may be all used up."""
        return False

    def next_ids(self, count: int) -> tuple[list[int], bool]:
        if self.rng.random() < 0.05:
            self.untold += count
            return list(range(self.untold - count, self.untold)), False
        return [self.rng.randrange(3) for _ in range(count)], True

    def step_one(self) -> None:
        one = self.pick()
        if one is None:
            return
        # Along its family mostly, so that others find what it stores.
        ids, tell = self.next_ids(1)
        at = len(one.ids)
        family = next((f for f in self.families if f[:at] == one.ids and len(f) > at), None)
        if tell and family is not None and self.rng.random() < 0.8:
            ids = [family[at]]
        self.put(one, ids, tell)

    def prefill(self) -> None:
        one = self.pick()
        if one is not None:
            self.put(one, *self.next_ids(self.rng.randrange(2, 7)))

    def abort(self) -> None:
        """A step begun and given up: by abort, by a new step, or left for whatever comes next."""
        one = self.pick()
        if one is None:
            return
        link = one.grow([self.rng.randrange(3)])
        before = self.requests.stats()
        try:
            one.request.append(0, *rows(link, 0))
        except NoRoom as error:
            self.unchanged(before, error)
            return
        one.request.abort()
        self.expect(one.request.length == len(one.ids), "abort changed the length")
        # With a share, what a shared block is replaced with may be had for the reference given up; it stays.
        share = self.requests.header(one.request)["share"]
        after = self.requests.stats()["referenced_blocks"]
        self.expect(after <= before["referenced_blocks"] + bool(share), "abort left a block behind")

    def rollback(self) -> None:
        one = self.pick()
        if one is None:
            return
        count = self.rng.randrange(0, min(len(one.ids), 9) + 1)
        one.request.rollback(count)
        if count:
            del one.ids[-count:], one.chain[-count:]
            one.told = min(one.told, len(one.ids))

    def fork(self) -> None:
        one = self.pick()
        if one is None:
            return
        before = self.requests.stats()
        try:
            child = one.request.fork(reserve_tokens=self.rng.choice((0, 0, 6)))
        except (NoRoom, BadArgument) as error:
            self.unchanged(before, error)
            return
        self.open.append(Open(child, one.salt, list(one.ids), list(one.chain), told=one.told))

    def pin(self) -> None:
        one = self.pick()
        if one is None:
            return
        tokens = self.rng.choice((None, 4, 8, len(one.ids) + 1))
        before = self.requests.stats()
        try:
            pin = self.requests.pin(one.request, tokens)
        except (NoRoom, BadArgument) as error:
            self.unchanged(before, error)
            return
        kept = (len(one.ids) if tokens is None else tokens) // BLOCK_TOKENS * BLOCK_TOKENS
        self.expect(0 < kept <= one.told, f"{kept} tokens pinned of {one.told} with ids")
        self.pins.append((pin, one.salt, one.ids[:kept]))

    def unpin(self) -> None:
        if self.pins:
            pin, _, _ = self.pins.pop(self.rng.randrange(len(self.pins)))
            self.requests.unpin(pin)
            self.refused(BadHandle, lambda: self.requests.unpin(pin))

    def lock(self) -> None:
        one = self.pick()
        if one is not None:
            one.locked = not one.locked
            (one.request.lock if one.locked else one.request.unlock)()

    def close(self) -> None:
        one = self.pick()
        if one is None:
            return
        if one.locked:
            self.refused(Locked, one.request.close)
            one.request.unlock()
        one.request.close()
        self.open.remove(one)
        self.closed = [*self.closed[-4:], one.request]
        self.refused(BadHandle, one.request.close)

    def bad_call(self) -> None:
        rng = self.rng
        k, v = rows([bytes(64)], 0)
        calls: list[tuple[Any, Callable[[], Any]]] = [
            (BadHandle, lambda: self.requests.unpin(rng.choice((-1, True, None, "4", 1 << 28)))),
            (BadArgument, lambda: self.requests.open(task=-1)),
            (BadArgument, lambda: self.requests.open(tokens=[1, -1])),
            (BadArgument, lambda: self.requests.open(reserve_tokens=1.5)),
            (BadArgument, lambda: self.requests.open(limit_tokens=0)),
            (BadArgument, lambda: self.requests.open(salt="text")),
        ]
        if self.whole:
            more = BLOCKS * BLOCK_TOKENS + 1
            calls.append((BadArgument, lambda: self.requests.open(reserve_tokens=more)))
        one = self.pick()
        if one is not None:
            request = one.request
            calls += [
                (StepError, request.commit),
                (BadArgument, lambda: request.rollback(len(one.ids) + 1)),
                (BadArgument, lambda: request.rollback(-1)),
                (BadArgument, lambda: request.append(LAYERS, k, v)),
                (BadArgument, lambda: request.append(0, k[:3], v)),
                (BadArgument, lambda: self.requests.pin(request, 0)),
            ]
        if self.closed:
            gone = rng.choice(self.closed)
            calls += [
                (BadHandle, lambda: gone.append(0, k, v)),
                (BadHandle, lambda: gone.rollback(0)),
                (BadHandle, gone.fork),
                (BadHandle, lambda: self.requests.pin(gone)),
            ]
        self.refused(*rng.choice(calls))

    # --- promises --------------------------------------------------------------------------------

    def inspect(self) -> None:
        requests = self.requests
        broken = requests.check()
        self.expect(broken == 0, f"check() finds {broken} broken invariants")
        stats = requests.stats()
        self.expect(
            stats["free_blocks"] + stats["referenced_blocks"] + stats["evictable_blocks"]
            == stats["total_blocks"]
            == BLOCKS,
            "free + referenced + evictable is not the total",
        )
        self.expect(
            min(value for value in stats.values() if isinstance(value, int)) >= 0, "a count is below zero"
        )
        if not self.open and not self.pins:
            self.expect(stats["referenced_blocks"] == 0, "nobody is there, yet blocks are referenced")
        for one in self.open:
            self.inspect_request(one)
        for _, salt, ids in self.pins:
            there = requests.lookup([*ids, 0], salt)
            self.expect(there >= len(ids), f"{there} of {len(ids)} pinned tokens are there")

    def inspect_request(self, one: Open) -> None:
        request = one.request
        self.expect(request.length == len(one.ids), f"length {request.length} after {len(one.ids)} tokens")
        visible = request.visible()
        if self.whole:
            self.expect(visible == list(range(len(one.ids))), "a token is missing")
        for position in visible:
            self.expect(
                stored(request, position) == self.ring.stored(one.chain[position]),
                f"bytes of token {position} of a request changed",
            )


class TenantSubject(RequestSubject):
    """Requests whose blocks come from a pool that somebody else allocates from as well."""

    def __init__(self, seed: int, **kind: int) -> None:
        super().__init__(seed, self.share, **kind)
        self.others: dict[int, bytes] = {}
        self.operations["take from the pool"] = (6, self.take)
        self.operations["give to the pool"] = (6, self.give)

    def share(self, geometry: PagedGeometry) -> dict[str, Any]:
        size = (BLOCKS - 4) * geometry.block_bytes
        arena = Arena(geometry.scratch_bytes + size + 64)
        self.pool = SlabPool(arena, geometry.block_bytes, BLOCKS - 4, (32, geometry.block_bytes), max_align=4)
        return {"arena": arena, "pool": self.pool}

    def starved(self) -> bool:
        return bool(self.pool.largest_free_bytes() < self.requests.geometry.block_bytes)

    def take(self) -> None:
        try:
            handle = self.pool.alloc(self.rng.choice((20, 32, 100)))
        except PoolFull:
            return
        data = self.others[handle] = self.rng.randbytes(self.pool.size(handle))
        at = self.pool.offset(handle)
        self.requests.buffer[at : at + len(data)] = data

    def give(self) -> None:
        if self.others:
            handle = self.rng.choice(list(self.others))
            self.pool.free(handle)
            del self.others[handle]

    def inspect(self) -> None:
        super().inspect()
        broken = self.pool.check()
        self.expect(broken == 0, f"the pool's check() finds {broken} broken invariants")
        for handle, data in self.others.items():
            at = self.pool.offset(handle)
            self.expect(self.requests.buffer[at : at + len(data)] == data, "bytes of somebody else changed")
        blocks = self.requests._ledger.blocks
        used = self.pool.stats()["used_blocks"] - len(self.others)
        held = sum(handle >= 0 for handle in blocks.handle)
        self.expect(used == held, f"{used} blocks of the pool are the requests', who have {held}")
