"""How exact attention is: the search finds what is wrong, and known inputs have their known results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import kv_reference
import numpy as np
import pytest

from kvlab import cli
from kvlab.bench.accuracy import TITLES, adversary, curves, known, reference, runner, stored
from kvlab.bench.accuracy.distributions import DISTRIBUTIONS
from kvlab.bench.accuracy.inputs import DOMAIN, Array, Case, Drawn
from kvlab.bench.accuracy.search import Settings, is_quick, search
from kvlab.element_types import HELD, NAMES
from mpy_kv import cache_for, geometry_for, kernels

BATCH = "a batch of 8 tokens has 252 units of weight: beside a heavy token the light ones vanish or round up"
UNIT = "the unit of the whole sum is capped"
MIDDLES = "the middles of sealed values are rounded to a unit that grows with the number of tokens"
ONE_EXPONENT = "float16 takes one exponent for all tokens"
FAR_KEYS = "a scale relative to the largest has too few bits where that is 1,024 times as large"
DENORMAL = "a denormal scale is not normalised before results are made of it"
REOPENED = "each reopening of a block quantises anew"

# What is wrong yet, by name and element type, and why.
WRONG: dict[tuple[str, str], str] = {
    **{("light", codec): BATCH for codec in NAMES},
    ("tail-4096", "int4"): MIDDLES,
    **{(name, codec): UNIT for name in ("tail-16384", "tail-65536", "constant-65536") for codec in HELD},
    ("far", "float16"): ONE_EXPONENT,
    ("far", "float32"): ONE_EXPONENT,
    **{("far", codec): FAR_KEYS for codec in ("int8", "int8-int4", "int4", "sparse")},
    **{("denormal", codec): DENORMAL for codec in ("int8", "int4", "sparse")},
    ("reopened", "int4"): REOPENED,
}


def pairs() -> list[Any]:
    """Every known input in every element type that is quick with it."""
    found = []
    for each in known.CASES:
        for codec in NAMES:
            if is_quick(codec, each.case().keys.size):
                marks = [pytest.mark.exhaustive] if each.name.endswith("65536") else []
                why = WRONG.get((each.name, codec))
                marks += [pytest.mark.xfail(strict=True, reason=why)] if why else []
                found.append(pytest.param(each, codec, id=f"{each.name}-{codec}", marks=marks))
    return found


@pytest.mark.parametrize("each", known.CASES, ids=lambda each: each.name)
def test_known_results_are_right(each: known.Known) -> None:
    """Of the inputs as they are, and of what each element type stores of them."""
    drawn = each.make()
    score = drawn.keys.astype(float) @ drawn.queries[0].astype(float) / np.sqrt(drawn.head_dim)
    weights = np.exp(score - score.max())
    exact = weights @ drawn.values / weights.sum()
    assert exact[each.channel] == pytest.approx(each.right, rel=2e-4)
    for codec in NAMES:
        found = reference.attention(each.case(codec))[0, 0, each.channel]
        assert found == pytest.approx(each.right, rel=0.016)


@pytest.mark.parametrize(("each", "codec"), pairs())
def test_known_results_are_computed(each: known.Known, codec: str, upy: Any) -> None:
    (found,) = known.computed([(each, codec)])
    assert found.good, f"{found.result}, not {found.reference}: {found.off:.2%} off"


@pytest.mark.parametrize(
    "each",
    [
        pytest.param(
            each,
            id=each.name,
            marks=[pytest.mark.xfail(strict=True, reason=WRONG[each.name, each.codec])]
            if (each.name, each.codec) in WRONG
            else [],
        )
        for each in known.KEPT
    ],
)
def test_steps_forth_and_back_change_nothing(each: known.Kept) -> None:
    assert each.good(each.compute())


def random_case(codec: str, head_dim: int, tokens: int, sinks: int = 0) -> Case:
    rng = np.random.default_rng(tokens + head_dim)
    keys, values = rng.normal(size=(2, tokens, head_dim)).astype(np.float32)
    queries = rng.normal(size=(2, head_dim)).astype(np.float32)
    return Case.of(codec, Drawn(keys, values, queries, sinks))


@pytest.mark.parametrize("codec", NAMES)
@pytest.mark.parametrize(("head_dim", "tokens", "sinks"), [(5, 50, 0), (12, 49, 4), (64, 3, 0)])
def test_what_is_stored_is_what_a_cache_reads_back(
    codec: str, head_dim: int, tokens: int, sinks: int
) -> None:
    """While the last token is attended: it is appended and not committed."""
    case = random_case(codec, head_dim, tokens, sinks)
    room = {"window": tokens - sinks, "sinks": sinks} if sinks else {"capacity": tokens}
    geometry = geometry_for(codec, 1, 1, 1, head_dim, **room)
    cache = cache_for(geometry, kernels=kernels.of(codec).get("plain"))
    for k, v in zip(case.keys[:-1], case.value_sets[0, :-1], strict=True):
        cache.append(0, k.copy(), v.copy())
        cache.commit()
    for which, rows in (("k", stored.keys(case)), ("v", stored.values(case)[0])):
        back = [cache.read(0, which, p) for p in range(tokens - 1)]
        assert np.array_equal(np.array(back), rows[:-1])


def test_the_reference_is_that_of_the_other_tests() -> None:
    case = random_case("float32", 12, 20)
    want = [
        kv_reference.attention(kv_reference.quantise_query(q.astype(float))[0], case.keys, case.value_sets[0])
        for q in case.queries
    ]
    assert np.allclose(reference.attention(case)[0], want, rtol=1e-12)
    assert not reference.errors(case, reference.attention(case)).l2.any()


@pytest.mark.parametrize("name", TITLES)
def test_inputs_of_a_seed_are_always_the_same_and_within_the_domain(name: str) -> None:
    distribution = DISTRIBUTIONS[name]
    for seed in range(6):
        drawn, again = (distribution.inputs(seed, tokens=80) for _ in range(2))
        assert drawn.tokens == 80
        for x, y in ((drawn.keys, again.keys), (drawn.values, again.values), (drawn.queries, again.queries)):
            assert np.isfinite(x).all()
            assert np.array_equal(x, y)
        reach = np.abs(drawn.queries) @ np.abs(drawn.keys).T / np.sqrt(drawn.head_dim)
        assert reach.max() <= DOMAIN


# --- The search finds what is there --------------------------------------------------------------


class Broken:
    """int8's plain kernels, which lose every small weight of few units."""

    def __init__(self, least: int) -> None:
        full = kernels.get("plain")
        for name in dir(full):
            if not name.startswith("_") and name != "weights":
                setattr(self, name, getattr(full, name))
        self.least = least
        self.right = full.weights

    def weights(self, buf: Any, same: Any, tables: Any, a: Any) -> int:
        done: int = self.right(buf, same, tables, a)
        rows = np.frombuffer(buf, "<i4", a[0], a[11])  # N numbers at DOTS
        rows[rows < self.least] = 0
        return done


