"""The emulation of ARMv6-M counts as a core does, and sees what a core would let pass."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np
import pytest
import thumb32


def compiled(*lines: str) -> Callable[..., int]:
    """A function of three arguments: a buffer and two numbers."""
    source = "def f(r0, r1, r2):\n" + "".join(f"    {line}\n" for line in lines)
    return thumb32.kernel(ast.parse(source).body[0])  # type: ignore[arg-type]


def flags(*lines: str) -> Callable[..., str]:
    """Which flags are set after the lines: z, c, n, v in this order."""
    parts = []
    for place, condition in enumerate(("eq", "cs", "mi", "vs")):
        parts += [f"b{condition}(L{place})", f"b(M{place})", f"label(L{place})"]
        # A high register changes no flag.
        parts += [f"mov(r8, r{4 + place})", "data(2, 0x44C3)", f"label(M{place})"]
    head = ["mov(r3, r8)", "push({r3})", "mov(r3, r11)", "push({r3})", "mov(r3, 0)", "mov(r11, r3)"]
    head += [f"mov(r{4 + place}, {1 << place})" for place in range(4)]
    tail = ["mov(r0, r11)", "pop({r3})", "mov(r11, r3)", "pop({r3})", "mov(r8, r3)"]
    run = compiled(*head, *lines, *parts, *tail)
    return lambda x, y: "".join(letter for i, letter in enumerate("zcnv") if run(np.zeros(1), x, y) >> i & 1)


@pytest.mark.parametrize(
    ("line", "x", "y", "want"),
    [
        ("cmp(r1, r2)", 5, 5, "zc"),
        ("cmp(r1, r2)", 4, 5, "n"),
        ("cmp(r1, r2)", -(1 << 31), 1, "cv"),
        ("cmp(r1, r2)", 0, -1, ""),
        ("add(r1, r1, r2)", -1, 1, "zc"),
        ("add(r1, r1, r2)", (1 << 31) - 1, 1, "nv"),
        ("neg(r1, r2)", 0, 0, "zc"),
        ("neg(r1, r2)", 0, 1, "n"),
        ("asr(r1, r1, 3)", 12, 0, "c"),
        ("asr(r1, r1, 3)", -4, 0, "cn"),
        ("asr(r1, r1, 3)", -5, 0, "n"),
        ("lsl(r1, r2)", 3, 31, "cn"),
        ("lsr(r1, r2)", 8, 32, "z"),
        ("mul(r1, r2)", 1 << 16, 1 << 16, "z"),
    ],
)
def test_flags(line: str, x: int, y: int, want: str) -> None:
    assert flags("cmp(r4, 255)", line)(x, y) == want  # which clears carry before


def test_adding_the_bit_shifted_out_rounds_half_up() -> None:
    rounded = compiled("mov(r3, 0)", "asr(r1, r2)", "adc(r1, r3)", "mov(r0, r1)")
    for x in (0, 3, 4, 5, -4, -5, 2**31 - 1, -(2**31)):
        assert rounded(np.zeros(1), x, 3) == (x + 4) >> 3


def test_memory() -> None:
    buffer = np.array([1, -2, 7], np.int32)
    run = compiled("data(2, 0xC80C)", "data(2, 0xB212)", "str(r3, [r0, 0])", "mov(r0, r2)")
    assert run(buffer, 0, 0) == 1  # ldm r0!, {r2, r3}; sxth r2, r2
    assert list(buffer) == [1, -2, -2]
    assert run.steps == 4  # type: ignore[attr-defined]
    assert run.cycles == 3 + 1 + 2 + 1  # type: ignore[attr-defined]


FAULTS = {
    "access of 4 bytes at": ["ldr(r1, [r0, 0])", "add(r0, 2)", "ldr(r1, [r0, 0])"],
    "is in none of": ["str(r1, [r0, 16])"],
    "not restored": ["mov(r8, r1)"],
    "no end": ["label(L)", "b(L)"],
    "a jump to": ["bx(r1)"],
}


@pytest.mark.parametrize("message", FAULTS)
def test_faults_are_seen(message: str, monkeypatch) -> None:
    monkeypatch.setattr(thumb32, "MOST_STEPS", 1000)
    with pytest.raises(AssertionError, match=message):
        compiled(*FAULTS[message])(np.zeros(4, np.int32), 5, 0)


@pytest.mark.parametrize(
    "reads",
    [["adc(r1, r3)"], ["bcc(L)", "label(L)"], ["bhi(L)", "label(L)"]],
    ids=["adc", "bcc", "bhi"],
)
def test_a_carry_that_only_a_real_core_keeps_is_seen(reads: list[str]) -> None:
    run = compiled("mov(r3, 0)", "add(r3, 0)", "asr(r1, r2)", *reads, "mov(r0, r1)")
    assert run(np.zeros(1), 8, 3) == 1
    with pytest.raises(AssertionError, match="the carry is read after a shift by 0"):
        run(np.zeros(1), 8, 0)


def test_a_stack_not_given_back_is_seen() -> None:
    with pytest.raises(AssertionError, match="not restored"):
        compiled("push({r1, r2})", "pop({r1})")(np.zeros(1), 0, 0)
