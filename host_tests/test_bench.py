"""kvlab bench: figures counted on the emulated board keep their limits; C, kernels and boards agree."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import qemu_fixtures
from pty_board import PtyBoard

import firmware
from commandline.errors import BadInput, FellShort
from firmware import natmod
from kvlab import boards, cli, paths
from kvlab.bench import board as user_board
from kvlab.bench import choices, shares, tables, targets, twin, worst
from kvlab.bench import tokens as token_costs
from kvlab.cost import model as pace
from kvlab.deploy.identity import Identity
from kvlab.deploy.link import connected
from kvlab.docs import run as docs
from kvlab.models.image import Image
from mpy_kv.eviction.tokens import POLICIES
from mpy_kv.kernels import params
from unix_port import compiled
from unix_port.shorten.modules import machine_code

Run = Callable[..., tuple[int, str, str]]

WIDTHS = ("8", "64")
COMPILED = ("c_o2", "c_o3")

# Instructions per multiply-accumulate, flushes included.
MOST = {
    "viper": {"qk": {"8": 10, "64": 10}, "av": {"8": 12.1, "64": 12.1}},
    "thumb": {"qk": {"8": 5, "64": 4}, "av": {"8": 6, "64": 5}},
}

# Of one token of stories260K's shape with 256 tokens in view.
MOST_PER_TOKEN = {"viper": 6_500_000, "thumb": 3_500_000}

# Where names meet in the interpreter's cache of lookups, bytecode takes up to 3 % more.
MOST_PER_APPEND = {"int16": 9_270, "float32": 13_000}


@pytest.fixture
def kvlab(capfd: pytest.CaptureFixture[str]) -> Run:
    """`kvlab(*words)`: exit status, stdout, stderr of one command run in this process."""

    def run(*words: object) -> tuple[int, str, str]:
        status = cli.main([str(word) for word in words])
        out, err = capfd.readouterr()
        return status, out, err

    return run


def figures_of(folder: Path, *words: object) -> dict[str, Any]:
    """What `kvlab bench ...` writes to its --json, once the 32-bit firmware is known to be there."""
    qemu_fixtures.built(targets.HEAP_BYTES)
    path = folder / "figures.json"
    assert cli.main(["bench", *map(str, words), "--json", str(path)]) == 0
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return figures_of(tmp_path_factory.mktemp("kernels"), "kernels", "--target", "qemu")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return figures_of(tmp_path_factory.mktemp("tokens"), "tokens", "--target", "qemu")


# --- products ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kernel", ["qk", "av"])
def test_products_cost_no_more_than_promised(products: dict[str, Any], kernel: str, width: str) -> None:
    costs = products[kernel][width]
    assert products["unit"] == "instructions"
    assert set(costs) == {"plain", "viper", "thumb", *COMPILED, "per_call"}
    assert set(costs["per_call"]) == set(costs) - {"per_call"}
    for name, most in MOST.items():
        assert 1 < costs[name] <= most[kernel][width], name
    assert costs["thumb"] <= costs["c_o2"]
    assert costs["viper"] <= 2 * costs["c_o2"]
    # A product takes four instructions in a plain loop: load, load, multiply, and to go on.
    assert 2 < costs["c_o3"] < 10
    assert 4 < costs["c_o2"] < 10


def test_a_twin_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    qemu_fixtures.built(targets.HEAP_BYTES)
    wrong = {**twin.defines(), "KV_UNITS": params.SCORES}
    folder = natmod.build(twin.SOURCE, optimise="-O2", defines=wrong).parent
    with pytest.raises(FellShort, match=r"av of rows of 8, 256 tokens: odd differs from plain"):
        targets.run(targets.QEMU, "products.py", ["odd", folder], lambda _n: None)


def test_the_indexes_of_the_twin_are_those_of_the_kernels() -> None:
    source = twin.SOURCE.read_text()
    assert twin.defines()["KV_DOTS"] == params.DOTS
    assert "KV_DOTS" in source
    assert "#define KV_" not in source


def test_unix_keeps_its_keys(tmp_path: Path, kvlab: Run) -> None:
    path = tmp_path / "kernels.json"
    status, out, _ = kvlab("bench", "kernels", "--tokens", 64, "--head-dim", 64, "--json", path)
    assert status == 0
    assert "rows of 64, 64 tokens" in out
    figures = json.loads(path.read_text())
    for kernel in ("qk", "av"):
        assert list(figures[kernel]) == ["plain_ns", "unrolled_ns", "viper_ns", "ratio"]
        assert figures[kernel]["ratio"] > 5


# --- tokens --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_token_costs_no_more_than_promised(tokens: dict[str, Any]) -> None:
    costs = tokens["instructions_per_token"]
    assert list(costs) == ["1", "63", "255"]
    for name, most in MOST_PER_TOKEN.items():
        assert costs["255"][name] <= most
        assert costs["1"][name] < costs["63"][name] < costs["255"][name]


@pytest.mark.slow
def test_shares_are_all_of_a_token(tokens: dict[str, Any]) -> None:
    """Counted another way than the token is; and the address of a kernel's code finds that kernel's work."""
    costs, found = tokens["instructions_per_token"], tokens["shares"]
    assert list(found) == list(costs)
    for at, by_set in found.items():
        assert list(by_set) == ["viper", "thumb"]
        for name, by in by_set.items():
            assert sum(by.values()) == pytest.approx(costs[at][name], rel=0.01)
            assert by[shares.INTERPRETER] < 0.25 * costs["255"]["thumb"]
    early, late = (found[at]["thumb"] for at in ("1", "255"))
    assert late["matvec"] == pytest.approx(early["matvec"], rel=0.001)
    for name in ("qk", "av", "weights", "score", "scales"):
        assert late[name] > 10 * early[name], name
    for name in ("encode", "query", "norm", "rotate", "add", "rope_table"):
        assert late[name] == pytest.approx(early[name], rel=0.03), name
    # A row of 8 in QK: 64 channels, 8 heads on 4, 5 layers, 256 tokens.
    assert 3 < late["qk"] / (8 * 8 * 5 * 256) < 5


def test_shares_are_by_the_address_of_code() -> None:
    kernels = {"qk": [1000, b"\x01\x02\x03\x04".hex()], "av": [2000, b"\x05\x06\x07\x08".hex()]}
    # A kernel shorter than what the board shows of memory, one longer, one of another module.
    where = shares.ranges(kernels, [b"\x01\x02", b"\x05\x06\x07\x08" * 4, b"\x09" * 8])
    assert where == [(1000, 1002, "qk"), (2000, 2016, "av")]
    blocks = [[998, 5], [1000, 7], [1002, 11], [2014, 13], [2000, 1], [2016, 17]]
    mark = {"blocks": blocks, "instructions": 1000}
    assert shares.shared(mark, where) == {"av": 14, "qk": 7, shares.INTERPRETER: 979}
    assert shares.rows({"3": {"thumb": {"av": 30, shares.INTERPRETER: 70}}}, ["thumb"]) == [
        ("3", "av", "30 (30.0 %)"),
        ("3", shares.INTERPRETER, "70 (70.0 %)"),
    ]


@pytest.mark.parametrize("codes", [[], [b"\x01\x02", b"\x01\x02\x03"]], ids=["none", "two"])
def test_a_kernel_whose_code_is_not_told_apart(codes: list[bytes]) -> None:
    with pytest.raises(FellShort, match="kernel qk: its code is that of"):
        shares.ranges({"qk": [1000, b"\x01\x02\x03".hex()]}, codes)


def test_machine_code_of_modules_is_found(tmp_path: Path) -> None:
    """Of viper and assembler functions, in their order; not of bytecode and native code."""
    source = tmp_path / "m.py"
    source.write_text(
        "import micropython\n"
        "@micropython.asm_thumb\ndef a(r0):\n add(r0, 1)\n"
        "def b():\n return 1\n"
        "@micropython.native\ndef c():\n return 2\n"
        "@micropython.viper\ndef d(x: int) -> int:\n return x * x * x\n"
    )
    made = tmp_path / "m.mpy"
    subprocess.run([compiled.compiler(), "-march=armv6m", "-o", str(made), str(source)], check=True)
    first, second = machine_code(made.read_bytes())
    assert bytes([1, 0x30]) in first  # adds r0, 1
    assert second.count(bytes([0x43])) >= 2  # muls
    assert len(first) < len(second)


@pytest.mark.slow
def test_the_first_word_comes_early(tokens: dict[str, Any]) -> None:
    """Of the whole program as it is deployed, kernels checked or remembered as such."""
    assert tokens["first_word_remembered"] <= 90_000_000
    assert tokens["first_word_remembered"] + 40_000_000 < tokens["first_word"] <= 380_000_000


def test_a_position_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A story told before it would be another's heap and text."""
    runs: list[Sequence[object]] = []

    def run(_target: str, script: str, words: Sequence[object], done: targets.Steps) -> dict[str, Any]:
        runs.append((script, *words))
        done(int(str(words[1])) - 1)
        prompt = {"viper": 6, "thumb": words[1]}
        told = {"viper": 7, "thumb": words[1]}
        return {"ns_per_token": told, "prompt_token": prompt, "window": 256, "missing": {}}

    monkeypatch.setattr(targets, "run", run)
    steps: list[int] = []
    found = token_costs.measure("a port", None, (63, 1, 63), steps.append)
    assert runs == [("tokens.py", "", 1), ("tokens.py", "", 63)]
    assert sum(steps) == token_costs.steps("a port", (63, 1, 63))
    assert found == {
        "target": "a port",
        "model": None,
        "window": 256,
        "missing": {},
        "prompt_token": {"1": {"viper": 6, "thumb": 1}, "63": {"viper": 6, "thumb": 63}},
        "ns_per_token": {"1": {"viper": 7, "thumb": 1}, "63": {"viper": 7, "thumb": 63}},
    }


