"""Eviction policies: victims worked by hand, naive models, bad input, the same on the device, nothing
allocated."""

from __future__ import annotations

import copy
import json
from collections.abc import Hashable, Sequence
from typing import Any

import policies as device
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from known_cases import DEVICE
from policy_models import MODELS

from kvlab.bench import policies as bench
from kvlab.engine import compiled
from kvlab.engine.state import arrays_of, widened
from kvlab.replay import catalogue
from mpy_kv import eviction
from mpy_kv.errors import BadArgument
from mpy_kv.eviction.policy import MAX_ENTRIES

NAMES = tuple(eviction.POLICIES)
TEXTBOOK = (1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5)
OPTIONS: dict[str, list[dict[str, int]]] = {
    "lfu": [{}, {"most_count": 2}],
    "hybrid": [{"window": 0}, {"window": 3}, {"window": 1, "most_count": 3}],
    "s3fifo": [{}, {"small": 3, "ghosts": 2}],
}


def replayed(name: str, capacity: int, trace: Sequence[Hashable], **options: int) -> tuple[int, list[Any]]:
    """(misses, victims), the entries of the policy looked up in a dict."""
    cache = device.Cache(eviction.make(name, capacity, **options), capacity)
    for key in trace:
        assert cache.access(key)
        assert len(cache.where) <= capacity
        assert cache.policy.check() == 0
    return len(trace) - cache.hits, cache.victims


# --- by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "misses", "victims"),
    [
        ("fifo", (9, 10, 5), [1, 2, 3, 4, 5, 1]),  # more room, more misses: Belady's anomaly
        ("lru", (10, 8, 5), [3, 4, 5, 1]),
        ("lfu", (10, 8, 5), [3, 4, 5, 3]),
    ],
)
def test_the_textbook_trace(name: str, misses: tuple[int, ...], victims: list[int]) -> None:
    assert tuple(replayed(name, capacity, TEXTBOOK)[0] for capacity in (3, 4, 5)) == misses
    assert replayed(name, 4, TEXTBOOK)[1] == victims


@pytest.mark.parametrize(("name", "victim"), [("fifo", "A"), ("lru", "B"), ("lfu", "C")])
def test_policies_differ_on_abbcad(name: str, victim: str) -> None:
    assert replayed(name, 3, "ABBCAD")[1] == [victim]


def test_the_newcomer_of_lfu_goes_next() -> None:
    """Its count is its own: those of the entry before it died with that."""
    assert replayed("lfu", 3, "ABBCADE")[1] == ["C", "D"]


def test_the_entry_used_a_moment_ago_stays() -> None:
    assert replayed("lru", 4, "abacde")[1] == ["b"]


def test_a_loop_larger_than_the_cache() -> None:
    assert replayed("lru", 4, list(range(5)) * 10)[0] == 50
    assert all(replayed(name, 5, list(range(5)) * 10)[0] == 5 for name in NAMES)


def test_sieve_forgives_once() -> None:
    """The hand passes a and c, which were used, takes b, then d; e, newer than the hand, is next before a."""
    assert replayed("sieve", 4, "abcdacefgh")[1] == ["b", "d", "e", "f"]


def test_s3fifo_remembers_whom_it_evicted() -> None:
    """10 entries, 1 on trial. What is used once leaves in order; 0, remembered, comes back into the main
    queue and outlives all that follow."""
    _, victims = replayed("s3fifo", 10, [*range(11), 0, *range(11, 40)])
    assert victims[:2] == [0, 1]
    assert victims.count(0) == 1


def test_the_window_of_hybrid_protects_the_newest() -> None:
    """d and e are alone with a count of 1: LFU takes the older of them, hybrid what is not among the newest
    two."""
    trace = "aabbccdef"
    assert replayed("lfu", 4, trace)[1] == ["d", "e"]
    assert replayed("hybrid", 4, trace, window=2)[1] == ["a", "b"]


def test_whom_a_removal_lets_into_the_window() -> None:
    policy = eviction.make("hybrid", 5, window=2)
    for i in range(4):
        policy.insert(i)
    policy.remove(3)
    assert [policy.evict() for _ in range(3)] == [0, -1, -1]


def test_hybrid_passes_the_window_when_a_protected_entry_has_come_back_out_of_order() -> None:
    """1 and 2 are the window; 0, the oldest, stands behind them: it is the only one to go."""
    policy = eviction.make("hybrid", 4, window=2)
    for i in range(3):
        policy.insert(i)
    policy.protect(0)
    policy.unprotect(0)
    assert [policy.evict(), policy.evict()] == [0, -1]
    assert policy.check() == 0


