"""tools/kernelgen: what sources put down, what they may not, and that a changed file is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import kernel_tables
from field_tables.kernels import ATTEND, RUN
from generate_kernels import main
from kernelgen import files, flow, moves, operands, thumb
from kernelgen.flow import b, branch, label, ne, otherwise, repeat, when
from kernelgen.kernel import BadKernel, Register, Source
from kernelgen.moves import frame
from kernelgen.operands import Array, at, r0, r1, r3, r4, r5, r7, r8
from kvlab.paths import ROOT

PLACES = {name: 4 * index for name, index, _ in ATTEND.indexes()}


def lines(body: Callable[[], None]) -> list[str]:
    """What a source without arguments puts down, and nothing of what is said about it."""
    said = [line.strip() for line in Source(body).text().splitlines()[2:]]
    return [line for line in said if line[0] != "#"]


def fields() -> None:
    a = Array(r3, ATTEND)
    thumb.ldr(r4, a.WIDTH)
    moves.point(r7, a.RUN)
    thumb.add(r7, Array(r7, RUN).RUN_WORDS.offset)


def stack() -> None:
    with frame("a row", saved=False) as sp:
        moves.put(sp.row, 0, by=r4)
        moves.bump(sp.row, -8, by=r5)


def numbers() -> None:
    thumb.add(r8, r1)
    thumb.ldr(r4, at(r1, r0))
    thumb.ldm(r0, r4, r5)


def constants() -> None:
    moves.constant(r4, 7 << 10)
    moves.constant(r4, (1 << 15) - 1)
    moves.constant(r4, 2069)
    moves.constant(r4, -24)


def conditions() -> None:
    with when(ne(r4, 0)):
        thumb.mov(r5, 1)
    with otherwise():
        thumb.mov(r5, 2)


def loop() -> None:
    with repeat("TOKEN", ne):
        thumb.sub(r4, 1)


MADE = {
    fields: [
        *(f"ldr(r4, [r3, {PLACES['WIDTH']}])  # WIDTH", "mov(r7, r3)", f"add(r7, {PLACES['RUN']})  # RUN"),
        "add(r7, 16)  # RUN_WORDS",
    ],
    stack: [
        *("data(2, 0xB082)  # sub sp, 8", "mov(r4, 0)", "data(2, 0x9401)  # str r4, [sp, 4]  row"),
        *("data(2, 0x9D01)  # ldr r5, [sp, 4]  row", "sub(r5, 8)", "data(2, 0x9501)  # str r5, [sp, 4]  row"),
        "data(2, 0xB002)  # add sp, 8",
    ],
    numbers: [
        *("data(2, 0x4488)  # add r8, r1", "data(2, 0x580C)  # ldr r4, [r1, r0]"),
        "data(2, 0xC830)  # ldm r0!, {r4, r5}",
    ],
    constants: [
        *("mov(r4, 7)", "lsl(r4, r4, 10)", "mov(r4, 1)", "lsl(r4, r4, 15)", "sub(r4, 1)"),
        *("mov(r4, 129)", "lsl(r4, r4, 4)", "add(r4, 5)", "mov(r4, 24)", "neg(r4, r4)"),
    ],
    conditions: ["cmp(r4, 0)", "beq(L1)", "mov(r5, 1)", "b(L2)", "label(L1)", "mov(r5, 2)", "label(L2)"],
    loop: ["label(TOKEN)", "sub(r4, 1)", "bne(TOKEN)"],
}


@pytest.mark.parametrize("body", MADE, ids=lambda body: body.__name__)
def test_what_a_source_puts_down(body: Callable[[], None]) -> None:
    assert lines(body) == MADE[body]


def test_a_loop_that_a_branch_does_not_span_jumps() -> None:
    def near() -> None:
        with repeat("TOKEN", ne):
            for _ in range(126):
                thumb.add(r4, 1)

    def far() -> None:
        with repeat("TOKEN", ne):
            for _ in range(127):
                thumb.add(r4, 1)

    assert lines(near)[-1] == "bne(TOKEN)"
    assert lines(far)[-3:] == ["beq(L1)", "b(TOKEN)", "label(L1)"]


def test_a_kernel_says_what_its_registers_come_with() -> None:
    def added(dots: Register, count: Register) -> None:
        """Adds a count."""
        thumb.add(dots, count)

    said = ["# r0 dots, r1 count", "# Adds a count.", "add(r0, r0, r1)"]
    assert Source(added).text().splitlines() == [
        *("@micropython.asm_thumb", "def added(r0, r1):"),
        *(f"    {line}" for line in said),
    ]


def test_a_kernel_says_what_a_turn_of_its_inner_loops_costs() -> None:
    def nested() -> None:
        with repeat("COLUMN", ne):
            with repeat("TOKEN", ne(r4, r5)):
                thumb.add(r4, 1)
            branch(ne, "MORE")
            thumb.sub(r5, 1)
        label("MORE")

    assert "    # Instructions of inner loops: TOKEN 3" in Source(nested).text().splitlines()


def unknown_label() -> None:
    b("NOWHERE")


def two_labels() -> None:
    label("HERE")
    label("HERE")


def too_far() -> None:
    branch(ne, "END")
    for _ in range(129):
        thumb.add(r4, 1)
    label("END")


def else_of_nothing() -> None:
    thumb.add(r4, 1)
    with otherwise():
        thumb.sub(r4, 1)


def high() -> None:
    thumb.mul(r8, r1)


def large() -> None:
    thumb.mov(r1, 256)


def large_of_three() -> None:
    thumb.add(r1, r3, 8)


def odd() -> None:
    thumb.ldr(r1, at(r0, 6))


REFUSED = [unknown_label, two_labels, too_far, else_of_nothing, high, large, large_of_three, odd]


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_no_kernel(body: Callable[[], None]) -> None:
    with pytest.raises(BadKernel):
        lines(body)


def test_names_that_there_are_not() -> None:
    with pytest.raises(AttributeError, match="no field WIDHT in attend"):
        _ = Array(r3, ATTEND).WIDHT
    with pytest.raises(AttributeError, match="no word colunm in this frame"):
        lines(lambda: misspelt())


def misspelt() -> None:
    with frame("column") as sp:
        thumb.ldr(r4, sp.colunm)


def test_every_condition_has_its_opposite() -> None:
    assert len(flow.OPPOSITE) == 12
    assert all(flow.OPPOSITE[opposite] == condition for condition, opposite in flow.OPPOSITE.items())


def test_every_source_makes_a_file() -> None:
    sources = ROOT / "tools/kernelgen/sources"
    assert {path.stem for path in sources.glob("*.py")} - {"__init__"} == set(files.FILES)


def check(root: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["--root", str(root)])
    return result.exit_code, result.output


def test_a_changed_word_is_found(tmp_path: Path) -> None:
    for name in files.FILES.values():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    assert check(tmp_path) == (0, "")
    path = tmp_path / files.FILES["tokens"]
    path.write_text(path.read_text().replace("0xB084", "0xB083", 1))
    code, said = check(tmp_path)
    assert code == 1
    assert re.fullmatch(r"mpy_kv/eviction/tokens/thumb.py: not what .*tokens.py makes: .* --write\n", said)
    assert CliRunner().invoke(main, ["--root", str(tmp_path), "--write"]).exit_code == 0
    assert check(tmp_path) == (0, "")


def test_registers_have_their_names() -> None:
    assert [operands.r9.name, operands.sp.name, operands.lr.name] == ["r9", "sp", "lr"]
    assert operands.r9 == 9


def test_tables_are_what_they_are_defined_as(tmp_path: Path) -> None:
    done = CliRunner().invoke(kernel_tables.main, [])
    assert (done.output, done.exit_code) == ("", 0)
    empty = f"# values: {kernel_tables.COMMAND}\n# end of values\n"
    for name in kernel_tables.FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(kernel_tables.BLOCK.sub(empty, (ROOT / name).read_text()))
    stale = CliRunner().invoke(kernel_tables.main, ["--root", str(tmp_path)])
    assert stale.exit_code == 1
    assert stale.output.count(f"not what tools/kernel_tables.py makes: {kernel_tables.COMMAND}") == 2
    assert CliRunner().invoke(kernel_tables.main, ["--root", str(tmp_path), "--write"]).exit_code == 0
    for name in kernel_tables.FILES:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()