@pytest.mark.slow
def test_a_token_of_a_prompt_costs_a_tenth_more_at_most(tokens: dict[str, Any]) -> None:
    """Than a told one at the same position, with its share of encoding."""
    told = tokens["instructions_per_token"]
    assert tokens["prompt_token"].keys() == told.keys()
    for at, by in tokens["prompt_token"].items():
        assert all(told[at][name] / 2 < by[name] <= 1.1 * told[at][name] for name in by)


@pytest.mark.slow
def test_storing_costs_no_more_than_promised(tokens: dict[str, Any]) -> None:
    cache = tokens["cache"]
    for kind, most in MOST_PER_APPEND.items():
        assert cache["append"][cache["kernels"]][kind]["hundredth"] <= most, kind
    assert 500 < cache["commit"] < cache["append"]["thumb"]["int16"]["hundredth"]


@pytest.mark.slow
def test_the_millionth_costs_what_the_hundredth_does(tokens: dict[str, Any]) -> None:
    for name in ("viper", "thumb"):
        for kind, append in tokens["cache"]["append"][name].items():
            assert append["millionth"] == pytest.approx(append["hundredth"], rel=0.02), (name, kind)
    steps = tokens["cache"]["step_by_window"]
    for window, step in steps.items():
        assert step["millionth"] == pytest.approx(step["early"], rel=0.02), window
    # It grows with the window alone, and no faster.
    assert list(steps) == ["32", "64", "128", "256"]
    growth = [steps[b]["early"] - steps[a]["early"] for a, b in (("64", "128"), ("128", "256"))]
    assert growth[1] == pytest.approx(2 * growth[0], rel=0.05)


