"""BudgetCache: who is seen, that the others are gone exactly, what is refused, what it costs in memory."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Iterable
from typing import Any

import budget_job
import numpy as np
import pytest
from kv_reference import attention, quantise_query
from test_attention import LIMIT

from kvlab.element_types import NAMES, SEALED
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import BadArgument, CacheFull, StepError
from mpy_kv.eviction import tokens
from mpy_kv.eviction.tokens import params as T
from mpy_kv.int4_blocks import SealedGeometry
from mpy_kv.kernels.kernel_registry import KernelSet
from mpy_kv.paged import PagedGeometry
from mpy_kv.token_eviction import BudgetCache

SHAPE: dict[str, Any] = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 8}
WIDTH, Q_ROW = 16, 32
CODECS = [name for name in NAMES if name != SEALED]


def vector(tag: int, layer: int, part: int, count: int) -> array:
    return array("f", [x / 256 for x in budget_job.noise(count, tag * 64 + layer * 4 + part)])


class Fed:
    """A cache whose token at each position is known by a tag."""

    shape = SHAPE

    def __init__(self, policy: str = "lru-peak", window: int = 6, sinks: int = 0, **options: Any) -> None:
        codec = options.pop("codec", "int8")
        g = Geometry(**self.shape, window=window, sinks=sinks, codec=codec)
        made = kernels.of(codec).get("plain")
        self.cache = BudgetCache(g, kernels=made, policy=policy, **options)
        self.width, self.q_row = g.width, g.heads * g.head_dim
        self.tags: list[int] = []
        self.next = 1

    def step(self, attended: bool = True) -> list[list[float]]:
        """One token; a row of results for each layer."""
        tag, outs = self.next, []
        for layer in range(self.shape["layers"]):
            self.cache.append(layer, vector(tag, layer, 0, self.width), vector(tag, layer, 1, self.width))
            if attended:
                out = array("f", [0] * self.q_row)
                queries = vector(tag, layer, 2, self.q_row), vector(tag, layer, 3, self.q_row)
                self.cache.attend(layer, queries[0], out, queries[1])
                outs.append(out.tolist())
        self.cache.commit()
        self.tags.append(tag)
        self.next += 1
        return outs

    def prefill(self, n: int) -> None:
        for layer in range(self.shape["layers"]):
            k, v, q = array("f"), array("f"), array("f")
            for i in range(n):
                k.extend(vector(self.next + i, layer, 0, self.width))
                v.extend(vector(self.next + i, layer, 1, self.width))
                q.extend(vector(self.next + i, layer, 2, self.q_row))
            self.cache.prefill(layer, k, v, n)
            self.cache.attend(layer, q, array("f", [0] * len(q)), None, n)
        self.cache.commit()
        self.tags += range(self.next, self.next + n)
        self.next += n

    def rollback(self, n: int) -> None:
        self.cache.rollback(n)
        del self.tags[len(self.tags) - n :]

    def vectors(self, tag: int) -> array:
        """What a token of that tag has for a key in layer 0."""
        return vector(tag, 0, 0, self.width)

    def key(self, position: int) -> list[float]:
        """What the token at a position had for a key in layer 1."""
        return vector(self.tags[position], 1, 0, self.width).tolist()

    def room(self) -> int:
        g = self.cache.geometry
        kept = len([p for p in self.cache.visible() if p >= g.sinks])
        return g.window - kept + max(0, g.sinks - self.cache.length)

    def anything(self, rng: random.Random, steps: int) -> None:
        """Steps, and now and then something else."""
        for _ in range(steps):
            what = rng.randrange(12)
            if what == 0:
                self.rollback(rng.randint(0, min(4, self.cache.length)))
            elif what == 1:
                self.cache.compress(rng.choice([0.5, 0.3]), rng.randrange(2))
            elif what == 2 and self.room() > 0:
                self.prefill(rng.randint(1, self.room()))
            else:
                self.step()


@pytest.mark.parametrize("sinks", [0, 3])
def test_window_keeps_what_a_ring_keeps(sinks: int) -> None:
    rng = random.Random(sinks)
    fed = Fed("window", 5, sinks)
    ring = KVCache(Geometry(**SHAPE, window=5, sinks=sinks), kernels=kernels.get("plain"))
    for _ in range(150):
        n = rng.choice([1, 1, 1, min(3, fed.room()) or 1])
        if rng.random() < 0.15:
            n = rng.randint(0, min(4, ring.length))
            fed.rollback(n)
            ring.rollback(n)
        else:
            fed.prefill(n) if n > 1 else fed.step()
            for layer in range(SHAPE["layers"]):
                x = array("f", [1] * (WIDTH * n))
                ring.prefill(layer, x, x, n)
            ring.commit()
        assert fed.cache.visible() == ring.visible()
        assert fed.cache.length == ring.length
        assert fed.cache.evicted_tokens == ring.evicted_tokens
        assert fed.cache.kv_bytes == ring.kv_bytes


@pytest.mark.parametrize("sinks", [0, 2])
@pytest.mark.parametrize("codec", CODECS)
def test_evicted_tokens_are_gone_exactly(codec: str, sinks: int) -> None:
    """To the bit what a cache computes that was only ever given the kept tokens, in the order of slots."""
    rng = random.Random(codec)
    fed = Fed("lru-peak", 6, sinks, codec=codec)
    seen = 0
    for _ in range(12):
        fed.anything(rng, 5)
        outs = fed.step()
        cache = fed.cache
        cache.settle()
        kept = [x - 1 for x in cache.at if 0 < x <= cache.length]
        order = list(range(min(sinks, cache.length))) + kept
        assert sorted(order) == cache.visible()
        seen += kept != sorted(kept)
        g = Geometry(**SHAPE, window=len(order) - sinks, sinks=sinks, codec=codec)
        alone = KVCache(g, kernels=kernels.of(codec).get("plain"))
        for p in order:
            tag = fed.tags[p]
            for layer in range(SHAPE["layers"]):
                alone.append(layer, vector(tag, layer, 0, WIDTH), vector(tag, layer, 1, WIDTH))
                if p == order[-1]:
                    out = array("f", [0] * Q_ROW)
                    now = fed.tags[-1]
                    queries = vector(now, layer, 2, Q_ROW), vector(now, layer, 3, Q_ROW)
                    alone.attend(layer, queries[0], out, queries[1])
                    assert out.tolist() == outs[layer]
            alone.commit()
    assert seen, "slots were in the order of positions all the time"


@pytest.mark.parametrize("policy", tokens.POLICIES)
def test_attention_is_that_over_the_kept_tokens(policy: str) -> None:
    """Against softmax in float64 over the vectors read back by position."""
    rng = random.Random(policy)
    fed = Fed(policy, 7, 2)
    dim = SHAPE["head_dim"]
    for _ in range(6):
        fed.anything(rng, 6)
        outs = fed.step()
        cache, now = fed.cache, fed.tags[-1]
        assert cache.length - 1 in cache.visible()
        for layer in range(SHAPE["layers"]):
            k, v = (np.array([cache.read(layer, which, p) for p in cache.visible()]) for which in "kv")
            q, qs = (np.array(vector(now, layer, part, Q_ROW)) for part in (2, 3))
            sinks = min(2, cache.length)
            for h in range(SHAPE["heads"]):
                mine, theirs = slice(h * dim, h * dim + dim), slice(h // 2 * dim, h // 2 * dim + dim)
                one, other = quantise_query(q[mine], qs[mine])
                want = attention(one, k[:, theirs], v[:, theirs], sinks, other)
                size = np.sqrt((v[:, theirs] ** 2).sum(-1).mean())
                assert np.linalg.norm(np.array(outs[layer][mine]) - want) <= LIMIT * size


@pytest.mark.parametrize("codec", CODECS)
def test_tokens_that_move_stay_what_they_are(codec: str) -> None:
    """Gaps are closed in the next step by moving tokens from the end: bytes, and positions, stay."""
    fed = Fed("window-lru", 8, 1, codec=codec)
    for _ in range(20):
        fed.step()
    cache = fed.cache

    def stored() -> dict:
        return {
            (layer, which, p): cache.read(layer, which, p)
            for layer in range(SHAPE["layers"])
            for which in "kv"
            for p in cache.visible()
        }

    for shrink in (lambda: fed.rollback(3), lambda: cache.compress(0.4)):
        shrink()
        before, slots = stored(), list(cache.at)
        fed.step()
        after = stored()
        assert list(cache.at)[: len(before)] != slots[: len(before)]
        assert {key: after[key] for key in before} == before
        assert cache.check() == 0
        for _ in range(9):
            fed.step()


def test_sizes_are_those_of_a_ring() -> None:
    g = Geometry(**SHAPE, window=64, sinks=4)
    cache = BudgetCache(g)
    assert cache.buffer_bytes == g.bytes()
    beside = sum(len(x) * 4 for x in (cache.plan, cache.at, *cache.worth))
    assert beside <= 18 * (g.slots + 1) + 4 * T.ACC + 16
    buffer = bytearray(g.bytes())
    assert BudgetCache(g, buffer).buffer is buffer


# --- refusals


def geometry(**options: Any) -> Geometry:
    return Geometry(**{**SHAPE, "window": 6, "sinks": 0, **options})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: BudgetCache(SealedGeometry(**SHAPE, window=64)), "'int4' seals blocks of 16 tokens"),
        (lambda: BudgetCache(geometry(window=None, capacity=9)), "capacity 9: a policy needs a window"),
        (lambda: BudgetCache(geometry(window=1 << 14)), "16384 tokens|lower window"),
        (lambda: BudgetCache(geometry(window=16380, sinks=5)), "16385 tokens visible at once"),
        (lambda: BudgetCache(geometry(layers=1024, heads=1024, window=256)), "lower window 256"),
        (lambda: BudgetCache(PagedGeometry(**SHAPE, window=8)), "got PagedGeometry: a policy needs one"),
        (lambda: BudgetCache(None), "got NoneType: a policy needs one"),
        (lambda: BudgetCache(geometry(), policy="lru"), "no token policy 'lru'; there are heavy-hitters, "),
        (lambda: BudgetCache(geometry(), policy=None), "no token policy None"),
        (lambda: BudgetCache(geometry(), policy=["lfu"]), r"no token policy \['lfu'\]"),
        (lambda: BudgetCache(geometry(), recent=7), r"recent must be 0\.\.6, the budget, got 7"),
        (lambda: BudgetCache(geometry(), recent=-1), "got -1"),
        (lambda: BudgetCache(geometry(), recent=True), "got True"),
        (lambda: BudgetCache(geometry(), recent=0.5), "got 0.5"),
        (lambda: BudgetCache(geometry(), bytearray(100)), "buffer has "),
    ],
)
def test_refused_at_construction(make: Any, says: str) -> None:
    if "16384" in says:
        make()  # the most there can be
        return
    with pytest.raises(BadArgument, match=says):
        make()


def test_a_prefill_beyond_the_free_places_is_refused_with_numbers() -> None:
    fed = Fed(window=6, sinks=2)
    fed.prefill(5)
    before = bytes(fed.cache.buffer), fed.cache.visible(), fed.cache.stats()
    with pytest.raises(CacheFull, match="a prefill of 4 tokens needs as many free places") as found:
        fed.prefill(4)
    about = found.value
    assert (about.needed, about.free, about.evictable, about.unit) == (4, 3, 3, "tokens")
    assert (bytes(fed.cache.buffer), fed.cache.visible(), fed.cache.stats()) == before
    fed.prefill(3)
    assert fed.cache.visible() == list(range(8))
    with pytest.raises(CacheFull, match="needed 2 tokens, free 0"):
        fed.prefill(2)
    fed.prefill(1)  # one token is a step
    fed.cache.compress(0.5)
    fed.prefill(3)
    assert fed.cache.check() == 0


BAD_PAIRS = [(1, 0), (2, 1), (1, 2.0), (0.5, 1), (1.5e308, 10**400), (True, 2), (1, 2, 3)]


@pytest.mark.parametrize("value", [0, -0.1, 1.01, float("nan"), float("inf"), True, None, "1", *BAD_PAIRS])
def test_ratios_that_mean_nothing(value: Any) -> None:
    fed = Fed()
    fed.step()
    with pytest.raises(BadArgument, match="keep_ratio must be above 0 and at most 1"):
        fed.cache.compress(value)
    with pytest.raises(BadArgument, match="recent must be a whole number"):
        fed.cache.compress(0.5, -1)
    assert fed.cache.visible() == [0]


def test_other_calls_are_refused_as_in_a_ring() -> None:
    fed = Fed()
    for _ in range(9):
        fed.step()
    cache = fed.cache
    gone = next(p for p in range(9) if p not in cache.visible())
    for call, says in (
        (lambda: cache.rollback(10), "rollback of 10"),
        (lambda: cache.place(0, "k", gone), f"position {gone} is not visible"),
        (lambda: cache.place(0, "k", 9), "position 9 is not visible"),
        (lambda: cache.place(0, "k", -1), "position must be a whole number, at least 0, got -1"),
        (lambda: cache.place(0, "k", "8"), "position must be a whole number"),
        (lambda: cache.place(0, "q", 8), "which must be 'k' or 'v'"),
        (lambda: cache.place(2, "k", 8), "layer must be"),
        (lambda: cache.read(0, "k", gone), "is not visible"),
    ):
        with pytest.raises(BadArgument, match=says):
            call()
    with pytest.raises(StepError, match="0 of 2 layers stored"):
        cache.commit()
    assert cache.check() == 0


def test_positions_end() -> None:
    """Long before a board's small ints do."""
    fed = Fed("window", 3)
    fed.step()
    fed.cache.length = (1 << 29) - 2
    fed.step()
    fed.step()
    assert fed.cache.visible() == [0, (1 << 29) - 2, (1 << 29) - 1]
    with pytest.raises(CacheFull, match="positions end at 2\\^29"):
        fed.step()
    fed.rollback(1)
    fed.step()


