"""The modelled cycles of a Raspberry Pi Pico, against what was measured elsewhere."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import product

import pytest
import qemu_fixtures

from kvlab import boards, cli, shipped
from kvlab.cost import counted, cycles, fit, model
from kvlab.cost.cycles import CYCLES, Counts
from kvlab.models.image import Image

PICO = boards.load("rp2040")
SHAPE = Image.read(shipped.image("stories")).config


def test_every_measured_position_is_predicted_within_a_tenth():
    """In place, and as a file, for which nothing is fitted; said is one in thirty."""
    lines = fit.compare(SHAPE)
    runs = {(line.place, line.miss_cycles) for line in lines}
    assert runs == set(product((fit.IN_PLACE, fit.FILE), (0, 50)))
    assert len(lines) == 48
    wrong = [line for line in lines if abs(line.error) > 0.1 / 3]
    assert not wrong


def test_the_one_fitted_coefficient_is_the_fit():
    assert fit.firmware_factor(SHAPE) == pytest.approx(cycles.FIRMWARE, abs=0.001)


def test_without_the_fit_arms_table_alone_is_as_near():
    assert max(abs(line.error) for line in fit.compare(SHAPE, firmware=1)) < 0.1


def test_the_tokens_a_second_that_were_measured_are_predicted():
    entry = counted.find(SHAPE, "int8", counted.THEN)
    for run in counted.measured()["runs"]:
        by = entry.token if run["model"] == fit.IN_PLACE else entry.file
        told = model._mean(by, 1, 260, 259).cycles(run["flash_miss_cycles"])
        assert counted.measured()["clock_hz"] / told == pytest.approx(run["tokens_per_s"], rel=0.05)


def test_the_start_that_was_measured_is_predicted_within_a_fifth():
    """Files are read over another link than littlefs while it is counted."""
    start = counted.find(SHAPE, "int8", counted.THEN).start
    for run in counted.measured()["runs"]:
        if run["model"] == "in place":
            seconds = start.cycles(run["flash_miss_cycles"]) / counted.measured()["clock_hz"]
            assert seconds == pytest.approx(run["start_s"], rel=0.2)


def test_misses_are_those_that_were_measured():
    """Every line of the weights once, and the code that they have driven out."""
    entry = counted.find(SHAPE, "int8", counted.THEN)
    told = counted.measured()["flash_misses_per_token_positions_32_34"]["in place"]
    assert counted.at(entry.token, 33).misses == pytest.approx(told, rel=0.06)


def test_cycles_are_by_class():
    one = dict.fromkeys(CYCLES, 0)
    one |= {"other": 10, "load": 3, "words": 4, "multiple": 1, "branch": 2, "not_taken": 5}
    assert Counts({}, one, 7).cycles(50) == 10 + 2 * 3 + 4 + 1 + 2 * 2 + 5 + 7 * 50
    assert Counts(one, {}, 0).cycles(50, firmware=2) == 2 * 30
    assert Counts(copied=32).cycles(50) == 2 * 13  # LDM and STM of four words, SUB, a branch
    with pytest.raises(KeyError):
        cycles.table({"divide": 1})


def test_counts_between_two_positions_lie_on_a_line():
    by = {10: Counts({"other": 100}, {"load": 0}, 5), 20: Counts({"other": 200}, {"load": 10}, 5)}
    assert counted.at(by, 10) == Counts({"other": 100.0}, {"load": 0.0}, 5.0)
    assert counted.at(by, 15) == Counts({"other": 150.0}, {"load": 5.0}, 5.0)
    assert counted.at(by, 40).firmware["other"] == pytest.approx(400)


def test_a_mean_is_over_the_tokens_that_see_so_many():
    by = {1: Counts({}, {"other": 1}, 0), 101: Counts({}, {"other": 101}, 0)}
    assert model._mean(by, 1, 101, 1000).cycles(0) == pytest.approx(51)
    assert model._mean(by, 1, 1, 1000).cycles(0) == pytest.approx(1)
    # 50 tokens on the way to position 50, 50 that see as much as the last of them.
    assert model._mean(by, 1, 100, 50).cycles(0) == pytest.approx((25.5 * 50 + 50 * 50) / 100)
    assert model._mean(by, 90, 10, 50).cycles(0) == pytest.approx(50)


def test_a_smaller_window_is_faster_and_a_prompt_takes_time():
    whole = model.pace(PICO, SHAPE, "int8")
    short = model.pace(PICO, SHAPE, "int8", window=60)
    asked = model.pace(PICO, SHAPE, "int8", prompt_tokens=40)
    assert short.tokens_per_s > 1.05 * whole.tokens_per_s
    assert asked.first_word_s == pytest.approx(whole.first_word_s + 40 / asked.prompt_tokens_per_s)
    assert asked.tokens_per_s < whole.tokens_per_s
    assert whole.model_place == "in place"


def test_the_divider_of_the_flash_changes_with_the_clock():
    assert [cycles.flash_divider(mhz * 1e6) for mhz in (48, 62.5, 125, 133, 200, 250)] == [2, 2, 2, 4, 4, 4]
    assert cycles.miss_cycles(125e6) == 50
    assert cycles.miss_cycles(200e6) == 100
    slow, mid, fast = (model.pace(PICO, SHAPE, "int8", clock_hz=mhz * 10**6) for mhz in (125, 133, 200))
    assert mid.tokens_per_s < slow.tokens_per_s  # its flash has 33 MHz
    assert fast.tokens_per_s == pytest.approx(200 / 133 * mid.tokens_per_s)
    assert "200 MHz" in fast.note


def test_a_start_that_remembers_its_kernels_is_told_where_it_was_counted():
    begun = Counts({"other": 125e6}, {}, 0)
    entry = replace(counted.find(SHAPE, "int8"), start=begun.times(3), remembered=begun)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "find", lambda *_: entry)
        known = model.pace(PICO, SHAPE, "int8")
        asked = model.pace(PICO, SHAPE, "int8", prompt_tokens=40)
        entry = replace(entry, remembered=None)
        older = model.pace(PICO, SHAPE, "int8")
    assert known.first_word_remembered_s == pytest.approx(cycles.FIRMWARE)
    assert known.first_word_s == pytest.approx(3 * cycles.FIRMWARE)
    assert asked.first_word_remembered_s == pytest.approx(cycles.FIRMWARE + 40 / asked.prompt_tokens_per_s)
    assert "first word after 3.5 s (1.2 s once its kernels are remembered), a" in model.said(known.figures())
    assert older.first_word_remembered_s is None
    assert "first word after 3.5 s, a prompt's" in model.said(older.figures())


def test_both_starts_are_counted_in_one_folder(tmp_path):
    """The second finds there what the first has remembered."""
    from kvlab.cost import count

    runs = []

    def run(script, words, image, cwd):
        runs.append((script.name, words, cwd))
        first = not (cwd / count.VERDICTS).exists()
        (cwd / count.VERDICTS).touch()
        ready = [mark(0), mark(9 if first else 2)]
        told = 2 * 2 * int(words[2])
        return ready + [mark(i) for i in range(told)]

    def mark(n):
        by = {name: n * (name == "other") for name in CYCLES}
        return {"firmware": by, "kernels": by, "misses": {"code": n}}

    entry = counted._entry(count.story(b"", "int4", run))
    assert (entry.start.misses, entry.remembered.misses) == (9, 2)
    assert [words[3:] for _, words, _ in runs] == [["int4", "", count.VERDICTS]] * 2
    assert entry.token.keys() == entry.prompt.keys() == set(count.POSITIONS)


def test_there_is_no_figure_where_nothing_was_counted():
    other = model.pace(boards.load("esp32"), SHAPE, "int8")
    assert other.tokens_per_s is None
    assert "has not" in other.note
    unknown = model.pace(PICO, replace(SHAPE, hidden=SHAPE.hidden + 1), "int8")
    assert unknown.figures()["first_word_s"] is None
    assert "was not counted" in unknown.note


@pytest.mark.parametrize("name", shipped.NAMES)
def test_models_that_ship_have_figures(name):
    assert model.pace(PICO, Image.read(shipped.image(name)).config, "int8").tokens_per_s > 10


def test_renewing_keeps_what_was_measured(tmp_path):
    path = tmp_path / "counts.json"
    path.write_text(counted.PATH.read_text())
    text = counted.renewed({}, path)
    path.write_text(text)
    assert counted.renewed({}, path) == text
    assert '"kernels": [' in text
    assert counted.key(SHAPE, "int8", counted.THEN) in text
    assert counted.NOW not in text


def test_the_plan_and_the_story_say_the_same(tmp_path, capsys):
    """Keys that others read."""
    from kvlab import story
    from kvlab.story import Telling

    seen = {"policy": "window", "codec": "int8", "tokens": 260, "prompt_tokens": 1, "window": 256, "sinks": 4}
    image = Image.read(shipped.image("stories")).data
    told = story.paced(PICO, image, Telling(), seen).figures()
    assert told == model.pace(PICO, SHAPE, "int8").figures()
    assert told.keys() >= {"tokens_per_s", "first_word_s", "prompt_tokens_per_s", "model_place"}
    assert 0 < told["first_word_remembered_s"] < told["first_word_s"]
    path = tmp_path / "plan.json"
    words = ["plan", "--model", "stories", "--board", "rp2040", "--tokens", "260", "--window", "256"]
    assert cli.main([*words, "--json", str(path)]) == 0
    assert "modelled" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert {key: found[key] for key in told} == told


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ({"kernels": "viper"}, {}),
        ({"policy": "lru-peak"}, {"policy": "lru-peak"}),
        ({}, {"codec": ["int8", "int4"]}),
    ],
)
def test_a_story_otherwise_than_counted_has_no_figure(asked, seen):
    from kvlab import story

    usual = {"policy": "window", "codec": "int8", "tokens": 40, "prompt_tokens": 1, "window": 256, "sinks": 4}
    image = Image.read(shipped.image("stories")).data
    found = story.paced(PICO, image, story.Telling(**asked), {**usual, **seen})
    assert found.tokens_per_s is None
    assert found.note.startswith("no figure: ")


@pytest.mark.exhaustive
def test_instructions_of_a_kernel_are_counted_by_class(tmp_path):
    from kvlab.cost import count

    qemu_fixtures.needed_by("qemu_arm")
    if not (shutil.which("gcc") or shutil.which("cc")):
        qemu_fixtures.unavailable("the plugin that counts takes a gcc")
    script = tmp_path / "known.py"
    script.write_text(KNOWN)
    before, after, empty = count.marks(script, [], b"\0" * 64)
    one, none = count.between(before, after), count.between(after, empty)
    found = {name: one.kernels[name] - none.kernels[name] for name in CYCLES}
    # 100 rounds: a load of flash, a store, two of arithmetic, a branch that is taken 99 times.
    assert found["load"] == 100
    assert found["store"] == 100
    assert found["branch"] == 99
    assert found["not_taken"] == 1


KNOWN = """
import micropython

@micropython.viper
def mark():
    ptr32(0x40001008)[0] = 0

@micropython.asm_thumb
def loop(r0, r1):
    mov(r2, 100)
    label(AGAIN)
    ldr(r3, [r0, 0])
    str(r3, [r1, 0])
    add(r4, 1)
    sub(r2, 1)
    bne(AGAIN)

@micropython.asm_thumb
def nothing(r0, r1):
    mov(r2, 100)

x = bytearray(8)
mark()
loop(x, x)
mark()
nothing(x, x)
mark()
"""