@pytest.mark.parametrize("name", NAMES)
def test_protected_entries_are_never_victims(name: str) -> None:
    policy = eviction.make(name, 8, **({"window": 0} if name == "hybrid" else {}))
    for i in range(8):
        policy.insert(i, i)
        if i % 2:
            assert policy.protect(i) == policy.protect(i) == 0
    assert policy.touch(1) == 0
    assert policy.remove(1) == -1
    assert sorted(policy.evict() for _ in range(4)) == [0, 2, 4, 6]
    assert policy.evict() == -1
    assert policy.unprotect(5) == policy.unprotect(5) == 0
    assert [policy.evict(), policy.evict()] == [5, -1]
    assert policy.check() == 0
    assert policy.stats() == {
        "policy": name,
        "entries": 8,
        "held": 3,
        "protected": 3,
        "inserted": 8,
        "evicted": 5,
        "removed": 0,
    }


def test_counts_of_lfu() -> None:
    policy = eviction.make("lfu", 4, most_count=3)
    assert policy.count(1) == 0
    policy.insert(1)
    for count in (1, 2, 3, 3):
        assert policy.count(1) == count
        policy.touch(1)


# --- models --------------------------------------------------------------------------------------


class Against(RuleBasedStateMachine):
    """A policy and its model, both told the same."""

    name = ""

    @initialize(data=st.data(), n=st.integers(4, 9))
    def make(self, data: Any, n: int) -> None:
        options = data.draw(st.sampled_from(OPTIONS.get(self.name, [{}])))
        self.n = n
        self.policy = eviction.make(self.name, n, **options)
        self.model = MODELS[self.name](n, **options)

    def entry(self, data: Any, among: list[int]) -> int:
        return data.draw(st.sampled_from(sorted(among)))  # type: ignore[no-any-return]

    @property
    def held(self) -> list[int]:
        return self.model.held

    @rule(key=st.integers(0, 12))
    def access(self, key: int) -> None:
        """A new key, to a free entry or to that of the victim."""
        absent = [i for i in range(self.n) if i not in self.held]
        i = absent[0] if absent else self.model.evict()
        if not absent:
            assert self.policy.evict() == i
        if i >= 0:
            self.model.insert(i, key)
            assert self.policy.insert(i, key) == 0

    @precondition(lambda self: self.held)
    @rule(data=st.data(), times=st.integers(1, 4))
    def touch(self, data: Any, times: int) -> None:
        i = self.entry(data, self.held)
        for _ in range(times):
            self.model.touch(i)
            assert self.policy.touch(i) == 0

    @rule()
    def evict(self) -> None:
        assert self.policy.evict() == self.model.evict()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        i = self.entry(data, self.held)
        kept = i in self.model.protected
        assert self.policy.remove(i) == (-1 if kept else 0)
        if not kept:
            self.model.forget(i)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), on=st.booleans())
    def guard(self, data: Any, on: bool) -> None:
        i = self.entry(data, self.held)
        for side in (self.model, self.policy):
            (side.protect if on else side.unprotect)(i)

    @rule(data=st.data())
    def refused(self, data: Any) -> None:
        absent = [i for i in range(self.n) if i not in self.held]
        for method in (self.policy.touch, self.policy.remove, self.policy.protect, self.policy.unprotect):
            assert [method(i) for i in absent] == [-1] * len(absent)
        assert [self.policy.insert(i) for i in self.held] == [-1] * len(self.held)

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "policy"):
            assert self.policy.check() == 0
            stats = self.policy.stats()
            assert stats["held"] == len(self.held)
            assert stats["protected"] == len(self.model.protected)


