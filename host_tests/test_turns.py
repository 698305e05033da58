"""What other tasks see while a Pico tells a story as a task, modelled from counted calls."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
import qemu_fixtures

from commandline.errors import FellShort
from kvlab import boards, cli, shipped, story
from kvlab.cost import count_turns, counted, cycles, turns
from kvlab.cost.cycles import CYCLES, Counts
from kvlab.element_types import HELD, SEALED, USUAL
from kvlab.models.image import Image
from kvlab.story import Telling

PICO = boards.load("rp2040")
IMAGE = Image.read(shipped.image(shipped.NAMES[0]))
CASES = [(shipped.NAMES[0], codec) for codec in HELD] + [(name, USUAL) for name in shipped.NAMES[1:]]


def shape(name: str):
    return Image.read(shipped.image(name)).config


@pytest.mark.parametrize(("name", "codec"), CASES)
def test_no_call_is_longer_than_a_layer_of_a_token(name: str, codec: str) -> None:
    window = turns.entries()[counted.key(shape(name), codec)].window
    f = turns.modelled(PICO, shape(name), codec, window=window)
    assert f.calls_us.keys() == set(turns.CALLS) - (set() if codec == SEALED else {"seal"})
    assert f.longest_call_us == f.calls_us["layer"]
    assert all(0 < us <= f.longest_call_us for us in f.calls_us.values())
    # A turn is a call, and what is around it.
    assert f.longest_call_us < f.longest_between_awaits_us < f.longest_call_us + 500
    assert sum(f.slots_us.values()) == pytest.approx(f.longest_call_us, rel=0.06)
    assert 10_000 < f.collection_us <= f.longest_collection_us < 40_000


def test_a_token_of_a_task_takes_what_one_at_once_does() -> None:
    """Its calls together, by the other table, at a full window; the longest of each, while a first layer has
    none behind it, and what is drawn there is the likeliest."""
    f = turns.modelled(PICO, IMAGE.config, USUAL)
    layers = IMAGE.config.layers
    us = sum(f.calls_us.values()) + (layers - 1) * f.calls_us["layer"]
    at_once = counted.at(counted.find(IMAGE.config, USUAL).token, 259).cycles(50) / 125
    assert at_once < us < 1.2 * at_once


def test_there_is_no_figure_where_nothing_was_counted() -> None:
    for f, said in (
        (turns.modelled(boards.load("rp2350"), IMAGE.config, USUAL), "counted for the Cortex-M0+"),
        (turns.modelled(PICO, replace(IMAGE.config, hidden=1), USUAL), "was not counted"),
        (turns.modelled(PICO, IMAGE.config, ["int8", "int4"]), "was not counted"),
        (turns.modelled(PICO, IMAGE.config, USUAL, window=400), "no window longer than 256 was counted"),
        (turns.modelled(PICO, IMAGE.config, "float16"), "no window longer than 128 was counted"),
    ):
        assert said in f.note
        assert f.note.startswith("no figure: ")
        assert (f.longest_call_us, f.longest_between_awaits_us, f.longest_collection_us) == (None,) * 3
        assert turns.rows_of(f.figures()) == [("turns, modelled", f.note)]
    seen = {"policy": "window", "codec": USUAL, "window": 256, "sinks": 4}
    for telling, more in ((Telling(kernels="viper"), {}), (Telling(), {"policy": "lru-peak"})):
        f = story.turns_of(PICO, IMAGE.data, telling, {**seen, **more})
        assert f.longest_call_us is None
        assert f.note.endswith(("policy lru-peak was not counted", "kernels viper were not counted"))
    assert story.turns_of(PICO, IMAGE.data, Telling(), seen) == turns.modelled(PICO, IMAGE.config, USUAL)


def test_the_longest_of_each_is_kept() -> None:
    """Marks are those of calls.py, which says what they are; it is run anew where the heap has no room."""
    n = [0]

    def mark() -> dict:
        by = {name: n[0] * (name == "other") for name in CYCLES}
        return {"firmware": dict.fromkeys(CYCLES, 0), "kernels": by, "misses": {"code": 0}}

    def run(script, words, image, heap_bytes):
        assert script.name == "calls.py"
        if words[0] > 128:
            raise FellShort("the counted run failed: MemoryError: memory allocation failed")
        assert heap_bytes >= PICO.machine.heap_bytes
        names, written = [], []
        for name, instructions in (("layer", 3), ("turn", 5), ("layer", 9), ("layer", 7), ("commit", 2)):
            written.append(mark())
            n[0] += instructions
            written.append(mark())
            n[0] += 1000  # between two
            names.append(name)
        return written, json.dumps(names)

    entry = count_turns.entry(b"", USUAL, run)
    assert entry["window"] == 128
    found = {name: sum(entry[name]["kernels"]) for name in entry if name not in ("window", "sinks")}
    assert found == {"layer": 9, "turn": 5, "commit": 2}


def test_another_fault_of_the_run_is_told() -> None:
    def run(script, words, image, heap_bytes):
        raise FellShort("the counted run failed: ImportError")

    with pytest.raises(FellShort, match="ImportError"):
        count_turns.entry(b"", USUAL, run)


def test_what_the_script_marks_on_the_emulated_board(tmp_path) -> None:
    """Figures are what the table has, within a hundredth."""
    qemu_fixtures.built(count_turns.heap_bytes())
    if shutil.which("gcc") is None:
        qemu_fixtures.unavailable("the plugin that counts takes a gcc")
    name = "stories-gqa16"
    image = Image.read(shipped.image(name))
    now = count_turns.entry(image.data)
    known = turns.entries()[counted.key(image.config, USUAL)]
    for call, counts in known.counts.items():
        found = counted.unpacked(now[call])
        assert found.cycles(50) == pytest.approx(counts.cycles(50), rel=0.01), call


# --- The command ----------------------------------------------------------------------------------

WORDS = ["stories", "--asyncio", "--tokens", "8", "--greedy"]


@pytest.fixture
def told(tmp_path, capfd):
    """`told(*words)`: exit status, stdout, stderr, figures or None."""

    def run(*words):
        path = tmp_path / "told.json"
        path.unlink(missing_ok=True)
        status = cli.main([*WORDS, *map(str, words), "--json", str(path)])
        out, err = capfd.readouterr()
        return status, out, err, json.loads(path.read_text()) if path.exists() else None

    return run


def test_what_others_see_is_printed_and_written(told) -> None:
    status, out, err, f = told("--board", "rp2040")
    assert (status, err) == (0, "")
    want = turns.modelled(PICO, IMAGE.config, USUAL)
    assert {name: f[name] for name in want.figures()} == want.figures()
    for label, us in (
        ("longest call", want.longest_call_us),
        ("longest between two awaits", want.longest_between_awaits_us),
        ("longest garbage collection", want.longest_collection_us),
    ):
        (line,) = [line for line in out.splitlines() if line.strip().startswith(label)]
        assert f"{us / 1000:.1f} ms" in line
    assert f["tokens"] == 8
    assert f["beats"] >= 8 * 9
    assert f["window"] == 256


@pytest.mark.parametrize(("codec", "window"), [("int8", None), ("int4", 64)])
def test_the_text_is_that_of_the_board(codec: str, window: int | None, told) -> None:
    """In the board's own window, unless another is asked for; elsewhere there is no modelled figure."""
    asked = Telling(tokens=8, greedy=True, codec=codec, window=window)
    text = story.tell(boards.load("esp32c3"), IMAGE.data, asked).figures
    more = ["--window", window] if window else []
    status, out, _, f = told("--board", "esp32c3", "--codec", codec, *more)
    assert status == 0
    assert (f["text"], f["window"], f["sinks"]) == (text["text"], text["window"], text["sinks"])
    assert f["longest_call_us"] is None
    assert "no figure: counted for the Cortex-M0+ of an RP2040" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--board", "qemu_arm"], "--asyncio: Cortex-M3 in QEMU (MPS2 AN385) (qemu_arm) has no asyncio"),
        (["--requests", 2], "--requests: not with --asyncio; leave one of them out"),
        (["--peak"], "--peak: not with --asyncio"),
        (["--kv-flash", 131072], "--kv-flash: not with --asyncio"),
    ],
)
def test_what_a_task_has_not(told, words: list[object], said: str) -> None:
    status, _, err, f = told(*words)
    assert (status, f) == (2, None)
    assert said in err


def test_a_note_is_no_figure() -> None:
    assert turns.Turns(note="x").figures()["calls_us"] == {}
    assert Counts().cycles(cycles.miss_cycles(125e6)) == 0
