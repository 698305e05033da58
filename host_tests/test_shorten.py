"""Machine code that is made shorter computes what it did, on random programs and in every module."""

from __future__ import annotations

import random

import pytest

from unix_port import compiled
from unix_port.shorten import modules
from unix_port.shorten.code import ALWAYS, Instruction, decode, encode
from unix_port.shorten.live import FLAGS, effect
from unix_port.shorten.passes import shorten

MASK = 0xFFFFFFFF
WORDS = 8  # of the stack that programs use
START = [0xB5FE]  # push {r1-r7, lr}
END = [0xBDFE]  # pop {r1-r7, pc}


class Core:
    """Runs what mpy-cross makes, but calls: registers, flags and the words at the stack pointer."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.r = [draw.choice((0, 1, 255, MASK, draw.getrandbits(32))) for _ in range(16)]
        self.stack = [draw.getrandbits(32) for _ in range(WORDS)]
        self.n = self.z = self.c = self.v = 0

    def run(self, data: bytes) -> tuple[int, list[int]]:
        """The result and what the stack holds."""
        code = decode(data, 0)
        place = {id(each): i for i, each in enumerate(code)}
        at = 0
        for _ in range(10_000):
            each = code[at]
            at += 1
            if each.is_jump:
                assert each.target is not None
                if each.condition == ALWAYS or self.holds(each.condition or 0):
                    at = place[id(each.target)]
            elif each.word in END:
                return self.r[0], self.stack
            elif each.number is not None:
                self.r[each.word >> 8 & 7] = each.number
            elif each.word not in START:
                self.execute(each.word)
        raise AssertionError("no end")

    def holds(self, condition: int) -> bool:
        n, z, c, v = self.n, self.z, self.c, self.v
        base = (z, c, n, v, c and not z, n == v, n == v and not z)[condition >> 1]
        return bool(base) != bool(condition & 1)

    def nz(self, x: int) -> int:
        x &= MASK
        self.n, self.z = x >> 31, int(x == 0)
        return x

    def add(self, x: int, y: int, carry: int) -> int:
        total = x + y + carry
        self.c, result = total >> 32, total & MASK
        self.v = (x ^ result) >> 31 & (y ^ result) >> 31
        return self.nz(result)

    def shift(self, kind: int, x: int, count: int) -> int:
        if count:
            signed = (x ^ 1 << 31) - (1 << 31) if kind == 2 else x
            wide = x << min(count, 33) if kind == 0 else signed >> min(count - 1, 32)
            self.c = wide >> 32 & 1 if kind == 0 else wide & 1
            x = wide if kind == 0 else wide >> 1
        return self.nz(x)

    def execute(self, word: int) -> None:
        r, low, middle, high = self.r, word & 7, word >> 3 & 7, word >> 6 & 7
        top, register, number = word >> 11, word >> 8 & 7, word & 0xFF
        if top < 3:
            r[low] = self.shift(top, r[middle], word >> 6 & 31)
        elif top == 3:
            y = high if word >> 10 & 1 else r[high]
            r[low] = self.add(r[middle], y ^ MASK, 1) if word >> 9 & 1 else self.add(r[middle], y, 0)
        elif top == 4:
            r[register] = self.nz(number)
        elif top in (5, 7):
            result = self.add(r[register], number ^ MASK, 1)
            r[register] = result if top == 7 else r[register]
        elif top == 6:
            r[register] = self.add(r[register], number, 0)
        elif top == 18:
            self.stack[number % WORDS] = r[register]
        elif top == 19:
            r[register] = self.stack[number % WORDS]
        elif word >> 8 == 0x46:
            r[word >> 4 & 8 | low] = r[word >> 3 & 15]
        elif word >> 8 == 0xB2:
            bits = 16 if word >> 6 & 1 == 0 else 8
            x = r[middle] & (1 << bits) - 1
            r[low] = (x if word >> 7 & 1 else (x ^ 1 << bits - 1) - (1 << bits - 1)) & MASK
        else:
            assert word >> 10 == 0b010000, hex(word)
            self.of_two(word >> 6 & 15, low, middle)

    def of_two(self, operation: int, low: int, middle: int) -> None:
        x, y = self.r[low], self.r[middle]
        if operation in (2, 3, 4):
            self.r[low] = self.shift(operation - 2, x, y & 255)
        elif operation == 9:
            self.r[low] = self.add(0, y ^ MASK, 1)
        elif operation == 10:
            self.add(x, y ^ MASK, 1)
        elif operation in (5, 6):
            self.r[low] = self.add(x, y if operation == 5 else y ^ MASK, self.c)
        else:
            results = {0: x & y, 1: x ^ y, 8: x & y, 12: x | y, 13: x * y, 14: x & ~y, 15: ~y}
            result = self.nz(results[operation])
            if operation != 8:
                self.r[low] = result


def program(draw: random.Random) -> bytes:
    """Code as mpy-cross makes it: operands moved about, truths made numbers, jumps with room to spare."""
    words = list(START)
    ends: list[tuple[int, int]] = []  # of jumps forward: where the jump lies, its words

    def register() -> int:
        return draw.randrange(6)

    def jump_forward(condition: int | None) -> None:
        if condition is not None:
            words.append(0xD000 | (condition ^ 1) << 8 | 3)  # over the jump and its nops
        ends.append((len(words), draw.randrange(2, 14)))
        words.extend((0xE000, 0xBF00, 0xBF00, 0xBF00))

    for _ in range(draw.randrange(10, 60)):
        a, b, c, d = register(), register(), register(), register()
        kind = draw.randrange(12)
        if kind == 0:
            words.append(0x2000 | a << 8 | draw.choice((0, 1, 2, 7, 8, 31, 32, 255)))
        elif kind == 1:
            words.append(0x4600 | b << 3 | a)
        elif kind == 2:
            words.append(0x4600 | (a << 3) | 0x80 | 8 - 8 | 4 if draw.random() < 0.5 else 0x4600 | 8 << 3 | a)
        elif kind == 3:
            words.append(0x9000 | draw.randrange(2) << 11 | a << 8 | draw.randrange(WORDS))
        elif kind == 4:
            words.append(draw.randrange(3) << 11 | draw.randrange(1, 32) << 6 | b << 3 | a)
        elif kind in (5, 6):  # d = b op c, through registers of its own
            words.append(0x4600 | b << 3 | a)
            operation = draw.choice((0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15))
            words.append(0x4000 | operation << 6 | c << 3 | a)
            words.append(0x4600 | a << 3 | d)
        elif kind == 7:
            words.append(0x4600 | b << 3 | a)
            words.append(0x1800 | draw.randrange(4) << 9 | c << 6 | a << 3 | a)
            words.append(0x4600 | a << 3 | d)
        elif kind == 8:
            words.append(0x3000 | draw.randrange(2) << 11 | a << 8 | draw.randrange(256))
        elif kind == 9:  # a number behind its load
            if len(words) % 2:
                words.append(0xBF00)
            number = draw.choice((0x3FFFFFFF, 0xC0000001, draw.getrandbits(32)))
            words.extend((0x4800 | a << 8, 0xE001, number & 0xFFFF, number >> 16))
        elif kind == 10:  # a truth, and a jump by it
            condition = draw.randrange(14)
            words.append(0x4280 | b << 3 | a)
            words.extend((0xD001 | condition << 8, 0x2000, 0xE000, 0x2001, 0x2800))
            jump_forward(draw.randrange(2))
        else:
            words.append(0xB200 | draw.randrange(4) << 6 | b << 3 | a)
            if draw.random() < 0.3:
                words.append(0x2800 | a << 8 | draw.randrange(3))
                jump_forward(draw.randrange(14) if draw.random() < 0.7 else None)
    words.extend(END)
    data = [[word] for word in words]
    starts = _starts(words)
    for at, count in ends:
        later = [place for place in starts if place > at + 3][:count]
        data[at] = [0xE000 | (later[-1] - at - 2) & 0x7FF]
    return b"".join(word.to_bytes(2, "little") for (word,) in data)


def _starts(words: list[int]) -> list[int]:
    """Where instructions begin that a jump may lead to: none inside what belongs together."""
    found, at = [], 0
    while at < len(words):
        found.append(at)
        literal = words[at] >> 11 == 0b01001
        truth = words[at] >> 12 == 0xD and words[at] & 0xFF == 1
        at += 4 if literal else 5 if truth else 1
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_random_program_computes_what_it_did(seed: int) -> None:
    draw = random.Random(seed)
    for number in range(40):
        data = program(draw)
        short = encode(shorten(decode(data, 0)), 0)
        assert len(short) <= len(data)
        for state in range(3):
            assert Core(state).run(short) == Core(state).run(data), (seed, number, state)


def test_a_program_without_change_is_the_same() -> None:
    data = b"".join(word.to_bytes(2, "little") for word in (*START, 0x2007, *END))
    assert encode(shorten(decode(data, 0)), 0) == data


def test_the_flags_of_a_truth_may_be_needed() -> None:
    """cmp, a truth, a jump, and adc behind it: the carry is that of the last comparison."""
    words = [*START, 0x4291, 0xD101, 0x2000, 0xE000, 0x2001, 0x2800, 0xD100, 0x2101, 0x4148, *END]
    data = b"".join(word.to_bytes(2, "little") for word in words)
    short = encode(shorten(decode(data, 0)), 0)
    assert [Core(s).run(short) for s in range(8)] == [Core(s).run(data) for s in range(8)]


def test_a_load_may_be_wanted_for_its_own_sake() -> None:
    assert not effect(Instruction(0x6808)).idle  # ldr r0, [r1, #0]
    assert effect(Instruction(0x9801)).idle  # ldr r0, [sp, #4]
    assert effect(Instruction(0x2801)).writes == FLAGS


def test_every_function_of_the_package_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as short as it gets, and can be read again."""
    tree = compiled.tree("armv6m")
    left: list[int] = []
    real = modules._shorter

    def noted(code: bytes, start: int) -> bytes:
        new = real(code, start)
        left.append(len(code) - len(new))
        return new

    monkeypatch.setattr(modules, "_shorter", noted)
    for file in ("mpy_kv/kernels/viper.mpy", "stories/kernels/viper.mpy", "mpy_kv/sequence.mpy"):
        data = (tree / file).read_bytes()
        assert modules.shortened(data) == data
    assert len(left) > 25
    assert not any(left)


def test_other_modules_are_left_alone() -> None:
    for data in (b"", b"M\x06\x00\x1f", b"M\x06" + bytes([5 << 2]) + b"\x1f more"):
        assert modules.shortened(data) == data