@pytest.mark.slow
def test_limits_follow_from_the_boards(tokens: dict[str, Any]) -> None:
    assert set(tokens["limits"]) == {name for name in boards.names() if not boards.load(name).emulated}
    pico = tokens["limits"]["rp2040"]
    for name, instructions in tokens["instructions_per_token"]["255"].items():
        assert pico["core_tokens_per_s"][name] == pytest.approx(125e6 / instructions)
    # 20 MB/s of flash for the weights, 500 MB/s of SRAM for keys and values.
    seconds = pico["weights_read_bytes"] / 20e6 + pico["kv_read_bytes"] / 500e6
    assert pico["bus_tokens_per_s"] == pytest.approx(1 / seconds)
    assert tokens["limits"]["esp32"]["core_tokens_per_s"] == {}


def test_a_token_on_the_unix_port(tmp_path: Path, kvlab: Run) -> None:
    path = tmp_path / "tokens.json"
    words = ("--position", 9, "--position", 3, "--json", path)
    status, out, _ = kvlab("bench", "tokens", *words)
    assert status == 0
    assert "One token on unix" in out
    costs = json.loads(path.read_text())["ns_per_token"]
    assert list(costs) == ["3", "9"]
    assert all(ns > 0 for by in costs.values() for ns in by.values())


