"""Token policies: the same victims, worths and outputs as a model in numpy, whatever the kernels."""

from __future__ import annotations

import random
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget_cases import compare, device, drawn, some
from known_cases import DEVICE
from kv_reference import quantise_query
from token_reference import POLICIES

from kvlab.quality import policies as quality
from mpy_kv import Geometry, kernels
from mpy_kv.eviction import tokens
from mpy_kv.eviction.tokens import params as T
from mpy_kv.eviction.tokens import selfcheck
from mpy_kv.kernels.kernel_registry import KernelSet
from mpy_kv.token_eviction import BudgetCache

SEEDS = 1
TWINS = 834  # calls that device/token_twins.py compares


@pytest.mark.parametrize("codec", ["int8", "int8-int4"])
@pytest.mark.parametrize("policy", POLICIES)
def test_any_history_is_that_of_the_model(policy: str, codec: str) -> None:
    for seed in range(SEEDS):
        job, found = drawn(policy, seed, codec)
        compare(found, job)


@pytest.mark.parametrize(("name", "every"), [("plain", 2), ("viper", 1)])
def test_on_the_unix_port_too(name: str, every: int, upy, tmp_path: Path) -> None:
    jobs = some(SEEDS + 1)[::every]
    found = device(upy, [job for job, _ in jobs], name, tmp_path, heap_bytes=16 << 20)
    for got, (job, want) in zip(found, jobs, strict=True):
        assert got == want, job["cache"]


# --- victims by shares given, against the definitions in floats of `kvlab quality`


class Told:
    """A budget cache of one head and layer that is told what attention its tokens get."""

    def __init__(self, policy: str, budget: int, **options: Any) -> None:
        g = Geometry(1, 1, 1, 4, window=budget, sinks=0)
        self.cache = BudgetCache(g, kernels=kernels.get("plain"), policy=policy, **options)
        self.kernels = self.cache.kernels

    def step(self, shares: dict[int, float] | Callable[[list[int]], dict[int, float]]) -> None:
        """One token; shares by position, of the tokens that it sees. Others get none."""
        cache, plan = self.cache, self.cache.plan
        vector = array("f", [1, 2, 3, 4])
        cache.append(0, vector, vector)
        seen = [x - 1 for r, x in enumerate(cache.at) if x and r != plan[T.HOLE]]
        if callable(shares):
            shares = shares(seen)
        assert set(shares) <= set(seen)
        for i, p in enumerate(seen):
            share = shares.get(p, 0)
            plan[T.ACC + i] = int(share > 8 / len(seen)) if plan[T.PEAK] else int(share * (1 << plan[T.BITS]))
        cache.commit()

    def kept(self) -> list[int]:
        return self.cache.visible()


def drawn_shares(rng: random.Random, seen: list[int]) -> dict[int, float]:
    """Multiples of 2^-12 that sum to 1, a few tokens getting most."""
    cuts = [rng.random() ** 4 for _ in seen]
    whole = [int(4096 * x / sum(cuts)) for x in cuts]
    whole[rng.randrange(len(whole))] += 4096 - sum(whole)
    return {p: x / 4096 for p, x in zip(seen, whole)}


@pytest.mark.parametrize("budget", [2, 7, 40])
@pytest.mark.parametrize("policy", POLICIES)
def test_victims_are_those_of_the_definitions_in_floats(policy: str, budget: int, monkeypatch) -> None:
    """Shares with few bits, so that only what decays is rounded: the same tokens stay, ties and all."""
    monkeypatch.setattr(quality, "DECAY", 61 / 64)
    rng = random.Random(f"{policy} {budget}")
    told, table = Told(policy, budget), quality.Table(1, budget)
    chosen = quality.POLICIES[policy]
    different = 0
    for _ in range(12 * budget):
        slot = chosen.victims(table, budget) if table.count == budget else np.array([table.count])
        table.insert(slot)
        given: dict[int, float] = {}

        def shares(seen: list[int], given: dict[int, float] = given) -> dict[int, float]:
            given.update(drawn_shares(rng, seen))
            return given

        told.step(shares)
        row = np.array([[given[p] for p in table.position[0, : table.count]]])
        table.watch(row, row)
        assert told.kept() == sorted(table.position[0, : table.count])
        different += told.kept() != list(range(told.cache.length - table.count, told.cache.length))
    assert different or policy == "window" or budget < 40, "the policy forgets what a window would"


