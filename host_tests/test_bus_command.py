"""kvlab bus and kvlab bench bus: what they write, what pays, and what they refuse."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tiny_model import write_tiny

from kvlab import boards
from kvlab.bench import bus as bench
from kvlab.bus import closed, contention, facts, formula, pays, simulated
from kvlab.bus.formula import Bytes
from kvlab.cost import model
from kvlab.models.load import load_image
from kvlab.plan import models

SHOWN = {"shares", "access", "bound_us", "worst_us", "overhead_saved_pct", "tokens_per_s"}


def figures(kvlab: Any, tmp_path: Path, *words: object) -> tuple[dict[str, Any], str]:
    path = tmp_path / "bus.json"
    status, out, err = kvlab("bus", *words, "--json", path)
    assert (status, err) == (0, "")
    return json.loads(path.read_text()), out


def test_what_is_written(kvlab, tmp_path: Path) -> None:
    """Of a shipped model on a Pico: counted, simulated, modelled."""
    found, out = figures(kvlab, tmp_path, "--board", "rp2040", "--tokens", 20, "--prompt", 2)
    assert found.keys() >= SHOWN
    assert sum(found["shares"].values()) == pytest.approx(1, abs=1e-12)
    assert list(found["shares"]) == ["kv_read", "kv_write", "weights", "io"]
    told = formula.token(models.find("stories"), 20, sinks=4)
    assert {row["step"]: row["kv_read"] for row in found["access"]}["qk"] == told["qk"].kv_read
    assert found["counted"]
    assert 0.9 * found["bound_us"] <= found["worst_us"] <= found["bound_us"]
    assert found["overhead_saved_pct"] == 100 * (1 - 10 / 640)  # 10 planes, whatever the number of tokens
    paid = found["tokens_per_s"]
    assert list(paid) == ["plain", "staggered", "dma", "streamed"]
    assert paid["staggered"] < paid["plain"]
    assert paid["dma"] < paid["plain"] < paid["streamed"]
    assert "the document says" in out
    assert found["settings"]["model"] == "stories"


def test_a_model_by_its_shape_alone(kvlab, tmp_path: Path) -> None:
    found, out = figures(kvlab, tmp_path, "--model", "qwen2.5-1.5b", "--board", "esp32s3_psram")
    assert not found["counted"]
    assert (found["tokens"], found["settings"]["tokens"]) == (2048, 2048)
    assert found["shares"]["weights"] > 0.8
    assert found["tokens_per_s"]["plain"] is None
    assert found["tokens_per_s_notes"]["plain"].startswith("no figure: ")
    assert "by its shape" in out


def test_the_usual_tokens_are_no_more_than_a_model_was_trained_for(kvlab, tmp_path: Path) -> None:
    found, _ = figures(kvlab, tmp_path, "--model", "stories260k")
    assert (found["tokens"], found["counted"]) == (512, False)
    checkpoint, tokenizer = write_tiny(tmp_path / "tiny", seq_len=40)
    image = tmp_path / "tiny.mkvm"
    image.write_bytes(load_image(checkpoint, tokenizer).data)
    found, _ = figures(kvlab, tmp_path, "--model", image, "--prompt", 3)
    assert (found["tokens"], found["counted"]) == (40, True)
    assert found["tokens_per_s_notes"]["plain"].startswith("no figure: ")


def test_slots_or_none_drawn_and_traced(kvlab, tmp_path: Path) -> None:
    words = ("--model", "stories260k", "--tokens", 5, "--prompt", 1)  # by its shape: nothing runs
    plot, trace = tmp_path / "a.png", tmp_path / "a.json"
    on, _ = figures(kvlab, tmp_path, *words, "--stagger", "on", "--plot", plot, "--trace", trace)
    off, _ = figures(kvlab, tmp_path, *words, "--stagger", "off")
    both, _ = figures(kvlab, tmp_path, *words)
    assert plot.read_bytes().startswith(b"\x89PNG")
    events = json.loads(trace.read_text())["traceEvents"]
    assert any(event["ph"] == "X" for event in events)
    assert list(both["simulated"]) == [simulated.STAGGERED, simulated.AS_IT_COMES]
    assert both["bound_us"] == on["bound_us"] != off["bound_us"]
    assert on["simulated"][simulated.STAGGERED]["contention_us"] == 0
    # Weights are read in place: nothing of the model's meets.
    assert off["simulated"][simulated.AS_IT_COMES]["token_us"] == pytest.approx(35_700, rel=0.01)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--tokens 1", "--tokens 1: a token that is told sees another one"),
        ("--tokens 513", "--tokens 513: stories was trained for 512"),
        ("--prompt 261", "--prompt 261: at most the 260 tokens of the cache"),
        ("--model nonesuch", "--model nonesuch: no such model"),
        ("--model deepseek-v3", "--model deepseek-v3: bytes are known of layers that are all alike"),
        ("--model gemma-2-2b --tokens 4097", "--tokens 4097: layers of gemma-2-2b see 4,096 at most"),
        ("--board nonesuch", "--board nonesuch: no such board"),
        ("--plot .", "--plot .: "),
        ("--trace .", "--trace .: "),
    ],
)
def test_bad_input_is_a_line_that_names_the_option(kvlab, words: str, said: str) -> None:
    status, out, err = kvlab("bus", *words.split())
    assert (status, out) == (2, "")
    assert err.startswith(f"kvlab: error: {said}")
    assert err.count("\n") == 1


# --- what pays -------------------------------------------------------------------------------------


def test_what_is_added_takes_its_cycles(monkeypatch) -> None:
    """Twice the instructions, twice the time; none, none."""
    pico, shape = boards.load("rp2040"), models.find("stories")
    plain = model.pace(pico, shape, "int8").tokens_per_s
    assert plain is not None

    def told(layer: int) -> float:
        monkeypatch.setattr(pays, "costs", lambda: {"push": 0, "descriptor": 0, "start": 0, "layer": layer})
        ways = pays.pays(pico, shape)
        assert ways["plain"].tokens_per_s == ways["dma"].tokens_per_s == plain
        assert ways["staggered"].tokens_per_s is not None
        return 1 / ways["staggered"].tokens_per_s - 1 / plain

    assert told(0) == pytest.approx(0)
    once = told(10_000)
    assert told(20_000) == pytest.approx(2 * once)
    cycles = once * pico.machine.clock_hz / (5 * 10_000)
    assert 1.5 < cycles < 3  # of an instruction of the firmware on a Cortex-M0+


def test_boards_that_are_not_modelled_say_so() -> None:
    for name in boards.real_names():
        for way in pays.pays(boards.load(name), models.find("stories")).values():
            assert way.tokens_per_s is not None or way.note.startswith("no figure: ")


def test_pieces_of_a_token() -> None:
    """Of stories260K: four heads and one group, of K and of V."""
    assert pays.pieces(models.find("stories260k")) == 10
    assert pays.pieces(models.find("qwen2.5-1.5b")) == 2 * (2 + 8)


def test_work_is_all_of_a_token() -> None:
    shape, pico = models.find("stories"), boards.load("rp2040")
    token = formula.token(shape, 100, sinks=4)
    work = simulated.work(shape, token, None, pico)
    moved = work.kv_read + work.kv_write + work.weights + work.vectors
    assert moved == sum(token.values(), Bytes()).total
    assert work.weights == token["model"].weights
    slow = simulated.work(shape, token, 25.0, pico)
    bus = contention.bus_us(facts.figures("rp2040"), work)
    assert slow.compute_us + bus == pytest.approx(40_000)


# --- kvlab bench bus -------------------------------------------------------------------------------


def test_calls_of_the_bus(kvlab, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(closed, "event_rate_ratio", partial(closed.event_rate_ratio, 0.02))
    path = tmp_path / "calls.json"
    status, out, err = kvlab("bench", "bus", "--target", "unix", "--calls", 100, "--json", path)
    assert (status, err) == (0, "")
    found = json.loads(path.read_text())
    assert list(found["calls"]) == list(bench.TITLES)
    assert found["unit"] == "ns"
    assert found["ratios"]["call"] == 1
    assert all(found["ratios"][name] > 1 for name in ("request", "record", "stats", "enter", "may", "push"))
    assert 0.02 < found["event_rate_ratio"] < 1  # how much it is at the least: test_bus_contention.py
    assert "events a second" in out
