"""The pictures of `kvlab demo` and of the docs: gathers the figures from the code that has them, draws."""

from __future__ import annotations

import html
import json
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

from commandline import files
from kvlab import boards, output, profiles, shipped
from kvlab.models.image import Image
from kvlab.plan import models, planner, sizes, targets
from kvlab.plan.llama import of_llama
from kvlab.plots import context, heap, memory, time, window
from kvlab.story import Told
from mpy_kv import Geometry, KVCache, geometry_for

# One model a level of hardware, with the context each is drawn to.
LINES = (
    (shipped.NAMES[0], "int8", 1 << 15),
    ("qwen2.5-1.5b", "int8", 1 << 17),
    ("qwen2.5-7b", "int8", 1 << 17),
    ("qwen2.5-7b", "float16", 1 << 17),
)

MOST_SEEN = 500  # points of a curve: beyond that nothing more can be seen

NAMES = ("heap.png", "window.png", "time.png", "memory.png", "context.png")

# What `kvlab bench tokens` counts of the shipped model: `kvlab docs --write bench_tokens` renews it.
PER_TOKEN = "instructions_per_token"
COUNTED = Path(__file__).parent / "plots" / "token.json"


def context_figures() -> tuple[list[context.Line], list[context.Limit]]:
    """KV bytes from the planner's own sizes; the longest context that each board and profile has room for.

    Each with the largest of LINES that it has room for, beside the weights of it and all else. Of a board it
    is the largest window of `kvlab plan` with its sinks. What a model was trained for is left aside: this is
    of memory.
    """
    catalogue = models.catalogue()
    known = {name: replace(catalogue[name], seq_len=None) for name, *_ in LINES}
    places = [targets.of_board(boards.load(name)) for name in boards.real_names()]
    # The boards stand for the profile of microcontrollers.
    places += [targets.of_profile(profiles.load(name)) for name in profiles.names() if name != "mcu"]
    limits = []
    for place in places:
        for i, (name, codec, _) in reversed(list(enumerate(LINES))):
            window = 1 if place.kind == "board" else None  # the search for the largest replaces it
            question = planner.Question(1, codec, window=window, weights="int8")
            most = planner.largest_context(known[name], place, question)
            if most:
                kv_bytes = sizes.need(known[name], most, codec).kv_bytes
                limits.append(context.Limit(place.name, most, kv_bytes, i))
                break
    lines = []
    for i, (name, codec, last) in enumerate(LINES):
        last = max(last, *(limit.tokens for limit in limits if limit.line == i), 0)
        counts = [1 << n for n in range(4, last.bit_length())]
        points = [(n, sizes.need(known[name], n, codec).kv_bytes) for n in (*counts, last)]
        lines.append(context.Line(f"{name}, {codec}", points))
    return lines, limits


def memory_map(g: Any) -> list[memory.Row]:
    """The buffer of a cache of that geometry, to the byte: the whole, a layer, a head, and the scratch.

    g: a Geometry, SealedGeometry or MixedGeometry, of which the first layer is shown larger.
    """
    mixed = isinstance(g.codec, tuple)
    layers = [g.of(i) if mixed else g for i in range(g.layers)]
    first = layers[0]
    blocks = sum(each.layer_bytes for each in layers)
    alike = not mixed or len(set(g.codec)) == 1
    if alike:
        whole = [memory.Piece("layer", blocks, g.layers)]
    else:
        whole = [memory.Piece(f"layer {i}, {e.codec}", e.layer_bytes) for i, e in enumerate(layers)]
    rows = [memory.Row("the buffer", (*whole, memory.Piece("scratch", g.bytes() - blocks)))]
    rows.append(memory.Row("a layer" if alike else "layer 0", _layer(first), of=0))
    slots = [memory.Piece("sinks", first.sinks * first.row_bytes, first.sinks)] if first.sinks else []
    ring = first.slots - first.sinks
    if first.sealed:
        slots.append(memory.Piece("newest and open block", ring * first.row_bytes, ring))
    else:
        spare = first.capacity is None
        recent = ring - spare
        slots.append(memory.Piece("window" if spare else "tokens", recent * first.row_bytes, recent))
        if spare:
            slots.append(memory.Piece("spare row of the next token", first.row_bytes))
    heads = memory.Piece("head", first.codes_bytes, first.kv_heads)
    rows.append(memory.Row(f"{_layer(first)[0].name}, of {first.kv_heads} KV heads", (heads,), of=0))
    rows.append(memory.Row(f"a head: rows of {first.head_dim} values", tuple(slots), of=0))
    rows.append(memory.Row("the scratch, which all layers and heads use in turn", _scratch(g)))
    return rows


