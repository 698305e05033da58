"""Several stories at once from one arena, and each of them alone: they must be the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from typing import Any, ClassVar

from commandline.errors import FellShort
from kvlab import output, story
from kvlab.boards import Board
from kvlab.models.image import Image
from kvlab.models.tokenizer import BOS, Tokenizer
from mpy_kv import Geometry
from unix_port import launcher

# Figures of the app that are handed on as they are.
_OF_THE_APP = (
    *("requests", "tokens", "window", "sinks", "codec", "kernels", "block_tokens", "block_bytes"),
    *("total_blocks", "peak_blocks", "shared_blocks", "kv_bytes", "buffer_bytes", "alloc_bytes_per_token"),
)


@dataclass(frozen=True)
class Telling(story.Telling):
    """What to tell: story i of `requests` begins with shared_prefix and its prompt, its seed is seed + i."""

    ROOM: ClassVar[str] = "--requests, --tokens, --window or --block-tokens"

    requests: int = 2
    shared_prefix: str = ""
    prompts: tuple[str, ...] = ()  # none, one for all, or one for each
    block_tokens: int | None = None

    def arguments(self) -> list[str]:
        words = [*super().arguments(), "--requests", str(self.requests)]
        for prompt in self.prompts:
            words += ["--prompt", prompt]
        if self.shared_prefix:
            words += ["--shared-prefix", self.shared_prefix]
        if self.block_tokens is not None:
            words += ["--block-tokens", str(self.block_tokens)]
        return words

    def longest_prompt(self) -> int:
        return max(len((self.shared_prefix + prompt).encode()) for prompt in self.prompts or ("",))

    def alone(self, i: int, window: int, sinks: int) -> story.Telling:
        """Story i as the only one."""
        same = {field.name: getattr(self, field.name) for field in fields(story.Telling)}
        own = self.prompts[i % len(self.prompts)] if self.prompts else ""
        changed = {"prompt": self.shared_prefix + own, "seed": self.seed + i}
        return story.Telling(**{**same, **changed, "window": window, "sinks": sinks})


@dataclass(frozen=True)
class Told:
    """`figures` for people and `--json`; `report` of the emulator."""

    figures: dict[str, Any]
    report: launcher.Report
    prefix: str  # the shared one that was asked for

    def check(self) -> None:
        """FellShort names the stories that are not what they are alone."""
        wrong = [str(i + 1) for i, told in enumerate(self.figures["stories"]) if not told["equal_to_single"]]
        if wrong:
            raise FellShort(f"story {', '.join(wrong)} is not what it is when told alone")


def tell(board: Board, image: Image, telling: Telling, *, stream: bool = False) -> Told:
    """Tell them at once, then each alone in a run of its own, by the app for one story and its own cache.

    BadInput and FellShort as story.run raises them.
    """
    seen, report = story.run(board, image.data, telling, stream=stream)
    alone = []
    with output.progress("Telling each alone", telling.requests) as done:
        for i in range(telling.requests):
            one = telling.alone(i, seen["window"], seen["sinks"])
            alone.append(story.tell(board, image.data, one).figures)
            done(1)
    figures = _figures(board, image, telling, seen, report, alone)
    return Told(figures, report, telling.shared_prefix)


def text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The tokens of a story as the app prints them: BOS in the middle is an empty line."""
    out, previous = b"", BOS
    for i, token in enumerate(ids):
        if token != BOS:
            out += tokenizer.piece(token, previous)
        elif i:
            out += b"\n\n"
        previous = token
    return out.decode(errors="replace").strip()


