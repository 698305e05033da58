"""What element types and policies cost each model that ships, on stories that another one told; and the same
models with stories260K on held-out stories, which have to be downloaded.

A model is a column, so that a row shows what holds for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from kvlab import paths, shipped
from kvlab.docs.registry import Cost, Producer, named, needs_data
from kvlab.docs.tolerance import EXACT, Tolerance

TOKENS = 24_000
BUDGETS = (128, 64)
COMMAND = f"kvlab quality --tokens {TOKENS} --budgets {','.join(map(str, BUDGETS))}"

# What another processor's rounding makes of these sums, and of a choice between two tokens that are as good.
LOSS = Tolerance(absolute=0.06, points=0.06)
DRIFT = Tolerance(absolute=0.0006)

Figures = Mapping[str, Any]
Cell = Callable[[Figures], str]


def measured(on_heldout: bool, codecs: bool = True, policies: bool = True) -> list[Figures]:
    """The figures of each model; what was measured before is in the user's cache."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kvlab import judging
    from kvlab.element_types import EXACT as FLOAT32
    from kvlab.quality.kinds import CODECS
    from kvlab.quality.policies import POLICIES
    from kvlab.quality.trials import COMPRESS

    asked = judging.Asked(
        [name for name in CODECS if name != FLOAT32] if codecs else [],
        [*POLICIES, COMPRESS] if policies else [],
        ",".join(map(str, BUDGETS)),
        tokens=TOKENS,
    )
    models, text = list(shipped.NAMES), None
    if on_heldout:
        models, text = [str(paths.find_data(paths.STORIES260K)), *models], str(paths.find_data(paths.STORIES))
    return [judging.judge(judging.pairs(model, text)[0], asked)[0] for model in models]


def codec_table(models: Sequence[Figures], cell: Cell) -> str:
    """A row an element type."""
    names = [name for name, each in models[0].items() if isinstance(each, dict) and "of_float16" in each]
    return _table(models, {f"`{name}`": [cell(each[name]) for each in models] for name in names})


def policy_table(models: Sequence[Figures], budget: int, cell: Cell) -> str:
    """A row a policy that keeps `budget` tokens."""
    return _table(models, {f"`{name}`": [cell(by) for by in found] for name, found in _kept(models, budget)})


def compress_table(models: Sequence[Figures], cell: Cell) -> str:
    """A row a part that `compress` keeps."""
    found = [each["policies"]["compress"] for each in models]
    return _table(models, {f"`compress` {ratio}": [cell(by[ratio]) for by in found] for ratio in found[0]})


def verdict_table(models: Sequence[Figures]) -> str:
    """A row a policy, in a cell a verdict for each budget."""
    rows: dict[str, list[str]] = {}
    for budget in BUDGETS:
        for name, found in _kept(models, budget):
            if "against_window" in found[0]:
                said = [verdict(by["against_window"]) for by in found]
                title = f"`{name}`"
                rows[title] = [f"{a}; {b}" for a, b in zip(rows[title], said)] if title in rows else said
    return _table(models, rows)


def _kept(models: Sequence[Figures], budget: int) -> Iterator[tuple[str, list[Figures]]]:
    """Each policy that keeps `budget` tokens, with its figures in each model."""
    for name, by_budget in models[0]["policies"].items():
        if str(budget) in by_budget:
            yield name, [each["policies"][name][str(budget)] for each in models]


def codec_range(models: Sequence[Figures]) -> str:
    """A row an element type: bytes a token of the first model; what it loses, from the model that loses least
    to the one that loses most."""
    names = [name for name, each in models[0].items() if isinstance(each, dict) and "of_float16" in each]
    rows = {
        f"`{name}`": [f"{models[0][name]['bytes_per_token']:,.1f}", _range([each[name] for each in models])]
        for name in names
    }
    first = str(models[0]["model"]).removesuffix(".bin")
    return _rows(("element type", f"bytes a token of `{first}`", "change of perplexity"), rows)


def policy_range(models: Sequence[Figures], budget: int) -> str:
    """A row a policy that keeps `budget` tokens: the same of each."""
    rows = {f"`{name}`": [_range(found)] for name, found in _kept(models, budget)}
    return _rows(("policy", "change of perplexity"), rows)


def _range(found: Sequence[Figures]) -> str:
    known = sorted(each["perplexity_change_pct"] for each in found)
    least, most = _percent(known[0]), _percent(known[-1])
    return f"{least} %" if least == most else f"{least} .. {most} %"


