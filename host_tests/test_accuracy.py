"""How exact attention is: the search finds what is wrong, and known inputs have their known results."""

from __future__ import annotations

import functools
import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kv_reference
import numpy as np
import pytest

from kvlab import cli
from kvlab.bench.accuracy import TITLES, adversary, curves, known, reference, runner, stored
from kvlab.bench.accuracy.distributions import DISTRIBUTIONS
from kvlab.bench.accuracy.inputs import DOMAIN, RATIO, Array, Case, Drawn
from kvlab.bench.accuracy.search import Settings, headline, is_quick, search
from kvlab.element_types import HELD, NAMES
from mpy_kv import Geometry, cache_for, geometry_for, kernels
from mpy_kv.geometry import default_group
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.token_eviction import BudgetCache


def marked(name: str, codec: str, *words: Any) -> Any:
    """Arguments of a test with an input; those with very many tokens take long."""
    marks = [pytest.mark.exhaustive] if name in ("tail-65536", "constant-65536") else []
    return pytest.param(*words, id=f"{name}-{codec}", marks=marks)


# Every known input in every element type that is quick with it.
PAIRS = [
    marked(each.name, codec, each, codec)
    for each in known.CASES
    for codec in NAMES
    if is_quick(codec, each.case().keys.size)
]


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


@pytest.mark.parametrize(("each", "codec"), PAIRS)
def test_known_results_are_computed(each: known.Known, codec: str, upy: Any) -> None:
    (found,) = known.computed([(each, codec)])
    assert found.good, f"{found.result}, not {found.reference}: {found.off:.2%} off"


def steps(sequence: Any, drawn: Drawn) -> Array:
    """The result after the last token, of layer 0, of a cache or a request."""
    out = array("f", bytes(4 * drawn.head_dim))
    query = array("f", drawn.queries[0].tobytes())
    for key, value in zip(drawn.keys, drawn.values, strict=True):
        k, v = array("f", key.tobytes()), array("f", value.tobytes())
        for layer in range(sequence.geometry.layers):
            sequence.append(layer, k, v)
            sequence.attend(layer, query, out)
            if layer == 0:
                result = np.array(out, np.float64)
        sequence.commit()
    return result


def in_a_ring(drawn: Drawn) -> Array:
    """That has gone round: seven tokens before, which are out of the window."""
    geometry = geometry_for("int8", 1, 1, 1, drawn.head_dim, window=drawn.tokens, sinks=0)
    cache = cache_for(geometry, kernels=kernels.get("plain"))
    before = np.ones((7, drawn.head_dim), np.float32)
    keys, values = (np.concatenate([before, x]) for x in (drawn.keys, drawn.values))
    return steps(cache, Drawn(keys, values, drawn.queries))


def with_a_budget(drawn: Drawn) -> Array:
    geometry = Geometry(1, 1, 1, drawn.head_dim, window=drawn.tokens, sinks=0)
    return steps(BudgetCache(geometry, kernels=kernels.get("plain"), policy="lru-attention"), drawn)


def of_a_request(drawn: Drawn) -> Array:
    """Whose pages are half as long as what is in view, and one more."""
    pages = drawn.tokens // 2 + 1
    geometry = PagedGeometry(1, 1, 1, drawn.head_dim, capacity=32, block_tokens=pages)
    requests = Requests(geometry, 32, kernels=kernels.get("plain"))
    return steps(requests.open(), drawn)


def in_mixed_layers(drawn: Drawn) -> Array:
    geometry = geometry_for(["int8", "float16"], 2, 1, 1, drawn.head_dim, window=drawn.tokens, sinks=0)
    sets = {name: kernels.of(name).get("plain") for name in geometry.types}
    return steps(cache_for(geometry, kernels=sets), drawn)


KINDS = (in_a_ring, with_a_budget, of_a_request, in_mixed_layers)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "each",
    [marked(each.name, "int8", each) for each in known.CASES if each.case().keys.size < 100],
)
def test_known_results_are_computed_by_every_kind_of_cache(each: known.Known, kind: Any) -> None:
    """All with int8 in layer 0."""
    case = each.case("int8")
    found = reference.errors(case, kind(each.make())[None, None])
    assert found.l2.max() <= known.WITHIN
    assert found.excess.max() <= known.BEYOND


@pytest.mark.parametrize("each", [marked(each.name, each.codec, each) for each in known.KEPT])
def test_steps_forth_and_back_change_nothing(each: known.Kept) -> None:
    assert each.good(each.compute())


def random_case(codec: str, head_dim: int, tokens: int, sinks: int = 0, kv_heads: int = 1) -> Case:
    rng = np.random.default_rng(tokens + head_dim)
    keys, values = rng.normal(size=(2, tokens, kv_heads * head_dim)).astype(np.float32)
    queries = rng.normal(size=(2 * kv_heads, head_dim)).astype(np.float32)
    return Case.of(codec, Drawn(keys, values, queries, sinks, kv_heads))


@pytest.mark.parametrize("codec", NAMES)
@pytest.mark.parametrize(
    ("head_dim", "tokens", "sinks", "kv_heads"), [(5, 50, 0, 1), (8, 49, 4, 3), (64, 3, 0, 1)]
)
def test_what_is_stored_is_what_a_cache_reads_back(
    codec: str, head_dim: int, tokens: int, sinks: int, kv_heads: int
) -> None:
    """While the last token is attended: it is appended and not committed."""
    case = random_case(codec, head_dim, tokens, sinks, kv_heads)
    room = {"window": tokens - sinks, "sinks": sinks} if sinks else {"capacity": tokens}
    geometry = geometry_for(codec, 1, kv_heads, kv_heads, head_dim, **room)
    cache = cache_for(geometry, kernels=kernels.of(codec).get("plain"))
    for k, v in zip(case.keys[:-1], case.value_sets[0, :-1], strict=True):
        cache.append(0, k.copy(), v.copy())
        cache.commit()
    for which, rows in (("k", stored.keys(case)), ("v", stored.values(case)[0])):
        back = [cache.read(0, which, p) for p in range(tokens - 1)]
        assert np.array_equal(np.array(back), rows[:-1])