# --- worst ---------------------------------------------------------------------------------------


ROUNDS = 300

# Three look-ups of a name in a call: 64 instructions each, where another has the place in their cache.
LOOK_UPS = 3 * 64

# The most over the mean, by operation; 1.5 where nothing is told. What grows with regions, halvings or
# objects is dear when they are many, and what evicts, copies or prunes now and then.
MOST_OVER_MEAN = {
    "rollback": 1.6,
    **dict.fromkeys(("buddy_alloc", "buddy_free", "slab_region_alloc"), 2),
    **dict.fromkeys(("region_alloc", "slab_region_close_region"), 2.5),
    **dict.fromkeys(("requests_append_page_own", "requests_append_again", "budget_append_gaps"), 2.5),
    # A bucket that is full costs next to nothing, and a slice of the window is begun now and then.
    **dict.fromkeys(("bus_request", "bus_request_refused", "bus_record", "bus_stats"), 3),
}


@pytest.fixture(scope="module")
def dearest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return figures_of(tmp_path_factory.mktemp("worst"), "worst", "--calls", ROUNDS)


def test_the_dearest_calls(dearest: dict[str, Any]) -> None:
    assert dearest["rounds"] == ROUNDS
    operations = dearest["operations"]
    assert list(operations) == [name for names in worst.OPERATIONS.values() for name in names]
    for name, by in operations.items():
        assert 50 < by["min"] <= by["mean"] <= by["max"], name
        assert 0 <= by["max_at_call"] < by["calls"], name
        if name not in worst.POLICIES:
            assert by["max"] < MOST_OVER_MEAN.get(name, 1.5) * by["mean"], name
    assert operations["append_int16"]["calls"] == operations["commit"]["calls"] == ROUNDS
    for name in worst.POOLS:
        assert operations[name]["calls"] >= 0.9 * ROUNDS or name.endswith("_region"), name
    # A step of a request is one of each.
    kinds = ("append", "append_page", "append_page_evict", "append_page_own", "append_copy")
    appended = sum(operations[f"requests_{kind}"]["calls"] for kind in kinds)
    committed = sum(by["calls"] for name, by in operations.items() if name.startswith("requests_commit"))
    assert appended == committed == operations["requests_attend"]["calls"] > ROUNDS / 2
    # Nothing is paid for that is not done.
    costs = [operations[f"requests_{kind}"]["mean"] for kind in kinds[:3]]
    assert costs == sorted(costs)
    assert operations["fixed_alloc_many_16"]["max"] < 8 * operations["fixed_alloc"]["min"]


def test_the_dearest_calls_of_the_buses_queue(dearest: dict[str, Any]) -> None:
    """A push within 900 instructions, joined or not, and a batch within 150 a descriptor."""
    operations = dearest["operations"]
    assert max(operations[name]["max"] for name in ("dma_push", "dma_push_join", "dma_push_full")) <= 900
    assert operations["dma_rows_30"]["max"] <= 30 * 150
    # Of a batch: what a descriptor takes beside the call.
    assert operations["dma_planes_20"]["mean"] - operations["dma_planes_10"]["mean"] <= 10 * 150