@pytest.mark.parametrize("budget", [1, 7, 40])
def test_a_table_has_no_word_too_many(budget: int) -> None:
    """Of each bank a word a slot, behind them what the bank says of them all."""
    cache = Told("lfu-decay", budget).cache
    ring = cache.plan[T.RING]
    assert [len(cache.at), *(len(bank) for bank in cache.worth)] == [ring, ring + 2, ring + 2]
    assert len(cache.plan) == T.ACC + ring + cache.geometry.sinks + (ring + cache.geometry.sinks + 1) // 2


def test_tokens_that_never_leave() -> None:
    """The newest one, or half of the budget; never none, however small it is."""
    budgets = (1, 2, 3, 8, 9)
    for policy in POLICIES:
        half = policy in ("window-lru", "lfu-decay", "heavy-hitters")
        recent = [tokens.made(policy, budget)[2] for budget in budgets]
        assert recent == ([1, 1, 1, 4, 4] if half else [1] * 5), policy


def test_shares_are_those_of_softmax() -> None:
    """What attend adds up, against float64, over scores from equal to one token that takes all."""
    rng = np.random.default_rng(1)
    layers, heads, dim, n = 2, 4, 8, 24
    for peak in (0, 0.3, 1, 3, 9):
        g = Geometry(layers, heads, heads, dim, window=n, sinks=0)
        cache = BudgetCache(g, kernels=kernels.get("plain"), policy="lfu")
        for t in range(n):
            q = np.float32(rng.normal(size=heads * dim) * peak)
            for layer in range(layers):
                cache.append(
                    layer, array("f", rng.normal(size=heads * dim)), array("f", rng.normal(size=heads * dim))
                )
                if t == n - 1:
                    cache.attend(layer, array("f", q), array("f", [0] * (heads * dim)))
            if t < n - 1:
                cache.commit()
        plan = cache.plan
        got = np.array(plan[T.ACC : T.ACC + n]) / (layers * heads << plan[T.BITS])
        cache.commit()
        want = np.zeros(n)
        for layer in range(layers):
            k = np.array([cache.read(layer, "k", p) for p in range(n)]).reshape(n, heads, dim)
            for h in range(heads):
                seen, _ = quantise_query(q[h * dim : h * dim + dim])
                w = 2.0 ** ((k[:, h] @ seen) / np.sqrt(dim) * np.log2(np.e))
                want += w / w.sum() / (layers * heads)
        assert np.abs(got - want).max() < 1e-4
        assert (np.abs(got - want) <= 0.004 * want + 2e-5).all()


# --- cases that other systems failed


def test_policies_differ() -> None:
    """WIN-8: another policy forgets another token."""
    # 0 gets much but early, 1 is used last, 2 never, 3 is new: see test_quality_policies.py.
    steps = [{0: 1}, {0: 0.9, 1: 0.1}, {0: 0.9, 1: 0.05, 2: 0.05}, {0: 0.05, 1: 0.8, 2: 0.1, 3: 0.05}]
    gone = {}
    for policy in POLICIES:
        told = Told(policy, 4)
        for shares in steps:
            told.step(shares)
        told.step({})
        gone[policy] = next(p for p in range(4) if p not in told.kept())
    assert gone == {
        "window": 0,
        "lru-attention": 0,
        "lru-peak": 0,
        "window-lru": 0,
        "lfu": 2,
        "heavy-hitters": 1,
        "lfu-decay": 1,
    }


def test_equal_tokens_leave_by_age_and_a_frozen_age_changes_nothing() -> None:
    """WIN-8: tokens idle for 2^29 steps are equals; recency is counted, and its count stands still there."""
    for worth in (T.NOW - 1, 2, 1, 0):
        told = Told("lru-attention", 6)
        for _ in range(6):
            told.step({})
        told.cache.settle()
        table = told.cache.worth[told.cache.plan[T.BANK]]
        for r in range(6):
            table[r] = worth
        for step in range(12):
            told.step(lambda seen: {seen[-1]: 1} if len(seen) == 6 else {})
            assert told.kept()[-1] == told.cache.length - 1
            assert told.cache.check() == 0
            if step < 5:
                assert told.kept() == list(range(step + 1, step + 7))


def test_a_token_used_a_moment_ago_is_not_the_victim() -> None:
    """WIN-8: among tokens idle for ever, the one looked at just now stays."""
    told = Told("lru-attention", 4)
    for _ in range(4):
        told.step({})
    told.cache.settle()
    told.cache.worth[told.cache.plan[T.BANK]][0:4] = array("i", [0] * 4)
    told.step(lambda seen: {1: 0.9} if 1 in seen else {})
    assert told.kept() == [1, 2, 3, 4]
    told.step({1: 0.9})
    told.step({1: 0.9})
    assert told.kept() == [1, 4, 5, 6]


