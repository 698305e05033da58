"""The pictures of `kvlab demo`: gathers the figures from the code that has them, draws, writes the page."""

from __future__ import annotations

import html
import tempfile
from array import array
from pathlib import Path
from typing import Any

from kvlab import boards, files, output, paths, profiles
from kvlab.errors import FellShort
from kvlab.plan import models, sizes, targets
from kvlab.plots import context, heap, time, window
from kvlab.story import Told
from mpy_kv import Geometry, KVCache
from unix_port import port

# One model a level of hardware, with the context each is drawn to.
LINES = (
    ("stories260k", "int8", 1 << 15),
    ("qwen2.5-1.5b", "int8", 1 << 17),
    ("qwen2.5-7b", "int8", 1 << 17),
    ("qwen2.5-7b", "float16", 1 << 17),
)

MOST_SEEN = 500  # points of a curve: beyond that nothing more can be seen

NAMES = ("heap.png", "window.png", "time.png", "context.png")


def context_figures() -> tuple[list[context.Line], list[context.Limit]]:
    """KV bytes from the planner's own sizes; room of every board and profile."""
    known = models.catalogue()
    lines = []
    for name, codec, last in LINES:
        counts = [1 << i for i in range(4, last.bit_length())]
        points = [(n, sizes.need(known[name], n, codec).kv_bytes) for n in counts]
        lines.append(context.Line(f"{name}, {codec}", points))
    limits = [context.Limit(n, targets.of_board(boards.load(n)).room) for n in boards.real_names()]
    for name in profiles.names():
        if name != "mcu":  # the boards stand for it
            limits.append(context.Limit(name, targets.of_profile(profiles.load(name)).room))
    return lines, limits


def visible_positions(tokens: int, recent: int, sinks: int) -> list[window.Seen]:
    """What a cache of that window and those sinks reports while it takes `tokens` tokens.

    After each of them, or where they are many after MOST_SEEN, evenly spread, the last one included:
    neither memory nor time grows with the story.
    """
    cache = KVCache(Geometry(1, 1, 1, 1, window=recent, sinks=sinks))
    one = array("f", [0.0])
    count = min(tokens, MOST_SEEN)
    seen = []
    for i in range(count):
        after = tokens * (i + 1) // count
        if after - cache.length > recent and cache.length >= sinks:
            cache.seek(after - recent)  # what lies before that is gone by then
        for _ in range(cache.length, after):
            cache.append(0, one, one)
            cache.commit()
        seen.append(window.Seen.of(cache.length, cache.visible(), sinks))
    return seen


def token_times(image: bytes, recent: int, sinks: int, tokens: int = 101) -> dict[str, Any]:
    """bench.token on the unix port."""
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        (Path(folder) / "model").write_bytes(image)
        script = str(paths.APPS / "bench" / "token.py")
        words = [script, "model", str(tokens), str(recent), str(sinks)]
        done = port.run(words, heap_bytes=16 << 20, cwd=Path(folder))
    if done.status != 0:
        raise FellShort(f"timing a token failed: {done.stderr.strip().splitlines()[-1:]}")
    figures: dict[str, Any] = done.answer()
    return figures


def draw_all(told: Told, image: bytes, title: str, out: Path) -> list[tuple[str, str]]:
    """Draw every picture into `out`; returns (file name, caption) in the order of the page."""
    f = told.figures
    heap.draw(told.report, f"Heap of the {title} while it tells {f['tokens']:,} tokens", out / "heap.png")
    window.draw(
        visible_positions(f["position"], f["window"], f["sinks"]), f["window"], f["sinks"], out / "window.png"
    )
    time.draw(
        token_times(image, f["window"], f["sinks"]),
        "Where a token's time goes (viper on this machine)",
        out / "time.png",
    )
    context.draw(*context_figures(), out / "context.png")
    return [
        (
            "heap.png",
            "The heap against the board's limit. A band is what stays; the line does not rise"
            " while the story is told: nothing is allocated.",
        ),
        (
            "window.png",
            "The ring at work: the newest tokens and the sinks stay visible, all others are"
            " overwritten in place.",
        ),
        ("time.png", "Where a token's time goes. Shares of this machine; a board's differ."),
        ("context.png", "The same sizes from a Pico to a server, and the room that each has for them."),
    ]


def write_page(figures: dict[str, Any], pictures: list[tuple[str, str]], path: Path) -> None:
    """One page with the story, the figures and the pictures beside it."""
    rows = [
        ("board", figures["board"]),
        ("model", figures["model"]),
        ("tokens told", f"{figures['tokens']:,}"),
        ("tokens evicted", f"{figures['evicted_tokens']:,}"),
        ("allocated per token", f"{figures['alloc_bytes_per_token']} B"),
        ("KV cache, visible", output.size(figures["kv_bytes"])),
        ("KV cache, whole buffer", output.size(figures["buffer_bytes"])),
        ("heap of the board", output.size(figures["heap_limit_bytes"])),
        ("smallest heap it runs in (64-bit objects)", output.size(figures["heap_peak_bytes"] or 0)),
        ("machine code, outside this heap", output.size(figures["machine_code_bytes"] or 0)),
    ]
    table = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(v)}</td></tr>" for k, v in rows)
    story = "".join(f"<p>{html.escape(p)}</p>" for p in figures["text"].splitlines() if p.strip())
    shown = "".join(
        f'<figure><img src="{name}" alt=""><figcaption>{html.escape(caption)}</figcaption></figure>'
        for name, caption in pictures
    )
    page = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>mpy-kv: a story told by a microcontroller</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
blockquote {{ border-left: 4px solid #86bbd8; margin: 1rem 0; padding: 0 1rem; }}
td {{ padding: 0.1rem 1.5rem 0.1rem 0; }}
img {{ max-width: 100%; }}
figure {{ margin: 2rem 0; }}
</style>
<h1>A story told by a microcontroller</h1>
<p>Told by a language model of 260,000 parameters on an emulated board, its keys and values in mpy_kv.</p>
<table>{table}</table>
<blockquote>{story}</blockquote>
{shown}
</html>
"""
    files.write(path, output.encoded(page), "--out")