def found_by(settings: Settings, kernel_set: Any) -> dict[str, Any]:
    found: dict[str, Any] = search(
        settings, lambda _: None, partial(runner.here, kernels_of=lambda _: kernel_set)
    )
    return found["int8"]


def test_the_search_finds_a_broken_kernel_set() -> None:
    """In the distribution that has light tokens beside a heavy one; and with which seed."""
    settings = Settings(("int8",), ("heavy",), 6, head_dim=4, tokens=9)
    whole = found_by(settings, kernels.get("plain"))["heavy"]["l2"]
    broken = Broken(12)
    worst = found_by(settings, broken)["heavy"]["l2"]
    assert worst["value"] > 0.1 > 0.03 > whole["value"]
    alone = found_by(Settings(("int8",), ("heavy",), 1, worst["seed"], 4, 9), broken)["heavy"]["l2"]
    assert alone == worst


def exactly(cases: Sequence[Case]) -> list[Array]:
    return [reference.attention(case) for case in cases]


@pytest.mark.parametrize("codec", NAMES)
def test_the_adversary_finds_the_weights_that_are_used(codec: str) -> None:
    """Here those of the reference, with one that is a thousandth too large: against which it then turns the
    values."""
    drawn = DISTRIBUTIONS["against"].inputs(3, 8, 20)
    probes: list[Case] = []

    def run(cases: Sequence[Case]) -> list[Array]:
        probes.extend(cases)
        return [
            got + 0.001 * stored.values(case)[:, None, 7]
            for case, got in zip(cases, exactly(cases), strict=True)
        ]

    (case,) = adversary.sharpened(codec, [drawn], run)
    used = adversary.used_weights(probes[0], run(probes[:1])[0])
    want = reference.weights(drawn.queries, stored.keys(probes[0]))
    want[:, 7] += 0.001
    assert np.allclose(used, want, atol=1e-6)
    assert case.value_sets[0, 7, 0] > 0