def verdict(beside: Mapping[str, Any]) -> str:
    """By perplexity and by divergence: "<" less than the window's, ">" more, "=" not told apart."""
    intervals = (beside["perplexity_change_interval_pct"], beside["kld_change_interval"])
    return " ".join("<" if high < 0 else ">" if low > 0 else "=" for low, high in intervals)


def lost(each: Figures) -> str:
    """The change of perplexity with its interval."""
    low, high = each["perplexity_change_interval_pct"]
    return f"{_percent(each['perplexity_change_pct'])} % ({_percent(low)} .. {_percent(high)})"


def drifted(each: Figures) -> str:
    """The divergence in nats with its interval."""
    low, high = each["kld_interval"]
    return f"{each['kld']:.4f} ({low:.4f} .. {high:.4f})"


def stored(each: Figures) -> str:
    """Bytes a token, and what of float16 that is."""
    return f"{each['bytes_per_token']:,.1f} ({100 * each['of_float16']:.1f} %)"


def _percent(x: float) -> str:
    text = f"{x:+.2f}" if abs(x) < 99.5 else f"{x:+.0f}"
    return "0.00" if text in ("+0.00", "-0.00") else text


def _table(models: Sequence[Figures], rows: Mapping[str, Sequence[str]]) -> str:
    return _rows(["", *(str(each["model"]).removesuffix(".bin") for each in models)], rows)


def _rows(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    lines = [heads, ["---", *("---:" for _ in heads[1:])]]
    lines += [[title, *cells] for title, cells in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _codecs(_wanted: Collection[str]) -> Mapping[str, str]:
    models = measured(False, policies=False)
    return {
        "quality_types": codec_table(models, lost),
        "quality_types_drift": codec_table(models, drifted),
        "quality_types_bytes": codec_table(models, stored),
        "quality_types_range": codec_range(models),
    }


def _policies(_wanted: Collection[str]) -> Mapping[str, str]:
    models = measured(False, codecs=False)
    by_budget = {f"quality_policies_{budget}": policy_table(models, budget, lost) for budget in BUDGETS}
    return {
        **by_budget,
        "quality_policies_drift": policy_table(models, BUDGETS[0], drifted),
        "quality_against_window": verdict_table(models),
        "quality_policies_range": policy_range(models, BUDGETS[0]),
        "quality_compress": compress_table(models, lost),
    }


def _heldout(_wanted: Collection[str]) -> Mapping[str, str]:
    models = measured(True)
    by_budget = {f"policies_{budget}": policy_table(models, budget, lost) for budget in BUDGETS}
    return {
        **{f"quality_heldout_{name}": table for name, table in by_budget.items()},
        "quality_heldout_types": codec_table(models, lost),
        "quality_heldout_against_window": verdict_table(models),
        "quality_heldout_policies_drift": policy_table(models, BUDGETS[0], drifted),
        "quality_heldout_compress": compress_table(models, lost),
    }


PRODUCERS = (
    Producer(
        "quality_codecs",
        f"kvlab quality --tokens {TOKENS} --policies none",
        Cost.MINUTES,
        {
            "quality_types": LOSS,
            "quality_types_range": LOSS,
            "quality_types_drift": DRIFT,
            "quality_types_bytes": EXACT,
        },
        _codecs,
    ),
    Producer(
        "quality_policies",
        f"{COMMAND} --codecs none",
        Cost.LONG,
        {
            **named(*(f"quality_policies_{budget}" for budget in BUDGETS), tolerance=LOSS),
            "quality_compress": LOSS,
            "quality_policies_range": LOSS,
            "quality_policies_drift": DRIFT,
            "quality_against_window": EXACT,
        },
        _policies,
    ),
    Producer(
        "quality_heldout",
        f"{COMMAND} --model stories260K.bin --text stories.jsonl",
        Cost.LONG,
        {
            **named(*(f"quality_heldout_policies_{budget}" for budget in BUDGETS), tolerance=LOSS),
            **named("quality_heldout_types", "quality_heldout_compress", tolerance=LOSS),
            "quality_heldout_policies_drift": DRIFT,
            "quality_heldout_against_window": EXACT,
        },
        _heldout,
        needs_data(paths.STORIES260K, paths.STORIES),
    ),
)