def test_the_dearest_calls_of_policies(dearest: dict[str, Any]) -> None:
    """A touch does the same whatever is there. An eviction may pass what was used, for which the touches
    have paid: the most grows with the entries, the mean does not."""
    most, few = worst.ENTRIES, worst.FEW_ENTRIES
    operations = dearest["operations"]
    for name in worst.BLOCK_POLICIES:
        touch, insert, evict = (operations[f"{name}_{call}"] for call in ("touch", "insert", "evict"))
        of_few = operations[f"{name}_{few}_evict"]
        assert touch["calls"] > insert["calls"] == evict["calls"] == of_few["calls"] == ROUNDS
        assert touch["max"] < 1.25 * touch["min"], name
        if name != "s3fifo":  # which looks for the key among those it remembers
            assert insert["max"] == pytest.approx(insert["min"], abs=LOOK_UPS), name
        assert of_few["mean"] == pytest.approx(evict["mean"], rel=0.35), name
        assert evict["mean"] < 2.5 * evict["min"], name
    # By what is passed: nothing; protected entries, an eighth; empty lists of counts; newest entries, too;
    # all entries, once by the hand, up to four times by the queue.
    assert operations["lru_evict"]["max"] < operations["lru_evict"]["min"] + LOOK_UPS
    assert operations["lfu_evict"]["max"] == pytest.approx(operations[f"lfu_{few}_evict"]["max"], abs=8)
    for name, least in (("fifo", 0), ("hybrid", 0), ("sieve", 350), ("s3fifo", 1000)):
        a, b = (operations[f"{name}{size}_evict"]["max"] for size in (f"_{few}", ""))
        assert least < (b - a) / (most - few) < 2500, name


COUNTED_LOOPS = """
import exact, micropython
@micropython.asm_thumb
def loop(r0):
    label(AGAIN)
    sub(r0, 1)
    cmp(r0, 0)
    bne(AGAIN)
def count(n):
    start = exact.begin()
    loop(n)
    return exact.end(start)
count(1)  # what happens only once
print([count(n) - count(1) for n in (2, 3, 4, 5, 11, 14, 101, 1001, 100001)])
"""


def test_counts_are_right_to_within_four(qemu) -> None:
    got = json.loads(qemu.run(COUNTED_LOOPS))
    want = [3 * (n - 1) for n in (2, 3, 4, 5, 11, 14, 101, 1001, 100001)]
    assert all(abs(a - b) <= 4 for a, b in zip(got, want, strict=True)), got


@pytest.mark.exhaustive
def test_the_dearest_calls_repeat_exactly(dearest: dict[str, Any], tmp_path: Path) -> None:
    again = figures_of(tmp_path, "worst", "--calls", ROUNDS)
    for name, by in dearest["operations"].items():
        assert again["operations"][name] == by, name


# --- choices -------------------------------------------------------------------------------------


def told(name: str) -> str:
    """The table of that name in the documentation."""
    (figure,) = docs.told()[name]
    return figure.text.strip()