def test_the_adversary_is_worse_than_chance(upy: Any) -> None:
    settings = Settings(("int8",), ("against",), 8, head_dim=8, tokens=12)
    chosen = search(settings, lambda _: None)["int8"]["against"]["mean_l2"]
    rng = np.random.default_rng(0)
    cases = []
    for seed in range(8):
        drawn = DISTRIBUTIONS["against"].inputs(seed, 8, 12)
        drawn.values *= rng.choice([-1, 1], size=(12, 1)).astype(np.float32)
        cases.append(Case.of("int8", drawn))
    results = zip(cases, runner.on_unix(cases), strict=True)
    by_chance = [reference.errors(case, got).l2.mean() for case, got in results]
    assert chosen > 1.5 * np.mean(by_chance)


# --- The command ---------------------------------------------------------------------------------


def test_native_kernels_and_plain_ones_agree(upy: Any) -> None:
    cases = [random_case(codec, 5, 20) for codec in NAMES]
    here = runner.here(cases, lambda codec: kernels.of(codec).get("plain"))
    for one, other in zip(here, runner.on_unix(cases), strict=True):
        assert np.array_equal(one, other)


def test_command(tmp_path: Path, upy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "accuracy.json"
    words = ["bench", "accuracy", "--codec", "int8", "--distribution", "heavy", "--distribution", "normal"]
    assert cli.main([*words, "--seeds", "5", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())
    assert figures["settings"]["seeds"] == 5
    worst = figures["worst"]["int8"]["heavy"]["l2"]
    assert f"{100 * worst['value']:.2f} %" in capsys.readouterr().out
    assert cli.main([*words, "--seed", str(worst["seed"]), "--json", str(path)]) == 0
    assert json.loads(path.read_text())["worst"]["int8"]["heavy"]["l2"] == worst


def test_command_with_known_inputs(tmp_path: Path, upy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.json"
    assert cli.main(["bench", "accuracy", "--cases", "--codec", "float32", "--json", str(path)]) == 0
    names = [each["name"] for each in json.loads(path.read_text())["cases"]]
    assert names == ["light", "far", "denormal"]
    assert "wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "3", "--seeds", "9"], "--seeds: has no effect with --seed"),
        (["--cases", "--tokens", "9"], "--tokens: has no effect with --cases"),
        (["--distribution", "sinks", "--tokens", "5"], "--tokens 5: sinks takes 6 at least"),
        (["--distribution", "norm"], "norm"),
    ],
)
def test_command_refuses(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "accuracy", *words]) == 2
    assert said in capsys.readouterr().err


def test_picture(tmp_path: Path) -> None:
    from kvlab.plots import accuracy

    def run(cases: Sequence[Case]) -> list[Array]:
        return [got * 1.01 for got in exactly(cases)]

    few = {"FEW": (3, 9), "TOKENS": (2, 64), "SEEDS": 2}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in few.items():
            patch.setattr(curves, name, value)
        figures = curves.measure(("int8", "float32"), lambda _: None, run)
    assert len(figures["by_share"]["int8"]) == len(curves.SHARES)
    assert len(figures["by_tokens"]["float32"]) == 2
    accuracy.draw(figures, tmp_path / "accuracy.png", "--picture")
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")