@pytest.mark.parametrize("policy", ["lfu", "heavy-hitters"])
def test_masses_keep_their_order_however_long(policy: str) -> None:
    """From beyond the bound at which all are halved: the token with most attention stays, nothing wraps."""
    told = Told(policy, 6, recent=1)
    told.step({0: 1})
    cache = told.cache
    cache.settle()
    bank = cache.worth[cache.plan[T.BANK]]
    bank[0] = bank[7 + 1] = (1 << 28) + 5
    seen = set()
    for _ in range(3000):
        told.step(lambda seen: {0: 0.75, **({seen[-1]: 0.25} if seen[-1] else {})})
        cache.settle()
        bank = cache.worth[cache.plan[T.BANK]]
        seen.add(bank[7])
        assert 0 in told.kept()
        assert max(bank[:7]) < 1 << 29
        assert cache.check() == 0
    assert seen == set(range(1, max(seen) + 1))
    assert max(seen) >= 3


def test_an_emptied_cache_begins_anew() -> None:
    """Rolled back to nothing it does what a new one does, however often masses were halved."""
    fresh, used = Told("lfu", 6), Told("lfu", 6)
    for _ in range(40):
        used.step({})
    used.cache.settle()
    bank = used.cache.worth[used.cache.plan[T.BANK]]
    bank[7], bank[8] = 9, (1 << 28) - 1
    used.cache.rollback(40)
    for told in (fresh, used):
        rng = random.Random(2)
        for _ in range(30):
            told.step(lambda seen: drawn_shares(rng, seen))  # noqa: B023
        told.cache.settle()
    worth = [
        {x: w for x, w in zip(told.cache.at, told.cache.worth[told.cache.plan[T.BANK]]) if x}
        for told in (fresh, used)
    ]
    assert worth[0] == worth[1]


def test_halving_changes_no_victim() -> None:
    """The same history with masses near the bound, and all of them halved before: the same tokens stay."""
    kept = []
    for scale, halved in ((1, 0), (2, 1)):
        rng = random.Random(5)
        told = Told("lfu", 8)
        for _ in range(8):
            told.step({})
        told.cache.settle()
        bank = told.cache.worth[told.cache.plan[T.BANK]]
        # The same masses in units of 2^21 and 2^22, of which the first are about to be halved.
        for r in range(8):
            bank[r] = ((1 << 27) + (r << 22)) * 2 // scale
        bank[9], bank[10] = halved, max(bank[:8])
        history = []
        for _ in range(60):
            told.step(lambda seen: drawn_shares(rng, seen))  # noqa: B023
            history.append(told.kept())
        kept.append(history)
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("tokens", "ratio", "kept"),
    [
        (10, 0.02, 1),
        (100, 0.5, 50),
        (10, 1, 10),
        (10, 1.0, 10),
        (1, 0.5, 1),
        (30, 0.1, 3),
        (5, 0.5, 3),
        (0, 0.5, 0),
    ],
)
def test_compress_keeps_as_many_as_it_says(tokens: int, ratio: float, kept: int) -> None:
    """WIN-9: to nearest, at least one; sinks come on top."""
    for sinks in (0, 3):
        g = Geometry(1, 1, 1, 4, window=100, sinks=sinks)
        cache = BudgetCache(g, kernels=kernels.get("plain"), policy="lru-peak")
        if tokens + sinks:
            x = array("f", [1] * (4 * (tokens + sinks)))
            cache.prefill(0, x, x, tokens + sinks)
            cache.commit()
        assert cache.compress(ratio) == tokens - kept
        assert len(cache.visible()) == sinks + kept
        assert cache.visible()[:sinks] == list(range(sinks))
        assert cache.evicted_tokens == tokens - kept
        assert cache.check() == 0


def test_compressing_twice_by_half() -> None:
    """WIN-9: 100 tokens leave 50 and then 25, the worthiest."""
    told = Told("lfu", 100)
    for _ in range(100):
        told.step({})
    rng = random.Random(0)
    worth = rng.sample(range(1000), 100)
    told.cache.settle()
    told.cache.worth[told.cache.plan[T.BANK]][0:100] = array("i", worth)
    told.cache.compress(0.5)
    assert len(told.kept()) == 50
    told.cache.compress(0.5)
    assert told.kept() == sorted(sorted(range(100), key=lambda p: worth[p])[75:])