def told_choices(table: str, header: Sequence[str]) -> dict[str, dict[str, str]]:
    """The rows of a table of docs/CHOOSING.md, by first cell and head."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == list(header)
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows[2:]}


@pytest.fixture(scope="module")
def chosen() -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    codecs, policies = (told(name) for name in ("codec_costs", "policy_costs"))
    return told_choices(codecs, choices.CODECS_HEADER), told_choices(policies, choices.POLICIES_HEADER)


def test_the_page_tells_what_every_choice_costs(chosen) -> None:
    codecs, policies = chosen
    assert list(codecs) == list(choices.CODECS)
    assert list(policies) == [choices.RING, *POLICIES]
    for by in (*codecs.values(), *policies.values()):
        thumb, viper = (float(by[f"token, {name}"].replace(",", "")) for name in choices.SETS)
        assert 500_000 < thumb < viper


def test_choices_cost_what_the_page_tells(chosen) -> None:
    """If not: kvlab docs --write."""
    qemu_fixtures.built(targets.HEAP_BYTES)
    steps: list[int] = []
    found = choices.measure(steps.append, ["thumb"], ["int8-int4"], ["lru-peak"])
    assert steps == [1, 1]
    codecs, policies = chosen
    codec, policy = found["codecs"]["thumb"]["int8-int4"], found["policies"]["thumb"]["lru-peak"]
    for name, cost, cell in (
        *((key, codec[key], codecs["int8-int4"][head]) for key, head in (("qk", "QK"), ("av", "AV"))),
        *((key, codec[key], codecs["int8-int4"][key]) for key in ("append", "attend")),
        ("token", codec["token"], codecs["int8-int4"]["token, thumb"]),
        ("policy", policy["token"], policies["lru-peak"]["token, thumb"]),
    ):
        assert cost == pytest.approx(float(cell.replace(",", "")), rel=0.05), name


def test_choices_are_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kvlab: Run) -> None:
    """And what is made of them is what the page tells. Each is counted once, alone on its board."""
    cost = {"append": 3000, "attend": 40000.0, "token": 500000.0, "qk": 10.4, "av": 20.0}
    counted: list[tuple[str, str]] = []

    def run(target: str, script: str, words: Sequence[str], _done: targets.Steps) -> dict[str, Any]:
        assert (target, script) == ("qemu", "choices.py")
        name, choice = words
        counted.append((name, choice))
        if choice in choices.CODECS:
            return {"in_view": 128, **cost}
        return {"token": 625000.0 if choice == "lfu" else 500000.0, "in_view": 128}

    qemu_fixtures.built(targets.HEAP_BYTES)
    monkeypatch.setattr(targets, "run", run)
    status, out, _ = kvlab("bench", "choices", "--json", tmp_path / "choices.json")
    assert status == 0
    assert "128 tokens in view" in out
    figures = json.loads((tmp_path / "choices.json").read_text())
    assert list(figures["codecs"]["thumb"]) == list(choices.CODECS)
    every = (*choices.CODECS, choices.RING, *POLICIES)
    assert sorted(counted) == sorted((name, choice) for name in choices.SETS for choice in every)
    assert len(counted) == choices.STEPS
    codecs, kept = (table.splitlines()[2:] for table in tables.choices_tables(figures).values())
    assert codecs[1] == "| int8 | 10 | 20 | 3,000 | 40,000 | 500,000 | 500,000 |"
    assert kept[0] == "| ring | 500,000 | - | 500,000 | - |"
    assert "| lfu | 625,000 | +25.0 % | 625,000 | +25.0 % |" in kept


# --- the page ------------------------------------------------------------------------------------


def numbers(table: str) -> dict[tuple[str, str], float]:
    """The cells of a Markdown table by first cell and head."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    head = rows[0]
    return {
        (row[0], name): sum(float(part.replace(",", "")) for part in cell.split("+"))
        for row in rows[2:]
        for name, cell in zip(head[1:], row[1:], strict=True)
        if cell != "-"
    }


@pytest.mark.slow
def test_the_page_tells_what_is_measured(products: dict[str, Any], tokens: dict[str, Any]) -> None:
    """If not: kvlab docs --write."""
    for name, table in (
        ("products", tables.products(products)),
        ("token", tables.one_token(tokens)),
        ("storing", tables.storing(tokens)),
        ("limits", tables.limits(tokens)),
    ):
        want = numbers(table)
        got = numbers(told(name))
        assert got.keys() == want.keys(), name
        for place, value in want.items():
            if not place[1].startswith("C,"):  # another gcc, other code
                assert got[place] == pytest.approx(value, rel=0.05), (name, place)


