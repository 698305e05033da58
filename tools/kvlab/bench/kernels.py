"""Time per multiply-accumulate of the attention kernels, measured on the target itself."""

from __future__ import annotations

from typing import Any

from kvlab import paths
from kvlab.errors import FellShort
from unix_port import port

TARGETS = ("unix",)


def measure(target: str, head_dim: int, tokens: int) -> dict[str, Any]:
    """{"qk": {"plain_ns", "unrolled_ns", "viper_ns", "ratio"}, "av": ...}; ns per product.

    ratio: the faster of the plain twin and the unrolled bytecode loop, over viper, in one run.
    """
    done = port.run(
        [str(paths.APPS / "bench" / "kernels.py"), str(head_dim), str(tokens)],
        heap_bytes=16 << 20,
        timeout_s=300,
    )
    if done.status != 0:
        raise FellShort(
            f"bench kernels: the run on target {target} failed: {done.stderr.strip() or done.stdout}"
        )
    seen = done.answer()
    if seen["kernels"] != "viper":
        raise FellShort(
            f"bench kernels: viper is not usable on target {target}, only {seen['kernels']}"
        )
    figures: dict[str, Any] = {
        "target": target,
        "head_dim": head_dim,
        "tokens": tokens,
    }
    for name in ("qk", "av"):
        times = seen[name]
        figures[name] = {
            "plain_ns": times["plain"],
            "unrolled_ns": times["unrolled"],
            "viper_ns": times["fast"],
            "ratio": min(times["plain"], times["unrolled"]) / times["fast"],
        }
    return figures
