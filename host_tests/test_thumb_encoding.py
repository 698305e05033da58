"""Numbers in inline assembler are the instructions that stand beside them, all of them ARMv6-M."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from thumb_encoding import encode

from kvlab.paths import ROOT

FILES = sorted(path for folder in ("mpy_kv", "boards/apps") for path in (ROOT / folder).rglob("thumb.py"))

# Halfwords of the examples that GNU as gives for -mcpu=cortex-m0.
KNOWN = {
    "ldm r1!, {r6, r7}": 0xC9C0,
    "stm r5!, {r4}": 0xC510,
    "add r8, r6": 0x44B0,
    "add r5, r11": 0x445D,
    "cmp r1, lr": 0x4571,
    "ldr r4, [sp, 20]": 0x9C05,
    "str r5, [sp, 24]": 0x9506,
    "ldr r5, [r4, r3]": 0x58E5,
    "strh r4, [r1, r3]": 0x52CC,
    "ldrsh r7, [r0, r2]": 0x5E87,
    "ldrb r4, [r2, r3]": 0x5CD4,
    "strb r4, [r1, r3]": 0x54CC,
    "sxth r7, r6": 0xB237,
    "add sp, 36": 0xB009,
}


@pytest.mark.parametrize("text", KNOWN)
def test_the_encoder(text: str) -> None:
    assert encode(text) == KNOWN[text]


REFUSED = ["add r1, r2", "ldm r1!, {r1, r2}", "ldr r8, [sp, 4]", "ldr r1, [sp, 1024]", "add sp, 6"]
REFUSED += ["umull r1, r2", "add r13, r1", "ldrd r1, [sp, 4]"]


@pytest.mark.parametrize("text", REFUSED)
def test_the_encoder_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode(text)


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(ROOT).as_posix() for path in FILES])
def test_numbers_are_what_they_say(path: Path) -> None:
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip().startswith("data(")]
    assert lines
    for line in lines:
        found = re.fullmatch(r"data\(2, (0x[0-9A-F]{4})\)  # (.+)", line)
        assert found, line
        assert int(found[1], 16) == encode(found[2]), line