def test_the_page_tells_the_worst_of_every_operation() -> None:
    for table, names in tables.WORST.items():
        cells = numbers(told(table))
        assert list(dict.fromkeys(row for row, _ in cells)) == [f"`{name}`" for name in names], table
        for name in names:
            by = {column: cells[f"`{name}`", column] for column in ("min", "mean", "max")}
            assert 50 < by["min"] <= by["mean"] <= by["max"], name


# --- a board on a serial port --------------------------------------------------------------------


@pytest.fixture
def board(tmp_path: Path):
    with PtyBoard(tmp_path / "flash.img") as board:
        yield board


def install(board: PtyBoard) -> None:
    """mpy_kv and the apps where the board finds them."""
    with connected(board.port) as link:
        link.run(f"import sys; sys.path += {[str(paths.ROOT), str(paths.APPS)]!r}")


def test_a_board_measures_what_it_has(board: PtyBoard, tmp_path: Path, kvlab: Run) -> None:
    install(board)
    path = tmp_path / "kernels.json"
    status, out, _ = kvlab("bench", "kernels", "--target", board.port, "--json", path)
    assert status == 0
    figures = json.loads(path.read_text())
    assert figures["unit"] == "ns"
    assert figures["target"] == board.port
    for kernel in ("qk", "av"):
        for width in WIDTHS:
            assert set(figures[kernel][width]) == {"plain", "viper", "per_call"}
            assert figures[kernel][width]["viper"] > 0
    assert "kernels 'thumb' cannot be used here" in out


def test_a_board_tells_with_its_own_model(board: PtyBoard, tmp_path: Path, kvlab: Run) -> None:
    install(board)
    words = ("bench", "tokens", "--target", board.port, "--position", 3)
    assert kvlab(*words)[::2] == (
        1,
        "kvlab: error: the board says RuntimeError: there is no model: kvlab deploy brings one\n",
    )
    with connected(board.port) as link:
        link.run(
            f"with open({str(paths.SHIPPED)!r}, 'rb') as source, open('model.mkvm', 'wb') as copy:\n"
            " copied = copy.write(source.read())"
        )
    path = tmp_path / "tokens.json"
    assert kvlab(*words, "--json", path)[0] == 0
    assert set(json.loads(path.read_text())["ns_per_token"]) == {"3"}


def test_a_board_without_the_modules(board: PtyBoard, kvlab: Run) -> None:
    status, _, err = kvlab("bench", "kernels", "--target", board.port)
    assert status == 2
    assert f"--target {board.port}: ImportError" in err
    assert "kvlab deploy" in err


def test_a_board_is_measured_beside_what_is_modelled(board: PtyBoard, tmp_path: Path, kvlab: Run) -> None:
    install(board)
    words = ("bench", "board", "--port", board.port, "--tokens", 20)
    status, _, err = kvlab(*words)
    assert (status, err.count("\n"), err.count("no model: copy a board image")) == (1, 1, 1)
    status, _, err = kvlab(*words, "--freq", 200_000_000)
    assert (status, err.count("nothing here sets a clock")) == (2, 1)
    with connected(board.port) as link:
        link.run(
            f"with open({str(paths.SHIPPED)!r}, 'rb') as source, open('model.mkvm', 'wb') as copy:\n"
            " copied = copy.write(source.read())"
        )
    path = tmp_path / "board.json"
    status, out, _ = kvlab(*words, "--board", "rp2040", "--window", 100, "--json", path)
    assert status == 0
    figures = json.loads(path.read_text())
    modelled = pace.pace(
        boards.load("rp2040"), Image.read(paths.SHIPPED).config, "int8", tokens=20, window=100
    )
    assert figures["modelled"]["tokens_per_s"] == modelled.tokens_per_s
    assert (figures["tokens"], figures["window"], figures["model_place"]) == (20, 100, "file")
    for key in ("tokens_per_s", "first_word_s", "first_word_remembered_s", "prompt_tokens_per_s"):
        assert figures["measured"][key] > 0
    assert "on the board it is a file" in out
    assert "thumb kernels; on the board viper and viper" in out


