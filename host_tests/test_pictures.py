"""Pictures: what they are drawn from is right, and no text runs into another, small or large."""

import itertools
import json
import re
from dataclasses import replace

import pytest
import stories_fixtures
from matplotlib.text import Text

from kvlab import boards, cli, facts, paths, pictures, profiles, shipped
from kvlab.bench import shares
from kvlab.models.image import Image
from kvlab.plan import models, planner, targets
from kvlab.plots import choose, context, heap, memory, quality_budget, sheet, time, window
from mpy_kv import Geometry, geometry_for
from mpy_kv.geometry import SINKS
from unix_port.report import Mark, Report

KIB = 1024
COUNTED = json.loads(pictures.COUNTED.read_text())
SETS = ("thumb", "viper")


def report(marks=5, samples=300, scale=1.0, peak=True):
    """A run of a board with 234 KiB of heap that left so many marks and samples."""
    labels = ["mpy_kv", "stories app", "KV cache: the buffer and its objects", "the model's vectors", "words"]
    steps = [Mark(labels[i % 5], 1000 * i, int(scale * 36_000 * (i + 1))) for i in range(marks)]
    nothing = dict.fromkeys(Report.__dataclass_fields__)
    told = Report(**{**nothing, "notes": [], "stdout": "", "stderr": ""})
    told.heap_limit_bytes = 239_776
    told.heap_peak_bytes = int(scale * 204_000) if peak else None
    told.marks = steps
    told.samples = [(2000 * i, steps[-1].live_bytes + 900) for i in range(samples)]
    return told


def lost(change, wide):
    low, high = change - wide, change + wide
    return {"perplexity_change_pct": change, "perplexity_change_interval_pct": [low, high]}


def quality(name, scale=1.0, budgets=(32, 64, 128)):
    """Figures of `kvlab quality` for one model, as far as the pictures read them."""
    codecs = {"float16": 1.0, "int8": 0.53, "sparse": 0.5, "int8-int4": 0.41, "int4": 0.35}
    kept = ("window", "sinks", "lru-attention", "lfu", "heavy-hitters", "compress")
    return {
        "model": name,
        "text": "told.jsonl, seed 1",
        "passages": 5,
        "policies": {
            policy: {
                str(budget): lost(scale * (i + 1) * 100 / budget, scale * 50 / budget) for budget in budgets
            }
            for i, policy in enumerate(kept)
        },
        **{
            codec: {**lost(scale * (1 - of) - 0.01, 0.1 * scale), "of_float16": of}
            for codec, of in codecs.items()
        },
    }


def costs():
    """Figures of `kvlab bench choices`, as far as the picture reads them."""
    codecs, policies = ("float16", "int8", "int8-int4", "int4", "sparse"), ("ring", "lru-attention", "lfu")
    policies += ("window", "heavy-hitters")
    return {
        "in_view": 128,
        **{
            kind: {
                s: {name: {"token": 900_000 * (i + 1) * (1 + j)} for i, name in enumerate(names)}
                for j, s in enumerate(SETS)
            }
            for kind, names in (("codecs", codecs), ("policies", policies))
        },
    }


def drawings():
    """Each picture at a usual size and at odd ones: (module, draw, arguments before the path)."""
    lines, limits = pictures.context_figures()
    yield "context", context, (lines, limits)
    yield "context-alone", context, (lines[:1], [limit for limit in limits if limit.line == 0][:1])
    yield "context-none", context, (lines[:1], [])
    for tokens, recent, sinks in ((501, 256, 4), (10**6, 250, 4), (1, 1, 0), (40, 8, 1), (60, 10, 20)):
        seen = pictures.visible_positions(tokens, recent, sinks)
        yield f"window-{tokens}-{recent}-{sinks}", window, (seen, recent, sinks)
    yield "heap", heap, (report(), 500, "Heap of the Raspberry Pi Pico while it tells 500 tokens")
    yield "heap-near", heap, (report(scale=1.1), 8, "Near")
    yield "heap-small", heap, (report(1, 1, 0.01, peak=False), 1, "Small")
    for name, g in geometries():
        yield f"memory-{name}", memory, (pictures.memory_map(g), f"The buffer, {name}")
    yield "time", time, (COUNTED, "Where the instructions of a token go, counted on an emulated Cortex-M3")
    one = {**COUNTED, "shares": {"255": {"thumb": COUNTED["shares"]["255"]["thumb"]}}}
    yield "time-one", time, (one, "One")
    names = ("stories", "grouped", "plain", "stories260K.bin")
    yield "choose", choose, ([quality(name, i + 0.5) for i, name in enumerate(names)], costs())
    yield "choose-one", choose, ([quality("stories")], costs())
    yield "choose-codecs", choose, ([{**quality("stories"), "policies": {}}], costs())
    few, many = quality("x")["policies"], quality("x", 0.01, (*range(30, 80, 4), 500, 10_000))["policies"]
    single = {"window": {"64": {**lost(-0.01, 0.01), "perplexity_change_interval_pct": None}}}
    for name, by_policy in (("budget", few), ("budget-many", many), ("budget-one", single)):
        yield name, quality_budget, (by_policy, {}, "Loss against budget")