def machine(name: str) -> Any:
    made = type(f"Against_{name}", (Against,), {"name": name})
    made.TestCase.settings = settings(
        max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return made.TestCase


TestFifo, TestLru, TestLfu, TestHybrid, TestSieve, TestS3fifo = map(machine, NAMES)


@pytest.mark.parametrize(("name", "n", "options"), device.CASES)
def test_victims_of_a_long_run_are_the_models(name: str, n: int, options: dict[str, int]) -> None:
    """Accesses alone, five times as many keys as entries at most."""
    got = device.run(name, n, options, 11, 2000, quiet=True)
    model = Spoken(MODELS[name](n, **options))
    want = device.run(name, n, options, 11, 2000, quiet=True, made=lambda _: model)
    assert got["victims"] == want["victims"]
    assert len(got["victims"]) > 500
    assert got["hits"] == want["hits"] > 300


class Spoken:
    """A model that answers as a policy does."""

    def __init__(self, model: Any) -> None:
        self.evict = model.evict
        self.insert = lambda i, key: model.insert(i, key) or 0
        self.touch = lambda i: model.touch(i) or 0
        self.check = self.stats = lambda: 0


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_entry_is_refused_and_changes_nothing(name: str) -> None:
    policy = eviction.make(name, 8)
    for i in (0, 1, 2, 7):
        policy.insert(i, i)
    policy.protect(2)
    before = copy.deepcopy(arrays_of(policy))
    for method in (policy.touch, policy.insert, policy.remove, policy.protect, policy.unprotect):
        for wrong in (-1, -8, 8, 9, 1 << 29, 1 << 30, 1 << 40, -(1 << 40)):
            assert method(wrong) == -1
        for wrong in (None, "1", 1.5, [1]):
            with pytest.raises(TypeError):
                method(wrong)
    assert arrays_of(policy) == before
    assert policy.check() == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, -1, True, 1.5, None, "4", MAX_ENTRIES + 1, 1 << 40])
def test_sizes_that_are_none(name: str, n: Any) -> None:
    with pytest.raises(BadArgument, match=r"^n must be 1\.\.16777216, got"):
        eviction.make(name, n)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("mru", {}, "no policy 'mru'; there are fifo, hybrid, lfu, lru, s3fifo, sieve"),
        ("hybrid", {"window": 4}, "window must be 0..3, got 4"),
        ("hybrid", {"window": -1}, "window must be 0..3, got -1"),
        ("lfu", {"most_count": 0}, "most_count must be 1..16777216, got 0"),
        ("s3fifo", {"small": 5}, "small must be 1..4, got 5"),
        ("s3fifo", {"ghosts": 0}, "ghosts must be 1..16777216, got 0"),
    ],
)
def test_options_that_mean_nothing(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadArgument) as error:
        eviction.make(name, 4, **options)
    assert str(error.value) == said


@pytest.mark.parametrize("name", NAMES)
def test_one_entry(name: str) -> None:
    assert replayed(name, 1, [1, 1, 2, 1, 2])[1] == [1, 2, 1]


# --- checks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n", "options"), device.CASES)
def test_check_sees_damage(name: str, n: int, options: dict[str, int]) -> None:
    """Nearly every word of every array that is changed; none that decides nothing is among these arrays."""
    policy = eviction.make(name, n, **options)
    cache = device.Cache(policy, n)
    dice = device.Dice(5)
    for _ in range(300):
        cache.access(dice.below(3 * n))
        cache.disturb(dice.below(9), dice.below(n))
    assert policy.check() == 0
    seen = total = 0
    for key, held in arrays_of(policy).items():
        if key in ("_meta", "_key", "_ghost"):
            continue
        for at in range(len(held)):
            if key == "_chain" and at < len(policy._ghost) and policy._ghost[at] < 0:
                continue  # of no ghost
            old = held[at]
            held[at] = old ^ 1
            total += 1
            try:
                seen += policy.check() != 0
            except IndexError:
                seen += 1
            held[at] = old
    assert seen >= total * 0.95
    assert policy.check() == 0


@pytest.mark.parametrize("name", ["lru", "lfu", "hybrid"])
@pytest.mark.parametrize("links", ["_nxt", "_prv"])
def test_check_sees_a_link_of_an_entry_in_no_list(name: str, links: str) -> None:
    policy = eviction.make(name, 8)
    policy.insert(0)
    getattr(policy, links)[3] = 5
    assert policy.check() > 0


def test_check_sees_a_ghost_that_no_chain_leads_to() -> None:
    policy = eviction.make("s3fifo", 8)
    assert policy.check() == 0
    policy._ghost[0] = 5
    assert policy.check() > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", range(5))
def test_check_sees_wrong_counts(name: str, at: int) -> None:
    policy = eviction.make(name, 4)
    policy.insert(0)
    policy._meta[at] += 1
    assert policy.check() > 0


# --- the same everywhere -------------------------------------------------------------------------

SEED, COUNT = 7, 500


@pytest.fixture(scope="module")
def on_cpython() -> list[dict[str, Any]]:
    return [device.run(name, n, options, SEED, COUNT) for name, n, options in device.CASES]


