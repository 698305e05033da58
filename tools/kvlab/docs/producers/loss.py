"""What the whole fixed-point pipeline costs on held-out stories, which have to be downloaded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from kvlab import paths, shipped
from kvlab.docs.registry import Cost, Producer, named, needs_data
from kvlab.docs.tolerance import Tolerance

# What another processor's rounding makes of the float side.
NATS = Tolerance(absolute=0.002, points=0.1)


def _maker(figure: str, path: Callable[[], Path | None]) -> Callable[[Collection[str]], Mapping[str, str]]:
    def make(_wanted: Collection[str]) -> Mapping[str, str]:
        from kvlab.bench import loss

        model, text = path(), paths.find_data(paths.STORIES)
        assert model is not None
        assert text is not None
        f = loss.measure(loss.prepared(model, text))
        return {
            figure: f"{f['device_change_pct']:+.2f} % nats ({f['float32_nats']:.4f} to"
            f" {f['device_nats']:.4f}), the same likeliest token for {f['top1_pct']:.1f} % of {f['tokens']:,}"
        }

    return make


def _producer(figure: str, model: str, path: Callable[[], Path | None], *data: str) -> Producer:
    return Producer(
        f"bench_{figure}",
        f"kvlab bench loss --model {model} --text stories.jsonl",
        Cost.LONG,
        named(figure, tolerance=NATS),
        _maker(figure, path),
        needs_data(*data),
    )


PRODUCERS = (
    _producer(
        "loss_stories",
        "stories",
        lambda: shipped.find(shipped.NAMES[0], "--model", ".bin"),
        paths.STORIES,
    ),
    _producer(
        "loss_stories260k",
        "stories260K.bin",
        lambda: paths.find_data(paths.STORIES260K),
        *(paths.STORIES260K, paths.STORIES),
    ),
)