def test_figures_of_a_board_are_those_of_its_times() -> None:
    shape = {"dim": 1, "hidden": 1, "layers": 1, "heads": 1, "kv_heads": 1, "vocab": 1}
    first = {
        "shape": shape, "codec": "int8", "window": 256, "sinks": 4, "kernels": ["thumb", "thumb"],
        "model_place": "in place", "model_id": "0", "clock_hz": 125_000_000, "first_word_us": 8_000_000,
        "tokens": 260, "told_us": 13_000_000, "prompt_tokens": 40, "read_us": 2_000_000,
    }  # fmt: skip
    found = Identity("micropython", (1, 28, 0), "rp2", "Raspberry Pi Pico with RP2040", 0)
    figures = user_board.compared(user_board._of(found), found, first, {"first_word_us": 700_000})
    assert figures["board"] == "rp2040"
    assert figures["measured"] == {
        "tokens_per_s": 20, "first_word_s": 8, "first_word_remembered_s": 0.7, "prompt_tokens_per_s": 20
    }  # fmt: skip
    assert figures["notes"] == ["no figure: what such a model and cache take was not counted"]
    other = Identity("micropython", (1, 28, 0), "linux", "", 0)
    assert user_board.compared(None, other, first, first)["notes"] == [
        'no figure: "linux" is no board that is known here'
    ]


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["kernels", "--target", "qemo"], '--target qemo: no such target; did you mean "qemu"?'),
        (["kernels", "--target", "/dev/no-such"], "--target /dev/no-such: no such port"),
        (["kernels", "--head-dim", "12"], "--head-dim 12: the unrolled loop takes multiples of 8"),
        (["kernels", "--target", "qemu", "--tokens", "64"], "--tokens: only for --target unix"),
        (["board", "--port", "/dev/no-such"], "--port /dev/no-such: no such port"),
        (["board"], "--port: no board is connected by USB; name its serial port"),
        (["board", "--board", "rp2400"], '--board rp2400: no such board; did you mean "rp2040"?'),
        (["tokens", "--target", "/dev/no-such"], "--target /dev/no-such: no such port"),
        (["tokens", "--target", "/dev/no-such", "--model", "x"], "--model: a board on a serial port"),
        (["tokens", "--model", "no-such.mkvm"], "--model no-such.mkvm: no such file"),
        (["tokens", "--position", "0"], "Invalid value for '--position'"),
        (["worst", "--target", "unix"], "Invalid value for '--target'"),
        (["worst", "--calls", "1"], "Invalid value for '--calls'"),
    ],
)
def test_bad_input_is_one_line(kvlab: Run, words: list[str], message: str) -> None:
    status, _, err = kvlab("bench", *words)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", ["kernels --target qemu", "tokens --target qemu", "worst", "choices"])
def test_missing_tools_are_named(
    kvlab: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, err = kvlab("bench", *words.split())
    assert status == 2
    assert "apt-get install" in err
    assert err.count("\n") == 1


# --- native modules of C -------------------------------------------------------------------------


def test_the_first_error_of_the_compiler_is_told(tmp_path: Path) -> None:
    qemu_fixtures.built(targets.HEAP_BYTES)
    code = tmp_path / "broken.c"
    code.write_text("int f(void) { return nothing; }\n")
    with pytest.raises(firmware.FirmwareError, match="nothing.*undeclared") as caught:
        natmod.build(code, optimise="-O2")
    assert "\n" not in str(caught.value)


def test_what_was_built_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    qemu_fixtures.built(targets.HEAP_BYTES)
    first = twin.build()
    before = {name: os.stat(folder / "twin.mpy").st_ino for name, folder in first.items()}
    assert twin.build() == first
    assert {name: os.stat(folder / "twin.mpy").st_ino for name, folder in first.items()} == before
    assert len(set(first.values())) == len(first) == 2


def test_the_linker_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(natmod.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(natmod.tools, "need", lambda *_tools: None)
    with pytest.raises(BadInput, match="pip install pyelftools"):
        twin.build()