def test_runs_are_no_trivial_ones(on_cpython: list[dict[str, Any]]) -> None:
    assert sum(each["broken"] for each in on_cpython) == 0
    for each in on_cpython:
        assert len(each["victims"]) > 50
        assert each["stats"]["removed"] > 0
        assert each["stats"]["protected"] > 0
    # Without a window hybrid is lfu.
    assert len({str(each["victims"]) for each in on_cpython}) == len(device.CASES) - 1


@pytest.mark.parametrize("how", ["plain", "no-emitter"])
def test_the_device_has_the_same_victims(how: str, upy: Any, on_cpython: list[dict[str, Any]]) -> None:
    assert json.loads(upy.run(DEVICE / "policies.py", [how, SEED, COUNT])) == on_cpython


@pytest.mark.parametrize("board", ["qemu", "qemu_riscv"])
def test_32_bits_have_the_same_victims(
    board: str, request: pytest.FixtureRequest, on_cpython: list[dict[str, Any]]
) -> None:
    said = request.getfixturevalue(board).run(DEVICE / "policies.py", ["plain", SEED, COUNT])
    assert json.loads(said) == on_cpython


@pytest.mark.parametrize("at", range(len(device.CASES)))
def test_compiled_transitions_have_the_same_victims(at: int, on_cpython: list[dict[str, Any]]) -> None:
    name, n, options = device.CASES[at]
    with compiled.swapped(catalogue.POLICIES[name].modules):
        assert device.run(name, n, options, SEED, COUNT, made=widened) == on_cpython[at]


def test_two_runs_are_the_same(on_cpython: list[dict[str, Any]]) -> None:
    name, n, options = device.CASES[-1]
    assert device.run(name, n, options, SEED, COUNT) == on_cpython[-1]
    assert device.run(name, n, options, SEED + 1, COUNT)["victims"] != on_cpython[-1]["victims"]


# --- memory --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    from conftest import Upy

    found: dict[str, Any] = json.loads(Upy().run(DEVICE / "policies.py", ["allocation"]))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_allocated(name: str, measured: dict[str, Any]) -> None:
    """Counted by mem_total; a run with the heap locked has passed before."""
    calls = dict(measured[name])
    assert calls.pop("control") > 0, "the counter sees nothing"
    assert {key: calls[key] for key in ("touch", "turn", "guard", "leave")} == dict.fromkeys(
        ("touch", "turn", "guard", "leave"), 0
    )


@pytest.mark.parametrize("name", NAMES)
def test_bookkeeping_on_a_device(name: str, measured: dict[str, Any]) -> None:
    """What the arrays really take is what metadata_bytes says, some words, and of lfu and hybrid 4 bytes a
    count."""
    counts = 4 * 255 if name in ("lfu", "hybrid") else 0
    assert 0 < measured[name]["arrays"] <= measured[name]["told"] + counts + 80


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [16, 17, 64, 100, 600, 1000, 4096, 20_000])
def test_bookkeeping_is_at_most_16_bytes_an_entry(name: str, n: int) -> None:
    assert eviction.make(name, n).metadata_bytes() <= 16


def test_a_device_says_when_indexes_run_out(upy: Any) -> None:
    said = upy.run(
        "from mpy_kv import eviction\n"
        "try:\n eviction.make('lru', 65536)\nexcept Exception as e:\n print(e)\n"
        "print(eviction.make('lru', 65535).n)",
        heap_bytes=4 << 20,
    )
    assert said == "entries and anchors must be at most 65536, got 65537\n65535\n"


# --- speed ---------------------------------------------------------------------------------------


def test_the_command_that_measures(kvlab: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures are there, each from a run of its own."""
    monkeypatch.setattr(bench, "BY_ENTRIES", (100, 1_000))
    monkeypatch.setattr(bench, "ENTRIES", 1_000)
    monkeypatch.setattr(bench, "PYTHON_ENTRIES", 100)
    monkeypatch.setattr(bench, "_ROUND", 1 << 12)
    path = tmp_path / "f.json"
    status, out, err = kvlab("bench", "policies", "--json", path)
    assert (status, err) == (0, "")
    figures = json.loads(path.read_text())
    for name in NAMES:
        found = figures[name]
        assert found["compiled_accesses_per_s"] > found["python_accesses_per_s"] > 0
        assert found["compiled_accesses_per_s"] == found["by_entries"]["1000"]["accesses_per_s"]
        assert 0 < found["by_entries"]["100"]["miss_ratio"] < 1
        device = found["device"]
        assert device["evict_insert_ns"] > 0
        assert device["touch_over_dict"] == pytest.approx(device["touch_ns"] / device["dict_ns"])
        assert f"{found['device']['touch_ns']:,.0f} ns" in out
