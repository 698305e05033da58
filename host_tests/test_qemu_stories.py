"""The app on 32 bits: the unix port's story token for token, nothing allocated, and room on a Pico's heap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import qemu_fixtures
from stories_fixtures import tiny
from test_qemu_bits import sets

from kvlab import boards, cli, story
from kvlab.paths import BOARDS
from unix_port.compiled import ROOT

MODEL = BOARDS / "models" / "stories.mkvm"
M3 = boards.load("qemu_arm")
PICO = boards.load("rp2040")

# What must be left for whoever has more to do than to tell stories.
FREE_BYTES = 66_000

# Kernel sets that both packages have.
BOTH = sorted(set(sets("mpy_kv")) & set(sets("boards/apps/stories")))

# Figures of one run that say how the run went and not what it did.
OF_A_RUN = {
    "board",
    "heap_live_bytes",
    "heap_peak_bytes",
    "instructions",
    "largest_object_bytes",
    "machine_code_bytes",
    "seconds",
    "kernels",
    "cache_kernels",
}

# Modelled for an RP2040's core: of another there is no figure.
MODELLED = {"tokens_per_s", "first_word_s", "first_word_remembered_s", "prompt_tokens_per_s", "model_place"}


@pytest.fixture(scope="module", autouse=True)
def firmware_is_there() -> None:
    qemu_fixtures.needed_by("qemu_arm")


def test_the_boards_are_alike() -> None:
    """What is asked of this board is asked of a Pico."""
    assert M3.machine.heap_bytes == PICO.machine.heap_bytes
    assert M3.machine.flash_bytes == PICO.machine.flash_bytes
    assert f"FLASH_BYTES = const({M3.machine.flash_bytes})" in (BOARDS / "qemu_arm" / "main.py").read_text()


def test_the_command_says_what_it_says_for_a_pico(tmp_path: Path, capfd) -> None:
    shown, told = {}, {}
    for name in ("rp2040", "qemu_arm"):
        figures = tmp_path / f"{name}.json"
        line = ["stories", "--board", name, "--model", str(MODEL), "--tokens", "40", "--greedy"]
        assert cli.main([*line, "--json", str(figures)]) == 0
        told[name] = json.loads(figures.read_text())
        shown[name] = capfd.readouterr().out.split("\n")[0]
    assert shown["rp2040"] == shown["qemu_arm"] != ""
    assert told["rp2040"].keys() == told["qemu_arm"].keys()
    for name, figures in told.items():
        assert figures["settings"]["board"] == name
        figures["settings"] = {k: v for k, v in figures["settings"].items() if k not in OF_A_RUN}
    same = told["rp2040"].keys() - OF_A_RUN - MODELLED - {"modelled"}
    assert {key: told["qemu_arm"][key] for key in same} == {key: told["rp2040"][key] for key in same}
    assert all(told["rp2040"][key] and told["qemu_arm"][key] is None for key in MODELLED)
    assert told["rp2040"]["modelled"].startswith(f"{PICO.machine.clock_hz // 10**6} MHz, ")
    assert told["qemu_arm"]["modelled"].startswith("no figure: ")
    assert told["qemu_arm"]["alloc_bytes_per_token"] == 0
    assert told["qemu_arm"]["kernels"] == sets("boards/apps/stories")[0]
    assert told["qemu_arm"]["instructions"] > 0


def test_a_window_of_256_leaves_room_on_a_pico(tmp_path: Path) -> None:
    """To the byte: modules as deployed, machine code in the heap, objects of 32-bit words."""
    told = story.tell(M3, MODEL.read_bytes(), story.Telling(tokens=4, window=256, sinks=4))
    assert told.figures["window"] == 256
    free = told.figures["heap_limit_bytes"] - told.figures["heap_live_bytes"]
    assert told.figures["heap_limit_bytes"] == PICO.machine.heap_bytes
    assert free >= FREE_BYTES, f"{free:,} bytes are left"


TELL = """
import sys, stories
stories.main(sys.argv[2:], model=memoryview(open(sys.argv[1], "rb").read()), report=False)
"""


@pytest.mark.parametrize("name", BOTH)
def test_every_set_tells_the_story_of_the_unix_port(name: str, qemu, upy, tmp_path: Path) -> None:
    """Past the end of the window, sampled; native sets with the heap locked."""
    (tmp_path / "model").write_bytes(tiny()[2])
    # A token in bytecode takes a second.
    words = ["--seed", "9", "--sinks", "2", "--window", "20", "--tokens", "90"]
    if name == "plain":
        words[-3:] = ["6", "--tokens", "12"]
    want = upy.run(TELL, [tmp_path / "model", *words])
    words += ["--kernels", name, *([] if name == "plain" else ["--lock"])]
    assert qemu.run(TELL, [tmp_path / "model", *words]) == want


KEPT = {
    "policy": ["--policy", "window-lru", "--budget", 20, "--sinks", 2, "--codec", "int8-int4"],
    "compress": ["--policy", "lru-peak", "--budget", 20, "--codec", "float16", "--compress", "0.5"],
    "sealed": ["--codec", "int4", "--window", 40],
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_what_is_kept_is_what_the_unix_port_keeps(kept: list[object], qemu, upy, tmp_path: Path) -> None:
    """By the fastest kernels of each, with the heap locked."""
    (tmp_path / "model").write_bytes(tiny()[2])
    words = ["--seed", 9, "--tokens", 60, "--prompt", "the lion", "--lock", *kept]
    words = [tmp_path / "model", *map(str, words)]
    want = upy.run(TELL, words)
    assert len(want) > 60
    assert qemu.run(TELL, words) == want


THOUSANDS = """
import sys, stories
from micropython import mem_total
llama = stories.app.open_model(memoryview(open(sys.argv[1], "rb").read()), window=20, sinks=2)
figures = stories.tell(llama, tokens=int(sys.argv[2]), lock=True, write=len)
print(figures["tokens"], figures["evicted_tokens"], figures["alloc_bytes"])
"""


def test_thousands_of_tokens_allocate_nothing(qemu, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(tiny()[2])
    assert qemu.run(THOUSANDS, [tmp_path / "model", 2000], timeout=300).split() == ["2000", "1979", "0"]


@pytest.mark.parametrize("kind", ["float32", "int16"])
def test_the_cache_allocates_nothing(kind: str, qemu) -> None:
    """Thousands of tokens in bytes of mem_total and mem_alloc, and with the heap locked."""
    script = ROOT / "host_tests" / "device" / "allocation.py"
    measured = json.loads(qemu.run(script, [kind], timeout=300))
    assert min(measured.pop("control")) > 0, "the counters see nothing"
    assert measured == {name: [0, 0] for name in measured}


def test_bad_options_are_the_users(capfd) -> None:
    line = ["stories", "--board", "qemu_arm", "--model", str(MODEL), "--window", "100000"]
    assert cli.main(line) == 2
    assert "lower --window" in capfd.readouterr().err