def test_check_finds_what_is_broken() -> None:
    def broken(spoil: Any) -> int:
        fed = Fed()
        for _ in range(9):
            fed.step()
        fed.cache.settle()
        assert fed.cache.check() == 0
        spoil(fed.cache)
        return fed.cache.check()

    def twice(cache: BudgetCache) -> None:
        cache.at[0] = cache.at[1]

    def too_many(cache: BudgetCache) -> None:
        cache.at[list(cache.at).index(0)] = 1

    def worthless(cache: BudgetCache) -> None:
        cache.worth[cache.plan[T.BANK]][1] = -1

    def stored(cache: BudgetCache) -> None:
        cache.buffer[cache.place(0, "k", 8)[0]] = 0

    for spoil in (twice, too_many, worthless, stored):
        assert broken(spoil) > 0, spoil


def test_other_kernels_watch_too() -> None:
    """A host's own set, without policy kernels of its own: those that are best here."""
    plain = kernels.get("plain")
    own = KernelSet("mine", {name: getattr(plain, name) for name in kernels.NAMES}, kernels.NAMES)
    cache = BudgetCache(geometry(), kernels=own, policy="lfu")
    assert cache.kernels.name == "mine"
    assert cache.stats()["kernels"] == "mine"


def test_names_in_the_docs_are_those_there_are() -> None:
    said = tokens.__doc__
    assert said is not None
    for name in tokens.POLICIES:
        assert f"\n    {name} " in said


