"""Instructions on the emulated 32-bit board: the tables of `kvlab bench`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kvlab.docs.registry import Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import INSTRUCTIONS

SHARES = "tools/kvlab/plots/token.json"  # what the picture of a token's instructions is drawn from
SINGLE = ("token_thumb", "token_viper", "first_word", "first_word_remembered")
WORST = ("worst", "worst_pools", "worst_requests", "worst_policies", "worst_tokens", "worst_bus", "worst_dma")


def _kernels(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab.bench import kernels, tables, targets

    targets.prepare(targets.QEMU)
    figures = kernels.measure(targets.QEMU, _nothing)
    return {**tables.kernels_tables(figures), "products_8": _rows_of_8(figures)}


def _rows_of_8(figures: Mapping[str, Any]) -> str:
    """QK and AV over rows of 8, by kernel set, in a sentence."""
    said = []
    for name, title in (("thumb", "Thumb"), ("viper", "viper"), ("c_o2", "gcc -O2")):
        said.append(f"{title} " + ", ".join(f"{figures[kernel]['8'][name]:.2f}" for kernel in ("qk", "av")))
    return "; ".join(said)


def _tokens(_wanted: Collection[str]) -> Mapping[str, str | bytes]:
    from kvlab import output, paths
    from kvlab.bench import first_word, tables, targets, tokens

    targets.prepare(targets.QEMU)
    figures = tokens.measure(targets.QEMU, paths.SHIPPED, tokens.POSITIONS, _nothing)
    costs = tokens.costs(figures)
    last = costs[max(costs, key=int)]
    single = {f"token_{name}": f"{count / 1e6:.2f} M" for name, count in last.items()}
    single |= {name: f"{figures[name] / 1e6:.0f} M" for name in first_word.STARTS}
    counted = {key: figures[key] for key in ("model_id", "window", tokens.COUNTED)}
    at = max(figures["shares"], key=int)
    counted["shares"] = {at: {name: dict(sorted(by.items())) for name, by in figures["shares"][at].items()}}
    return {**tables.tokens_tables(figures), **single, SHARES: output.as_json(counted)}


def _worst(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab.bench import tables, targets, worst

    targets.prepare(targets.QEMU)
    return tables.worst_tables(worst.measure(worst.CALLS, _nothing))


def _choices(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab.bench import choices, tables, targets

    targets.prepare(targets.QEMU)
    return tables.choices_tables(choices.measure(_nothing))


def _nothing(_steps: int) -> None:
    """What is asked how far it has come."""


PRODUCERS = (
    Producer(
        "bench_kernels",
        "kvlab bench kernels --target qemu",
        Cost.MINUTES,
        named("products", "calls", "products_8", tolerance=INSTRUCTIONS),
        _kernels,
        needs_firmware,
    ),
    Producer(
        "bench_tokens",
        "kvlab bench tokens --target qemu",
        Cost.MINUTES,
        named(*("token", "storing", "limits", *SINGLE, SHARES), tolerance=INSTRUCTIONS),
        _tokens,
        needs_firmware,
    ),
    Producer(
        "bench_choices",
        "kvlab bench choices",
        Cost.MINUTES,
        named("codec_costs", "policy_costs", tolerance=INSTRUCTIONS),
        _choices,
        needs_firmware,
    ),
    Producer(
        "bench_worst",
        "kvlab bench worst",
        Cost.LONG,
        named(*WORST, tolerance=INSTRUCTIONS),
        _worst,
        needs_firmware,
    ),
)
