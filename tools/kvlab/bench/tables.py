"""The tables of docs/PERFORMANCE.md, and of what choices cost in docs/CHOOSING.md, in Markdown, made of the
figures of `kvlab bench ... --target qemu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kvlab.bench import choices, kernels, tokens, worst

Figures = Mapping[str, Any]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rules = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rules, *rows))


def _kernels(figures: Figures, places: int, find: Callable[[Figures, str], float]) -> str:
    names = kernels.variants(figures)
    rows = [
        (f"{kernel.upper()}, rows of {width}", *(f"{find(by, name):,.{places}f}" for name in names))
        for kernel in kernels.KERNELS
        for width, by in ((width, figures[kernel][width]) for width in kernels.WIDTHS)
    ]
    return _table(("", *(kernels.TITLES.get(name, name) for name in names)), rows)


def products(figures: Figures) -> str:
    return _kernels(figures, 2, lambda by, name: by[name])


def calls(figures: Figures) -> str:
    return _kernels(figures, 0, lambda by, name: by["per_call"][name])


def one_token(figures: Figures) -> str:
    costs = tokens.costs(figures)
    names = list(next(iter(costs.values())))
    rows = [(f"{int(at) + 1} in view", *(f"{by[name]:,}" for name in names)) for at, by in costs.items()]
    return _table(("", *names), rows)


def storing(figures: Figures) -> str:
    cache = figures["cache"]
    rows = tokens.append_rows(cache)
    rows.append(("commit, five layers", f"{cache['commit']:,.0f}", "-"))
    rows += [
        (f"step of one layer, {window} in view", f"{by['early']:,.0f}", f"{by['millionth']:,.0f}")
        for window, by in cache["step_by_window"].items()
    ]
    return _table(("", "from the hundredth token on", "from the millionth on"), rows)


def limits(figures: Figures) -> str:
    by_board = figures["limits"]
    names = list(next(iter(tokens.costs(figures).values())))
    rows = []
    for board, by in by_board.items():
        cores = by["core_tokens_per_s"]
        found = [f"{cores[name]:,.1f}" if name in cores else "-" for name in names]
        read = f"{by['weights_read_bytes']:,} + {by['kv_read_bytes']:,}"
        rows.append((board, f"{by['clock_hz'] / 1e6:g}", *found, read, f"{by['bus_tokens_per_s']:,.1f}"))
    header = ("", "clock, MHz", *(f"core, {name}" for name in names), "bytes read", "buses")
    return _table(header, rows)


def dearest(figures: Figures, names: Sequence[str]) -> str:
    rows = [(f"`{name}`", *cells) for name, *cells in worst.rows(figures, names)]
    return _table(("", "calls", "min", "mean", "max", "at call"), rows)


WORST = {
    "worst": worst.RING,
    "worst_pools": worst.POOLS,
    "worst_requests": worst.REQUESTS,
    "worst_policies": worst.POLICIES,
    "worst_tokens": worst.TOKENS,
    "worst_bus": worst.BUS,
    "worst_dma": worst.DMA,
}


def accuracy(worst: Mapping[str, Mapping[str, Any]]) -> str:
    """Of what bench.accuracy.search found: a row a distribution, a column an element type."""
    from kvlab.bench.accuracy import TITLES, tables

    rows, header = tables.errors(worst, seeds=False)
    unit = dict.fromkeys(tables.IN_CODES, ", in codes")
    named = [(f"`{name}`: {TITLES[name]}{unit.get(name, '')}", *cells) for name, *cells in rows]
    return _table(header, named)


def choices_tables(figures: Figures) -> dict[str, str]:
    """Of what `bench choices` counts."""
    return {
        "codec_costs": _table(choices.CODECS_HEADER, choices.codec_rows(figures)),
        "policy_costs": _table(choices.POLICIES_HEADER, choices.policy_rows(figures)),
    }


def kernels_tables(figures: Figures) -> dict[str, str]:
    """Of what `bench kernels` counts."""
    return {"products": products(figures), "calls": calls(figures)}


def tokens_tables(figures: Figures) -> dict[str, str]:
    """Of what `bench tokens` counts."""
    return {"token": one_token(figures), "storing": storing(figures), "limits": limits(figures)}


def worst_tables(figures: Figures) -> dict[str, str]:
    """Of what `bench worst` counts."""
    return {name: dearest(figures, operations) for name, operations in WORST.items()}