def _figures(
    board: Board,
    image: Image,
    telling: Telling,
    seen: dict[str, Any],
    report: launcher.Report,
    alone: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    texts = [text(image.tokenizer, ids) for ids in seen["ids"]]
    equal = [told == one["text"] for told, one in zip(texts, alone)]
    return {
        "board": board.name,
        **{name: seen[name] for name in _OF_THE_APP},
        "texts": texts,
        "equal_to_single": all(equal),
        "reused_tokens": sum(seen["reused_tokens"]),
        "common_tokens": _common(seen),
        "single_buffer_bytes": _caches_bytes(image, seen),
        "stories": [
            {
                "seed": telling.seed + i,
                "prompt_tokens": seen["prompt_tokens"][i],
                "reused_tokens": seen["reused_tokens"][i],
                "tokens": seen["told_tokens"][i],
                "equal_to_single": equal[i],
            }
            for i in range(telling.requests)
        ],
        "heap_limit_bytes": report.heap_limit_bytes,
        "heap_live_bytes": report.heap_live_peak_bytes,
        "largest_object_bytes": report.largest_object_bytes,
        "seconds": seen["ms"] / 1000 if seen["ms"] is not None else report.seconds,
        "instructions": report.instructions,
        "notes": story.notes(telling, seen, image.config.seq_len),
    }


def _common(seen: dict[str, Any]) -> int:
    """Tokens with which the prompts of all stories begin, a single story's own aside."""
    prompts = [ids[:count] for ids, count in zip(seen["ids"], seen["prompt_tokens"], strict=True)]
    alike = takewhile(lambda column: len(set(column)) == 1, zip(*prompts))
    return sum(1 for _ in alike) if len(prompts) > 1 else 0


def _caches_bytes(image: Image, seen: dict[str, Any]) -> int:
    """Buffers of a cache for each story, no larger than it needs."""
    c = image.config
    total = 0
    for ids in seen["ids"]:
        window = min(seen["window"], max(1, len(ids) - seen["sinks"]))
        shape = (c.layers, c.heads, c.kv_heads, c.head_dim)
        g = Geometry(*shape, window=window, sinks=seen["sinks"], codec=seen["codec"])
        total += g.bytes()
    return total


def _unshared(f: dict[str, Any], prefix: str) -> list[tuple[str, str]]:
    """Why a prefix that was asked for saved nothing."""
    if not prefix or f["reused_tokens"]:
        return []
    if f["requests"] == 1:
        why = "one story has nobody to share it with: take more --requests"
    elif f["common_tokens"] < f["block_tokens"]:
        why = (
            f"nothing is shared: its {f['common_tokens']} tokens fill no block of {f['block_tokens']}; take a"
            " longer one, or a smaller --block-tokens"
        )
    else:
        why = "nothing is shared: at least one token of a prompt is computed anew; take a longer one"
    return [("--shared-prefix", why)]


def show(board: Board, told: Told) -> None:
    """The figures below the stories."""
    f = told.figures
    same = sum(one["equal_to_single"] for one in f["stories"])
    rows = [
        ("board", f"{board.title} ({board.name})"),
        (
            "told",
            f"{f['tokens']:,} tokens of {f['requests']} stories in {f['seconds']:.2f} s on this machine,"
            f" {f['kernels']} kernels",
        ),
        ("equal to one told alone", f"{same} of {f['requests']} stories"),
        (
            "arena",
            f"{output.size(f['buffer_bytes'])}; a cache for each, no larger than needed:"
            f" {output.size(f['single_buffer_bytes'])}",
        ),
        (
            "blocks",
            f"{f['peak_blocks']:,} of {f['total_blocks']:,} used at most, of {f['block_tokens']} tokens;"
            f" {f['shared_blocks']:,} shared",
        ),
        ("prompt tokens found", f"{f['reused_tokens']:,}, not computed again"),
        *_unshared(f, told.prefix),
        ("window", f"{f['window']:,} tokens and {f['sinks']} sinks of each story"),
        ("element type", f["codec"]),
        ("allocated per token", f"{f['alloc_bytes_per_token']:,} B"),
        (
            "heap",
            f"{output.size(f['heap_live_bytes'])} live of {output.size(f['heap_limit_bytes'])}",
        ),
    ]
    output.table("", rows)
    output.notes(f["notes"])
