"""Viper of pools, policies and token policies as a 32-bit board runs it: what their plain twins do."""

from __future__ import annotations

import random
from array import array
from pathlib import Path

import pytest
import viper32

from mpy_kv import eviction, pools
from mpy_kv.eviction import lfu, tokens
from mpy_kv.eviction import lru as recency
from mpy_kv.eviction.tokens import params as T
from mpy_kv.eviction.tokens import selfcheck
from mpy_kv.kernels.kernel_registry import KernelSet

RING, SINKS = 11, 2


@pytest.fixture(scope="module")
def on_32_bits() -> KernelSet:
    return KernelSet(
        "viper32", viper32.load(Path(tokens.__file__).with_name("viper.py")), tokens.FAMILY.names
    )


def test_the_start_up_check_passes(on_32_bits: KernelSet) -> None:
    assert selfcheck.compare(tokens.FAMILY.plain(), on_32_bits) == ""


@pytest.mark.parametrize("exponent", [*range(-64, -40, 6), *range(-40, 20), 40, 63])
def test_shares_at_every_exponent(exponent: int, on_32_bits: KernelSet) -> None:
    for peak, bits in ((0, 20), (0, 1), (1, 20)):
        want, got = (selfcheck._shares(k, peak, bits, exponent) for k in (tokens.FAMILY.plain(), on_32_bits))
        assert got == want, (peak, bits)


def surveyed(kernels: KernelSet, at: list[int], worth: list[int], length: int, recent: int) -> object:
    plan = array("i", [0] * (T.ACC + 2 * (SINKS + RING)))
    plan[T.RING], plan[T.SINKS], plan[T.RECENT] = RING, SINKS, recent
    for i in range(SINKS + RING):
        plan[T.ACC + i] = 99
    table = array("i", at)
    assert kernels.survey(table, array("i", worth), plan, length) == 0
    return list(plan), list(table)


def watched(
    kernels: KernelSet, kind: int, numbers: tuple[int, ...], shares: list[int], old: list[int]
) -> object:
    plan = array("i", [0] * (T.ACC + 2 * (SINKS + RING)))
    plan[T.RING], plan[T.SINKS] = RING, SINKS
    plan[T.HOLE], plan[T.COUNT], plan[T.SEEN], plan[T.ROWS], plan[T.DOWN], plan[T.UP] = numbers
    plan[T.THRESHOLD] = 1 << 19
    plan[T.ACC : T.ACC + len(shares)] = array("i", shares)
    new = array("i", [7] * (RING + 2))
    assert kernels.watch(plan, array("i", old), new, kind) == 0
    return list(new)


@pytest.mark.parametrize("seed", range(6))
def test_tables_at_random(seed: int, on_32_bits: KernelSet) -> None:
    rng = random.Random(seed)
    plain = tokens.FAMILY.plain()
    for _ in range(12):
        length = rng.randint(0, 40)
        at = [rng.randint(0, length + 3) if rng.random() < 0.75 else 0 for _ in range(RING)]
        worth = [rng.choice((0, 1, 2, 3, rng.randint(0, T.NOW))) for _ in range(RING + 2)]
        recent = rng.choice((0, rng.randint(0, RING)))
        assert surveyed(on_32_bits, at, worth, length, recent) == surveyed(plain, at, worth, length, recent)
    for _ in range(24):
        rows = rng.choice((1, 1, 64, 65, 128, 129, rng.randint(1, 300)))
        numbers = (rng.randint(0, RING), rng.randint(0, RING - 1), rng.randint(0, SINKS), rows,
                   rng.randint(0, 8), rng.randint(0, 4) if rows > 1 else 0)  # fmt: skip
        shares = [rng.choice((1 << 19, (1 << 19) + 1, rng.randrange(1 << 20))) << rng.choice((0, 8))
                  for _ in range(SINKS + RING)]  # fmt: skip
        kind = rng.choice((T.USED, T.MASS, T.DECAYED))
        most = {T.USED: T.NOW, T.MASS: (1 << 28) + (1 << 26), T.DECAYED: 1 << 25}[kind]
        old = [rng.choice((0, 1, rng.randrange(most))) for _ in range(RING)]
        old += [rng.randint(0, 21), rng.choice(((1 << 28) - 1, 1 << 28, rng.randrange(most)))]
        assert watched(on_32_bits, kind, numbers, shares, old) == watched(plain, kind, numbers, shares, old)


def test_masses_are_halved_when_one_nears_2_to_the_28_or_rows_add_up_to_more_than_64(
    on_32_bits: KernelSet,
) -> None:
    """To the number: at 2^28 - 1 and 64 rows nothing is halved."""
    for most, rows, drop in (((1 << 28) - 1, 64, 0), (1 << 28, 64, 1), (0, 65, 1), (0, 127, 1), (0, 128, 1),
                             (0, 129, 1), (0, 130, 2), (1 << 29, 1, 2)):  # fmt: skip
        for kernels in (tokens.FAMILY.plain(), on_32_bits):
            plan = array("i", [0] * (T.ACC + 2 * (SINKS + RING)))
            plan[T.RING], plan[T.SINKS], plan[T.HOLE], plan[T.COUNT], plan[T.ROWS] = (
                RING,
                SINKS,
                RING,
                1,
                rows,
            )
            old = array("i", [1 << 20] + [0] * (RING - 1) + [0, most])
            new = array("i", [0] * (RING + 2))
            kernels.watch(plan, old, new, T.MASS)
            assert (new[0], new[RING], new[RING + 1]) == (1 << 20 >> drop, drop, 1 << 20 >> drop), (
                most,
                rows,
            )


@pytest.mark.parametrize("words", [0, 1, 7, 8, 9, 16, 23])
@pytest.mark.parametrize("to", [0, 4, 60, 160])
def test_words_are_moved(words: int, to: int) -> None:
    move = viper32.load(Path(pools.__file__).with_name("viper.py"))["move_down"]
    buffer = bytearray(random.Random(words).randbytes(260))
    before = bytes(buffer)
    move(to, 160, words, buffer)
    want = bytearray(before)
    want[to : to + 4 * words] = before[160 : 160 + 4 * words]
    assert buffer == want


def links(policy: str) -> tuple[object, list[array]]:
    one = eviction.make(policy, 6)
    rng = random.Random(4)
    for _ in range(40):
        getattr(one, rng.choice(("insert", "insert", "touch", "protect", "unprotect")))(rng.randrange(6))
    one.evict()
    names = ("_nxt", "_prv", "_rank") if policy == "lfu" else ("_nxt", "_prv")
    return one, [array("H", getattr(one, name)) for name in names]


@pytest.mark.parametrize("policy", ["lru", "lfu"])
def test_touches(policy: str) -> None:
    native = viper32.load(Path(eviction.__file__).with_name("viper.py"))
    one, arrays = links(policy)
    twins = [array("H", each) for each in arrays]
    top = 6 + 254
    for i in [-1, 6, 7, *range(6), 5, 3, 3, 0, 0, 1, 4, 2, 2]:
        if policy == "lru":
            done = native["touch_lru"](*arrays, 6, i)
            assert done == recency.touch(*twins, 6, i)
        else:
            done = native["touch_lfu"](*arrays, 6, top, i)
            assert done == lfu.touch(*twins, 6, top, i)
        assert arrays == twins, i