ALLOCATION = """
import gc, json, micropython
from array import array
from mpy_kv import Geometry
from mpy_kv.token_eviction import BudgetCache
LAYERS = 6
N = 24
k, q, out = array("h", range(32)), array("h", range(64)), array("h", [0] * 64)
kn, qn, outn = array("h", bytes(64 * N)), array("h", bytes(128 * N)), array("h", bytes(128 * N))
cache = None
def work(count):
    while count:
        for layer in range(LAYERS):
            cache.append(layer, k, k)
            cache.attend(layer, q, out, q)
        cache.commit()
        if count & 7 == 0:
            cache.rollback(3)
        if count & 63 == 1:
            cache.rollback(cache.length)
            for layer in range(LAYERS):
                cache.prefill(layer, kn, kn, N)
                cache.attend(layer, qn, outn, qn, N)
            cache.commit()
        if count & 7 == 4:
            cache.append(0, k, k)
            cache.abort()
        count -= 1
found = {}
for policy in POLICIES:
    cache = BudgetCache(Geometry(LAYERS, 8, 4, 8, window=24, sinks=2, codec=CODEC), kv_shift=9, policy=policy)
    a = b = 0
    work(60)
    gc.collect()
    micropython.heap_lock()
    work(40)
    micropython.heap_unlock()
    a = micropython.mem_total()
    work(400)
    b = micropython.mem_total()
    found[policy] = [b - a, cache.kernels.name, cache.evicted_tokens > 200, cache.check()]
print(json.dumps(found))
"""


def allocated(board: Any, codec: str, policies: Iterable[str]) -> dict[str, list]:
    code = f"POLICIES = {list(policies)!r}\nCODEC = {codec!r}\n{ALLOCATION}"
    return json.loads(board.run(code, heap_bytes=8 << 20))


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "float32"])
def test_nothing_is_allocated_per_token(codec: str, upy) -> None:
    """Steps, rollbacks and what closes the gaps after them, with the heap locked and counted."""
    policies = tuple(tokens.POLICIES) if codec == "int8" else ("lfu-decay", "lru-peak")
    assert allocated(upy, codec, policies) == {policy: [0, "viper", True, 0] for policy in policies}