def _layer(g: Any) -> tuple[memory.Piece, ...]:
    """The parts of a layer's block, in their order."""
    fresh = "fresh " if g.sealed else ""
    found = [
        (f"{fresh}K codes", g.codes_bytes),
        (f"{fresh}K scales", g.scales_bytes),
        (f"{fresh}V codes", g.v_codes_bytes),
        (f"{fresh}V scales", g.scales_bytes),
    ]
    if g.sealed:
        codes = g.kv_heads * g.head4_stride
        found += [("sealed K codes", codes), ("K headers", g.blocks * g.header_bytes)]
        found += [("sealed V codes", codes), ("V scales", g.minima_gap), ("V minima", g.minima_gap)]
    return tuple(memory.Piece(name, size) for name, size in found if size)


def _scratch(g: Any) -> tuple[memory.Piece, ...]:
    """Its parts, in their order: of a MixedGeometry those of the type that needs most."""
    if isinstance(g.codec, tuple):
        g = max(g.types.values(), key=lambda each: each.bytes() - each.layers * each.layer_bytes)
    names = {
        "scores, then weights": g.at_scores,
        "dots, then small weights": g.at_dots,
        "K scales": g.at_kscale,
        "V scales": g.at_vscale,
        "exponents of batches": g.at_units,
        "sums": g.at_sums,
        "queries": g.at_queries,
    }
    if g.at_dots == g.at_scores:
        del names["dots, then small weights"]
    if g.sealed:
        names |= {"centers of blocks": g.at_centers, "a block, spread": g.at_spread}
    ends = [*list(names.values())[1:], g.bytes()]
    return tuple(
        memory.Piece(name, end - at) for (name, at), end in zip(names.items(), ends, strict=True) if end > at
    )


def parameters(image: bytes) -> int:
    """Of the model that a board image has."""
    return of_llama(Image.parse(image).config, "", "", len(image)).parameters or 0


def told_geometry(figures: dict[str, Any], image: Image) -> Any:
    """The geometry of the cache that told a story with the model `image`."""
    c = image.config
    codec: Any = figures["codec"] if image.codecs is None else list(image.codecs)
    if image.codecs and set(image.codecs) == {"int4"}:  # which seals tokens of all layers together
        codec = "int4"
    heads = (c.layers, c.heads, c.kv_heads, c.head_dim)
    return geometry_for(codec, *heads, window=figures["window"], sinks=figures["sinks"])


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


def draw_all(told: Told, image: bytes, title: str, out: Path) -> list[tuple[str, str]]:
    """Draw every picture into `out`; returns (file name, caption) in the order of the page."""
    f = told.figures
    model = Image.parse(image)
    window.draw(
        visible_positions(f["position"], f["window"], f["sinks"]), f["window"], f["sinks"], out / "window.png"
    )
    while_told = f"Heap of the {title} while it tells {f['tokens']:,} tokens"
    heap.draw(told.report, f["tokens"], while_told, out / "heap.png")
    counted = json.loads(COUNTED.read_text(encoding="utf-8"))
    of = "" if counted["model_id"] == f"{model.header.model_id:08x}" else " of the shipped model"
    where = f"Where the instructions of a token{of} go, counted on an emulated Cortex-M3"
    time.draw(counted, where, out / "time.png")
    memory.draw(
        memory_map(told_geometry(f, model)), f"The buffer of the KV cache, {f['codec']}", out / "memory.png"
    )
    context.draw(*context_figures(), out / "context.png")
    return [
        (
            "heap.png",
            "The heap against the board's limit. A band is what stays of a stage of start-up; the line does"
            " not rise while the story is told: nothing is allocated.",
        ),
        (
            "window.png",
            "The ring at work: the newest tokens and the sinks stay visible, all others are overwritten in"
            " place.",
        ),
        (
            "time.png",
            f"Where the instructions of a token{of} go, as the emulated 32-bit board counts them"
            " (kvlab bench tokens --target qemu), by kernel set.",
        ),
        ("memory.png", "Every byte of the cache's buffer: one allocation at start-up, and none after."),
        (
            "context.png",
            "The same sizes from a Pico to a server: a point is the longest context with room beside the"
            " model's weights (in int8), the program and all else.",
        ),
    ]


def write_page(figures: dict[str, Any], parameters: int, pictures: list[tuple[str, str]], path: Path) -> None:
    """One page with the story of a model of so many parameters, the figures and the pictures beside it."""
    rows = [
        ("emulated board", figures["board"]),
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
        f'<figure><img src="{name}" alt="{text}"><figcaption>{text}</figcaption></figure>'
        for name, text in ((name, html.escape(caption)) for name, caption in pictures)
    )
    page = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mpy-kv: a story told on an emulated microcontroller</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
blockquote {{ border-left: 4px solid #86bbd8; margin: 1rem 0; padding: 0 1rem; }}
td {{ padding: 0.1rem 1.5rem 0.1rem 0; }}
img {{ max-width: 100%; height: auto; }}
figure {{ margin: 2rem 0; }}
</style>
<h1>A story told on an emulated microcontroller</h1>
<p>By a language model of {parameters:,} parameters on an emulated board, its keys and values in mpy_kv.</p>
<table>{table}</table>
<blockquote>{story}</blockquote>
{shown}
</html>
"""
    files.write(path, output.encoded(page), "--out")