def test_the_reference_is_that_of_the_other_tests() -> None:
    case = random_case("float32", 12, 20, kv_heads=2)
    want = []
    for h, query in enumerate(case.queries):
        mine = slice(12 * (h // 2), 12 * (h // 2) + 12)
        seen = kv_reference.quantise_query(query.astype(float))[0]
        want.append(kv_reference.attention(seen, case.keys[:, mine], case.value_sets[0, :, mine]))
    assert np.allclose(reference.attention(case)[0], want, rtol=1e-12)
    assert not reference.errors(case, reference.attention(case)).l2.any()


@pytest.mark.parametrize("name", [name for name in TITLES if DISTRIBUTIONS[name].bounded])
def test_inputs_of_a_seed_are_always_the_same_and_within_the_domain(name: str) -> None:
    distribution = DISTRIBUTIONS[name]
    for seed in range(6):
        drawn, again = (distribution.inputs(seed, tokens=80) for _ in range(2))
        assert drawn.tokens == 80
        for x, y in ((drawn.keys, again.keys), (drawn.values, again.values), (drawn.queries, again.queries)):
            assert np.isfinite(x).all()
            assert np.array_equal(x, y)
        for x in (drawn.keys, drawn.values):
            group = default_group(drawn.kv_heads, drawn.head_dim)
            tops = np.abs(x).reshape(len(x), -1, group).max(-1)
            assert tops.max() <= RATIO * tops[tops > 0].min()
        for h, query in enumerate(np.abs(drawn.queries)):
            head = h * drawn.kv_heads // len(drawn.queries)
            mine = slice(head * drawn.head_dim, (head + 1) * drawn.head_dim)
            reach = np.abs(drawn.keys[:, mine]) @ query / np.sqrt(drawn.head_dim)
            assert reach.max() <= DOMAIN


# --- Whatever the weights ------------------------------------------------------------------------

SEARCHED = 504  # seeds of each distribution, a share of them for each element type
LIMITS = dict.fromkeys(TITLES, 0.01) | {"against": 0.02, "constant": 1 / 8, "beyond": np.inf}
# Of a key of int4 each product with the query keeps 10 bits, which scores of 32 show.
WIDER = {("far", "int4"): 0.025}


def searched(name: str, codec: str) -> dict[str, Any]:
    share = SEARCHED // len(HELD)
    found: dict[str, Any] = search(
        Settings((codec,), (name,), share, share * HELD.index(codec)), lambda _: None
    )
    return found[codec][name]


SEARCHES = [marked(name, codec, name, codec) for name in TITLES for codec in HELD]


@pytest.mark.parametrize(("name", "codec"), SEARCHES)
def test_errors_stay_within_their_limits(name: str, codec: str, upy: Any) -> None:
    """And no result exceeds what is stored in its channel: of int4, where a middle and a code may make up for
    one another, in any channel."""
    of = searched(name, codec)
    assert headline(name, of)["value"] <= WIDER.get((name, codec), LIMITS[name])
    within = "of_largest" if codec == "int4" or name == "beyond" else "excess"
    assert of[within]["value"] <= known.BEYOND


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
        rows[rows & 0xFFFF < self.least] = 0
        return done


def found_by(settings: Settings, kernel_set: Any) -> dict[str, Any]:
    found: dict[str, Any] = search(
        settings, lambda _: None, functools.partial(runner.here, kernels_of=lambda _: kernel_set)
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
    settings = Settings(("int8",), ("against",), 8, head_dim=8, tokens=64)
    chosen = search(settings, lambda _: None)["int8"]["against"]["mean_l2"]
    rng = np.random.default_rng(0)
    cases = []
    for seed in range(8):
        drawn = DISTRIBUTIONS["against"].inputs(seed, 8, 64)
        drawn.values *= rng.choice([-1, 1], size=(64, 1)).astype(np.float32)
        cases.append(Case.of("int8", drawn))
    results = zip(cases, runner.on_unix(cases), strict=True)
    by_chance = [reference.errors(case, got).l2.mean() for case, got in results]
    assert chosen > 1.5 * np.mean(by_chance)


# --- The command ---------------------------------------------------------------------------------


def test_native_kernels_and_plain_ones_agree(upy: Any) -> None:
    cases = [random_case(codec, 5, 20, kv_heads=kv_heads) for codec in NAMES for kv_heads in (1, 2)]
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
    cases = json.loads(path.read_text())["cases"]
    assert [each["name"] for each in cases] == ["light", "far", "denormal"]
    assert "wrong" not in capsys.readouterr().out.split("off by")[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "3", "--seeds", "9"], "--seeds: has no effect with --seed"),
        (["--cases", "--tokens", "9"], "--tokens: has no effect with --cases"),
        (["--distribution", "sinks", "--tokens", "5"], "--tokens 5: sinks takes 6 at least"),
        (["--head-dim", "256", "--tokens", "65536"], "--tokens 65536: at most 8,388,608 / head_dim"),
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
    accuracy.draw(figures, tmp_path / "accuracy.png", "--plot")
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")
