"""Cost of a multiply-accumulate in the attention kernels, measured on the target itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commandline.errors import FellShort
from kvlab.bench import targets, twin
from kvlab.bench.targets import Steps

KERNELS = ("qk", "av")
WIDTHS = ("8", "64")  # of products.py
VARIANTS = ("plain", "viper", "thumb", *twin.LEVELS)
TITLES = {"c_o2": "C, gcc -O2", "c_o3": "C, gcc -O3"}
STEPS = 8 * len(VARIANTS)  # at most


def measure_ratio(head_dim: int, tokens: int) -> dict[str, Any]:
    """{"qk": {"plain_ns", "unrolled_ns", "viper_ns", "ratio"}, "av": ...} on the unix port; ns per product.

    ratio: the faster of the plain twin and the unrolled bytecode loop, over viper, in one run.
    """
    seen = targets.run(targets.UNIX, "kernels.py", [head_dim, tokens], lambda _steps: None)
    if seen["kernels"] != "viper":
        raise FellShort(f"viper is not usable on --target {targets.UNIX}, only {seen['kernels']}")
    figures: dict[str, Any] = {"target": targets.UNIX, "head_dim": head_dim, "tokens": tokens}
    for name in KERNELS:
        times = seen[name]
        figures[name] = {
            "plain_ns": times["plain"],
            "unrolled_ns": times["unrolled"],
            "viper_ns": times["fast"],
            "ratio": min(times["plain"], times["unrolled"]) / times["fast"],
        }
    return figures


def measure(target: str, steps: Steps) -> dict[str, Any]:
    """{"qk": {"8": {"plain", "viper", ..., "per_call": {...}}, "64": ...}, "av": ..., "unit"} on any target.

    Per product, flushes in; per call what is left at no tokens. On the emulated board in instructions, with
    the C twin; elsewhere in nanoseconds and only the variants that the target has.
    """
    folders = twin.build() if target == targets.QEMU else {}
    words = [word for named in folders.items() for word in named]
    figures = targets.run(target, "products.py", words, steps)
    return {"target": target, **targets.ordered(figures, *KERNELS, *VARIANTS)}


def variants(figures: Mapping[str, Any]) -> list[str]:
    """Those that were measured, in the order to show them."""
    return [name for name in VARIANTS if name in figures["qk"][WIDTHS[0]]]