def test_protecting_none_protects_none() -> None:
    """WIN-9, of compress and of the policy itself."""
    told = Told("lfu", 4, recent=0)
    for p in range(4):
        told.step(dict.fromkeys(range(p), 0.2))
    told.step({})  # token 3 got nothing yet
    assert told.kept() == [0, 1, 2, 4]
    told.cache.compress(0.5, 0)
    assert told.kept() == [0, 1]
    protecting = Told("lfu", 4, recent=1)
    for p in range(4):
        protecting.step(dict.fromkeys(range(p), 0.2))
    protecting.step({})
    assert protecting.kept() == [0, 1, 3, 4]
    protecting.cache.compress(0.02, 2)  # more than the ratio says, as they are protected
    assert protecting.kept() == [3, 4]


def test_where_all_are_protected_the_oldest_leaves() -> None:
    told = Told("lfu-decay", 3, recent=3)
    for _ in range(7):
        told.step({})
        assert told.kept() == list(range(max(0, told.cache.length - 3), told.cache.length))


def test_a_prefill_counts_once() -> None:
    """Its tokens as used in one step; an old token's use is a mean over its rows; masses are their sum."""
    for policy, rows in (("lru-attention", 3), ("lfu", 3), ("lfu-decay", 3)):
        told = Told(policy, 8, recent=1)
        told.step({})
        told.step({})
        cache, plan = told.cache, told.cache.plan
        x = array("f", [1] * (4 * rows))
        cache.prefill(0, x, x, rows)
        one = 1 << plan[T.BITS]
        n = 5
        # Token 0: 0.5 / n in the mean, no use. Token 1: a little more.
        plan[T.ACC : T.ACC + 2] = array("i", [rows * one // (2 * n), rows * one // (2 * n) + 1])
        cache.commit()
        cache.settle()
        worth = list(cache.worth[plan[T.BANK]])[:n]
        if policy == "lru-attention":
            assert worth == [T.NOW - 2, T.NOW, T.NOW, T.NOW, T.NOW]
        else:
            whole = (rows * one // (2 * n)) << plan[T.UP]
            assert worth[0] == pytest.approx(whole if policy == "lfu" else whole / rows, abs=8)


def test_what_a_rollback_leaves_still_counts() -> None:
    """Attention given by tokens rolled back is not taken back: steps count, whatever becomes of them."""
    told = Told("lru-attention", 5)
    for _ in range(5):
        told.step({})
    told.step(lambda seen: {1: 1})
    told.cache.rollback(1)
    for _ in range(2):
        told.step({})
    assert told.kept() == [1, 3, 4, 5, 6]


# --- the kernels themselves


def test_every_call_of_a_kernel(upy) -> None:
    assert int(upy.run(DEVICE / "token_twins.py", ["viper"], heap_bytes=8 << 20)) == TWINS


def test_the_check_sees_every_kernel() -> None:
    """A set that errs in any one function, or in one of its branches, is refused."""
    plain = tokens.FAMILY.plain()
    names = tokens.FAMILY.names

    def spoilt(name: str, spoil: Callable[..., None]) -> KernelSet:
        functions = {each: getattr(plain, each) for each in names}
        functions[name] = lambda *arguments: (getattr(plain, name)(*arguments), spoil(*arguments))[0]
        return KernelSet("spoilt", functions, names)

    def add(array_: Any, i: int) -> None:
        array_[i] += 1

    wrong = {
        "uses": [lambda buf, plan, t, a: add(plan, T.ACC + a[0] - 1)],
        "survey": [
            lambda at, worth, plan, length: add(plan, T.VICTIM),
            lambda at, worth, plan, length: add(at, 8),
            lambda at, worth, plan, length: add(plan, T.FREE),
            lambda at, worth, plan, length: add(plan, T.TOP),
            lambda at, worth, plan, length: add(plan, T.LIVE),
        ],
        "watch": [
            lambda plan, old, new, kind, k=kind: add(new, 0 if plan[T.HOLE] else 1) if kind == k else None
            for kind in (T.USED, T.MASS, T.DECAYED)
        ]
        + [lambda plan, old, new, kind: add(new, plan[T.RING])],
        "move": [lambda buf, to, at, n: add(buf, to + n - 1)],
    }
    assert selfcheck.compare(plain, plain) == ""
    for name, spoils in wrong.items():
        for spoil in spoils:
            assert selfcheck.compare(plain, spoilt(name, spoil)).startswith(name)


def test_literals_of_assembler_are_those_of_params() -> None:
    """Where the shares begin."""
    folder = Path(tokens.__file__).parent
    assert set(re.findall(r"add\(r\d, (\d{3})\)", (folder / "thumb.py").read_text())) == {str(4 * T.ACC)}