def test_stages_and_lines_have_names(monkeypatch, tmp_path):
    kept = []
    for module, arguments in ((heap, (report(), 500, "Heap")), (context, pictures.context_figures())):
        monkeypatch.setattr(module, "save", lambda figure, *_: kept.append(figure))
        module.draw(*arguments, tmp_path / "x.png")
    stages, lines = ([text.get_text() for text in texts(figure)] for figure in kept)
    for figure in kept:
        sheet.plt.close(figure)
    assert {"mpy_kv", "stories app", "KV cache", "the model's vectors", "words"} <= set(stages)
    assert {line.name for line in pictures.context_figures()[0]} <= set(lines)


def geometries():
    shape = (5, 8, 4, 8)
    yield "int8", Geometry(*shape, window=256)
    yield "capacity", Geometry(30, 9, 3, 64, capacity=8192, codec="float16")
    yield "int4", geometry_for("int4", *shape, window=256)
    yield "int4-short", geometry_for("int4", *shape, window=8, sinks=0)
    yield "mixed", geometry_for(["int8", "int8-int4", "float16", "int8", "sparse"], *shape, window=256)
    yield "one", Geometry(1, 1, 1, 2, window=1, sinks=0)


def test_no_text_runs_into_another(monkeypatch, tmp_path):
    """Every text of every picture lies within it, and none lies on another."""
    kept, found = [], {}
    for name, module, arguments in drawings():
        monkeypatch.setattr(module, "save", lambda figure, *_: kept.append(figure))
        option = ("--out",) if module in (choose, quality_budget) else ()
        module.draw(*arguments, tmp_path / "x.png", *option)
        figure = kept.pop()
        figure.canvas.draw()
        if wrong := faults(figure):
            found[name] = wrong
        sheet.plt.close(figure)
    assert found == {}


def faults(figure):
    """What is cut off, and what overlaps by more than a pixel and a half."""
    whole, boxes = figure.bbox, []
    for text in texts(figure):
        if text.get_visible() and text.get_text().strip():
            box = Text.get_window_extent(text)  # without the line of an annotation
            boxes.append((text.get_text(), box.x0 + 1.5, box.y0 + 1.5, box.x1 - 1.5, box.y1 - 1.5))
    said = [
        f"cut off: {text}"
        for text, x0, y0, x1, y1 in boxes
        if x0 < whole.x0 - 2 or y0 < whole.y0 - 2 or x1 > whole.x1 + 2 or y1 > whole.y1 + 2
    ]
    for one, other in itertools.combinations(boxes, 2):
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]:
            said.append(f"{one[0]!r} on {other[0]!r}")
    return said


def texts(figure):
    """Every text that is drawn."""
    found = [*figure.texts]  # its title is one of them
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    found += [text for legend in legends if legend for text in legend.get_texts()]
    for axes in figure.axes:
        found += [axes.title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            found += [axis.label, *(tick.label1 for tick in ticks if tick.label1.get_visible())]
    return [text for text in found if text is not None]


# --- what they are drawn from --------------------------------------------------------------------


def test_the_map_is_the_buffer():
    for name, g in geometries():
        rows = pictures.memory_map(g)
        whole, layer, heads, head, scratch = rows
        assert whole.bytes == g.bytes(), name
        assert whole.pieces[-1].name == "scratch"
        assert scratch.bytes == whole.pieces[-1].bytes
        for part, of in ((layer, whole), (heads, layer), (head, heads)):
            piece = of.pieces[part.of]
            assert part.bytes == piece.bytes // piece.count, (name, part.title)
        tokens = sum(piece.count for piece in head.pieces)
        first = g.of(0) if isinstance(g.codec, tuple) else g
        assert tokens == first.slots
    layer = pictures.memory_map(Geometry(5, 8, 4, 8, window=256))[1]
    parts = {"K codes": 8352, "K scales": 524, "V codes": 8352, "V scales": 524}
    assert {piece.name: piece.bytes for piece in layer.pieces} == parts


def test_points_of_the_context_picture_are_plans():
    """Each is on its line; one token more does not fit, weights and program counted. Those of boards are the
    largest window of the shipped model and its sinks, where it was trained for as much."""
    lines, limits = pictures.context_figures()
    places = {**{name: targets.of_board(boards.load(name)) for name in boards.real_names()}}
    places |= {name: targets.of_profile(profiles.load(name)) for name in profiles.names() if name != "mcu"}
    assert {limit.name for limit in limits} == set(places)
    for limit in limits:
        name, codec, _ = pictures.LINES[limit.line]
        model = replace(models.find(name), seq_len=None)
        for more in (0, 1):
            tokens = limit.tokens + more
            window = tokens - SINKS if places[limit.name].kind == "board" else None
            question = planner.Question(tokens, codec, window=window, weights="int8")
            assert planner.fits(model, places[limit.name], question) is (more == 0), limit
        if places[limit.name].kind == "board" and name == shipped.NAMES[0]:
            model, question = models.find(name), planner.Question(1, codec, window=1)
            asked = planner.largest_window(model, places[limit.name], question)
            assert asked + SINKS == min(limit.tokens, model.seq_len)
        points = dict(lines[limit.line].points)
        assert max(points) >= limit.tokens
        assert limit.kv_bytes == limit.tokens * points[16] // 16
        assert model.parameters < 4 * places[limit.name].room or places[limit.name].weights_apart


def test_counted_shares_are_those_of_the_shipped_model():
    """`kvlab docs --write bench_tokens` renews them."""
    header = Image.parse(paths.SHIPPED.read_bytes()).header
    assert COUNTED["model_id"] == f"{header.model_id:08x}"
    at, totals = max(COUNTED[pictures.PER_TOKEN].items(), key=lambda item: int(item[0]))
    assert int(at) + 1 == COUNTED["window"]
    for name in SETS:
        by = COUNTED["shares"][at][name]
        assert sum(by.values()) == pytest.approx(totals[name], rel=0.01)
        parts = time.parts(by)
        assert {"QK", "softmax", "AV", "store K, V", "matrices", "sampling"} <= parts.keys()
        assert 0 < parts[shares.INTERPRETER] < totals["thumb"] / 4


def test_names_of_sizes():
    assert [sheet.sized(n) for n in (0, 12, 1000, 1024, 91_452, 1 << 20, 5_866_543_872)] == [
        *("0 B", "12 B", "1,000 B", "1 KiB", "89.3 KiB", "1 MiB", "5.46 GiB")
    ]


@pytest.mark.parametrize("places", [[], [0.5], [0.5, 0.5, 0.5], [0.0, 0.01, 0.99, 1.0], [0.1] * 40])
def test_labels_move_apart(places):
    moved = sheet.apart(places, 0.04)
    assert len(moved) == len(places)
    assert moved == sorted(moved)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in moved)
    gap = min(0.04, 1 / max(1, len(places) - 1))
    assert all(b - a > gap - 1e-9 for a, b in itertools.pairwise(moved))


