"""A function's machine code as a list of instructions whose jumps know their targets, and back."""

from __future__ import annotations

from dataclasses import dataclass

ALWAYS = 14  # the condition of a jump that has none
NOP = 0xBF00
_LONGEST_LITERAL = 1020  # how far behind its instruction a number may lie
_POP_PC = 0xBD00
_AROUND = 0xE001  # a jump around a number
_LONG_JUMP = 0x448F  # add pc, r1


class NotUnderstoodError(Exception):
    """Machine code beyond what mpy-cross makes for ARMv6-M."""


@dataclass(eq=False)
class Instruction:
    """`word`: the instruction, 16 bits; of a jump and of a number's load what remains without the distance.

    `target`: of a jump, the instruction that comes next; None behind the last one. `number`: what a load
    of a literal puts into its register.
    """

    word: int
    condition: int | None = None
    target: Instruction | None = None
    number: int | None = None

    @property
    def is_jump(self) -> bool:
        return self.condition is not None

    @property
    def ends(self) -> bool:
        """Whether what stands behind it is reached by jumps only."""
        return self.condition == ALWAYS or self.word >> 8 == _POP_PC >> 8


@dataclass
class _Read:
    at: int
    instruction: Instruction
    jumps_to: int | None = None

    @property
    def fills(self) -> bool:
        """Whether it is there for its length."""
        return self.instruction.word == NOP and not self.instruction.is_jump


def decode(data: bytes, start: int) -> list[Instruction]:
    """Machine code from offset `start`, without its nops."""
    if len(data) % 2 or start % 4:
        raise NotUnderstoodError
    found: list[_Read] = []
    at = start
    end = len(data)  # of the instructions: where the first number lies behind them
    while at < end:
        word = _half(data, at)
        size = 2
        item = _Read(at, Instruction(word))
        if word >> 11 == 0b01001:
            place = (at + 4 & ~3) + 4 * (word & 0xFF)
            number = _half(data, place) | _half(data, place + 2) << 16
            following = _half(data, at + 2)
            beside = place == at + 4 and following in (_AROUND, _LONG_JUMP)
            size = 8 if beside else 2
            if beside and following == _LONG_JUMP:
                if word >> 8 & 7 != 1:
                    raise NotUnderstoodError
                item.instruction = Instruction(0xE000, ALWAYS)
                item.jumps_to = at + 2 + 4 + (number ^ 1 << 31) - (1 << 31)
            else:
                item.instruction = Instruction(word & 0xFF00, number=number)
                end = end if beside else min(end, place)
        elif word >> 12 == 0xD and word >> 8 & 15 < ALWAYS:
            item.instruction = Instruction(0xD000, word >> 8 & 15)
            item.jumps_to = at + 4 + 2 * ((word & 0xFF ^ 0x80) - 0x80)
        elif word >> 11 == 0b11100:
            item.instruction = Instruction(0xE000, ALWAYS)
            item.jumps_to = at + 4 + 2 * ((word & 0x7FF ^ 0x400) - 0x400)
        found.append(item)
        at += size
    return _linked(found, at)


def _half(data: bytes, at: int) -> int:
    if at + 2 > len(data):
        raise NotUnderstoodError
    return data[at] | data[at + 1] << 8


def _linked(found: list[_Read], end: int) -> list[Instruction]:
    """The instructions, jumps pointing to what they lead to; nops gone."""
    real = [item for item in found if not item.fills]
    lands: dict[int, Instruction | None] = {end: None}
    following: Instruction | None = None
    for item in reversed(found):
        if not item.fills:
            following = item.instruction
        lands[item.at] = following
    for item in real:
        if item.jumps_to is not None:
            if item.jumps_to not in lands or lands[item.jumps_to] is None:
                raise NotUnderstoodError
            item.instruction.target = lands[item.jumps_to]
    return [item.instruction for item in real]


def encode(code: list[Instruction], start: int) -> bytes:
    """Machine code that begins at offset `start` of a word-aligned place."""
    return _Layout(code, start).written()


class _Layout:
    """Where instructions come to lie, from offset `start` of a word-aligned place, and the numbers behind the
    last one. What does not reach its target, or its number, is made longer until all do."""

    def __init__(self, code: list[Instruction], start: int) -> None:
        self._code = code
        self._start = start
        self._far: set[int] = set()  # by identity: conditional jumps over a jump, numbers beside their load
        self._at: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        while True:
            self._lay()
            longer = {id(each) for each in code if id(each) not in self._far and not self._reaches(each)}
            if not longer:
                break
            self._far |= longer

    def _lay(self) -> None:
        at = self._start
        for each in self._code:
            far = id(each) in self._far
            if each.number is not None and far:
                at += at % 4
                self._at[id(each)] = at
                at += 8
            else:
                self._at[id(each)] = at
                at += 4 if far else 2
        behind = [each.number for each in self._code if id(each) not in self._far]
        numbers = [number for number in dict.fromkeys(behind) if number is not None]
        if numbers and not self._code[-1].ends:
            raise NotUnderstoodError
        at += at % 4
        self._numbers = {number: at + 4 * i for i, number in enumerate(numbers)}

    def _reaches(self, each: Instruction) -> bool:
        if each.number is not None:
            return self._to_number(each) <= _LONGEST_LITERAL
        return each.condition in (None, ALWAYS) or -256 <= self._to_target(each) <= 254

    def _to_number(self, load: Instruction) -> int:
        assert load.number is not None
        return self._numbers[load.number] - (self._at[id(load)] + 4 & ~3)

    def _to_target(self, jump: Instruction, more: int = 0) -> int:
        assert jump.target is not None
        target = self._at[id(jump.target)]
        return target - (self._at[id(jump)] + more + 4)

    def written(self) -> bytes:
        data = bytearray()
        for each in self._code:
            while self._start + len(data) < self._at[id(each)]:
                data += _bytes(NOP)
            for word in self._words(each):
                data += _bytes(word)
        if self._numbers:
            data += bytes(-(self._start + len(data)) % 4)
        for number in self._numbers:
            data += number.to_bytes(4, "little")
        return bytes(data)

    def _words(self, each: Instruction) -> list[int]:
        far = id(each) in self._far
        if each.number is not None:
            if far:
                return [each.word, _AROUND, each.number & 0xFFFF, each.number >> 16]
            return [each.word | self._to_number(each) // 4]
        if each.condition is None:
            return [each.word]
        if each.condition != ALWAYS and not far:
            return [0xD000 | each.condition << 8 | self._to_target(each) // 2 & 0xFF]
        over = [0xD000 | (each.condition ^ 1) << 8] if each.condition != ALWAYS else []
        away = self._to_target(each, 2 * len(over))
        if not -2048 <= away <= 2046:
            raise NotUnderstoodError
        return [*over, 0xE000 | away // 2 & 0x7FF]


def _bytes(word: int) -> bytes:
    return word.to_bytes(2, "little")
