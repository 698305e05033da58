"""Misses of the eviction policies on traces that a reader has to download."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kvlab import paths
from kvlab.docs.registry import Cost, Producer, named, needs_data

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of what the trace holds
POLICIES = ("lru", "s3fifo", "fifo", "hybrid", "sieve", "lfu", "optimal")

# By the name of the table: the file in the data folder, and what a replay takes.
TRACES = {
    "mooncake": ("traces/mooncake_conversation_trace.jsonl", Cost.MINUTES),
    "ragpulse": ("traces/ragpulse/0_trace.jsonl", Cost.MINUTES),
    "weka": ("traces/weka_cc_compact.jsonl.gz", Cost.LONG),
}


def _maker(name: str, relative: str) -> Callable[[Collection[str]], Mapping[str, str]]:
    def make(_wanted: Collection[str]) -> Mapping[str, str]:
        from kvlab.replay import runs, source

        path = paths.find_data(relative)
        assert path is not None
        accesses = source.read(path.parent if name == "ragpulse" else path)
        every = runs.default_capacities(accesses)
        whole = every[-1]
        capacities = [max(1, round(share * whole)) for share in SHARES]
        found = runs.replay(accesses, POLICIES, capacities)
        return {f"replay_{name}": table(found, [str(n) for n in capacities])}

    return make


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]], capacities: Collection[str]) -> str:
    """Misses in %, the fewest of each capacity in bold; optimal, which knows what comes, is none of them."""
    missed = {
        policy: [f"{100 * by[n]['miss_ratio']:.1f}" for n in capacities] for policy, by in found.items()
    }
    best = [
        min((cells[i] for policy, cells in missed.items() if policy != "optimal"), key=float)
        for i in range(len(capacities))
    ]
    rows = [("", *(f"{100 * share:g} %" for share in SHARES)), ("---", *["---:"] * len(SHARES))]
    for policy, cells in missed.items():
        marked = (f"**{c}**" if c == b and policy != "optimal" else c for c, b in zip(cells, best))
        rows.append((policy, *marked))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


PRODUCERS = tuple(
    Producer(
        f"replay_{name}",
        f"kvlab replay {'ragpulse' if name == 'ragpulse' else relative.rpartition('/')[2]} --no-plot",
        cost,
        named(f"replay_{name}"),
        _maker(name, relative),
        needs_data(relative),
    )
    for name, (relative, cost) in TRACES.items()
)