# --- the page and the command --------------------------------------------------------------------


def test_the_page(tmp_path):
    """It fits a telephone, tells in words what every picture shows, and what was emulated."""
    figures = dict.fromkeys(("heap_limit_bytes", "heap_peak_bytes", "machine_code_bytes", "kv_bytes"), 10)
    figures |= dict.fromkeys(("tokens", "evicted_tokens", "alloc_bytes_per_token", "buffer_bytes"), 10)
    figures |= {"board": "rp2040", "model": "tiny <3", "text": "Once <upon>\na time."}
    image = stories_fixtures.tiny()
    count = pictures.parameters(image[2])
    assert count == image[0].parameters
    shown = [(name, f'What "{name}" shows & tells.') for name in pictures.NAMES]
    pictures.write_page(figures, count, shown, tmp_path / "index.html")
    page = (tmp_path / "index.html").read_text()
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "<h1>A story told on an emulated microcontroller</h1>" in page
    assert "by a microcontroller" not in page
    assert f"of {count:,} parameters" in page
    told = re.findall(r'<img src="([^"]+)" alt="([^"]+)">', page)
    assert [name for name, _ in told] == list(pictures.NAMES)
    assert all("&quot; shows &amp; tells." in text for _, text in told)
    assert "<p>Once &lt;upon&gt;</p>" in page


def test_choose(tmp_path, capfd):
    """One model's file or several models' in one; what is neither is refused by its option."""
    one, several, counted = (tmp_path / name for name in ("one.json", "several.json", "costs.json"))
    one.write_text(json.dumps(quality("a")))
    several.write_text(json.dumps({"models": [quality("b"), quality("c", 2)]}))
    counted.write_text(json.dumps(costs()))
    picture = tmp_path / "choose.png"
    words = ["choose", "--quality", str(one), "--quality", str(several), "--costs", str(counted)]
    assert cli.main([*words, "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    for bad, said in (
        (["--quality", str(counted), "--costs", str(counted)], f"--quality {counted}: not what `kvlab"),
        (["--quality", str(one), "--costs", str(one)], f"--costs {one}: not what `kvlab bench"),
        (["--quality", "no.json", "--costs", str(counted)], "--quality no.json: no such file"),
        (["--quality", str(tmp_path), "--costs", str(counted)], f"--quality {tmp_path}: is a folder"),
    ):
        capfd.readouterr()
        assert cli.main(["choose", *bad]) == 2
        err = capfd.readouterr().err
        assert said in err
        assert err.count("\n") == 1
    none = {key: value for key, value in quality("a").items() if key in ("model", "text", "passages")}
    one.write_text(json.dumps(none))
    assert cli.main(["choose", "--quality", str(one), "--costs", str(counted)]) == 2
    assert "no element type that --costs knows" in capfd.readouterr().err
    assert facts.read_json(counted, "x")["in_view"] == 128
