"""Numbers in inline assembler are the instructions that stand beside them, all of them ARMv6-M."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from qemu_fixtures import unavailable

from kernelgen.encode import encode
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


def numbers(path: Path) -> list[tuple[int, str]]:
    """(halfword, what it says it is) of a file's instructions that are numbers; a second remark is free."""
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip().startswith("data(")]
    found = [re.fullmatch(r"data\(2, (0x[0-9A-F]{4})\)  # (.+?)(?:  .+)?", line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found) if not match]
    return [(int(match[1], 16), match[2]) for match in found if match]


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(ROOT).as_posix() for path in FILES])
def test_numbers_are_what_they_say(path: Path) -> None:
    found = numbers(path)
    assert found
    for number, text in found:
        assert number == encode(text), text


@pytest.mark.exhaustive
def test_numbers_are_those_of_gnu_as(tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-as") is None:
        unavailable("no arm-none-eabi-as")
    words = sorted({pair for path in FILES for pair in numbers(path)})
    lines = [".syntax unified", ".thumb"]
    for _, text in words:
        lines.append(re.sub(r"(?<=[ \[,])(\d+)", r"#\1", re.sub(r"^(add|sub) sp, ", r"\1 sp, sp, ", text)))
    source, binary = tmp_path / "words.s", tmp_path / "words.o"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(["arm-none-eabi-as", "-mcpu=cortex-m0", source, "-o", binary], check=True)
    copy = ["arm-none-eabi-objcopy", "-O", "binary", "-j", ".text", binary, tmp_path / "words"]
    subprocess.run(copy, check=True)
    raw = (tmp_path / "words").read_bytes()
    given = [int.from_bytes(raw[2 * i : 2 * i + 2], "little") for i in range(len(words))]
    assert given == [number for number, _ in words]
