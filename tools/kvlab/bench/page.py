"""The tables of docs/PERFORMANCE.md, and of what choices cost in docs/CHOOSING.md, made of the figures of
`kvlab bench ... --target qemu`.

A table stands between `<!-- NAME -->` and `<!-- end -->`; all else on the page is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvlab import files, paths
from kvlab.bench import choices, kernels, tokens, worst
from kvlab.errors import BadInput

PAGE = paths.ROOT / "docs" / "PERFORMANCE.md"
CHOOSING = paths.ROOT / "docs" / "CHOOSING.md"

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
}
NAMES = ("products", "calls", "token", "storing", "limits", *WORST)
CHOICES = ("codec_costs", "policy_costs")


def costs(figures: Figures) -> dict[str, str]:
    """The tables of docs/CHOOSING.md, of what `bench choices` counts."""
    made = (
        _table(choices.CODECS_HEADER, choices.codec_rows(figures)),
        _table(choices.POLICIES_HEADER, choices.policy_rows(figures)),
    )
    return dict(zip(CHOICES, made, strict=True))


def tables(of_kernels: Figures, of_tokens: Figures, of_worst: Figures) -> dict[str, str]:
    """Every table by its name."""
    made = (
        *(products(of_kernels), calls(of_kernels)),
        *(one_token(of_tokens), storing(of_tokens), limits(of_tokens)),
        *(dearest(of_worst, names) for names in WORST.values()),
    )
    return dict(zip(NAMES, made, strict=True))


def read(text: str) -> dict[str, str]:
    """The tables that a page shows, by name."""
    found = re.findall(r"<!-- (\w+) -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    return dict(found)


def rewritten(text: str, new: Mapping[str, str], option: str = "--page") -> str:
    """The page with `new` in place of its tables. BadInput unless each has its place."""
    for name, table in new.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _old, end, after = rest.partition("<!-- end -->")
        if not end:
            raise BadInput(f"{option}: no place for the table {name}: <!-- {name} --> ... <!-- end -->")
        text = f"{before}{start}{table}\n{end}{after}"
    return text


def check(page: Path, names: Sequence[str] = NAMES, option: str = "--page") -> None:
    """BadInput unless it is a page with a place for every table."""
    try:
        text = files.existing_file(page, option).read_text(encoding="utf-8")
    except ValueError as error:
        raise BadInput(f"{option} {page}: not a page of text") from error
    rewritten(text, dict.fromkeys(names, ""), option)


def write(page: Path, new: Mapping[str, str], option: str = "--page") -> None:
    """Put tables into a page that check() has let pass."""
    text = rewritten(page.read_text(encoding="utf-8"), new, option)
    files.write(page, text.encode(), option)
