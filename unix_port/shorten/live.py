"""What each instruction reads and writes, and what is still needed behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from unix_port.shorten.code import ALWAYS, Instruction, NotUnderstoodError

# Registers are bits, and so are the flags behind them. The stack pointer and the memory are not among them:
# no instruction that touches them is moved.
_NZ, _CARRY, _OVERFLOW = 1 << 16, 1 << 17, 1 << 18
FLAGS = _NZ | _CARRY | _OVERFLOW
_CALL_READS = 0xF
_CALL_WRITES = 0xF | 1 << 12 | 1 << 14 | FLAGS


@dataclass(frozen=True)
class Effect:
    """`writes`: what it changes; `maybe`: what of that it may also leave as it was."""

    reads: int
    writes: int
    idle: bool  # it does nothing but write these registers: it can go where nobody needs them
    maybe: int = 0


def bit(register: int) -> int:
    return 1 << register


def effect(each: Instruction) -> Effect:
    """NotUnderstoodError for an instruction that mpy-cross does not make."""
    if each.condition is not None:
        return _JUMP if each.condition == ALWAYS else _BRANCH
    if each.number is not None:
        return Effect(0, bit(each.word >> 8 & 7), True)
    return _of(each.word)


_JUMP, _BRANCH = Effect(0, 0, False), Effect(FLAGS, 0, False)


@cache
def _of(word: int) -> Effect:
    low, middle, high = word & 7, word >> 3 & 7, word >> 6 & 7
    top = word >> 11
    if top < 3:  # lsl, lsr, asr by a number
        return Effect(bit(middle), bit(low) | _NZ | (_CARRY if word >> 6 & 31 else 0), True)
    if top == 3:  # add, sub of three
        more = 0 if word >> 10 & 1 else bit(high)
        return Effect(bit(middle) | more, bit(low) | FLAGS, True)
    if top < 8:
        register = bit(word >> 8 & 7)
        return (
            Effect(0, register | _NZ, True)  # mov
            if top == 4
            else Effect(register, FLAGS, True)  # cmp
            if top == 5
            else Effect(register, register | FLAGS, True)  # add, sub
        )
    if word >> 10 == 0b010000:
        return _of_two(word >> 6 & 15, low, middle)
    if word >> 10 == 0b010001:
        return _of_any(word)
    if top in (10, 11):  # loads and stores at a register's distance
        store = word >> 9 & 7 in (0, 1, 2)
        return _memory(low, bit(middle) | bit(high), store)
    if 12 <= top <= 17:  # at a number's
        return _memory(low, bit(middle), not word >> 11 & 1)
    if top == 18:  # at the stack pointer's
        return _memory(word >> 8 & 7, 0, True)
    if top == 19:
        return Effect(0, bit(word >> 8 & 7), True)
    if top == 21:  # add rd, sp, n
        return Effect(0, bit(word >> 8 & 7), True)
    if word >> 8 == 0xB0:  # add sp, sub sp
        return Effect(0, 0, False)
    if word >> 8 == 0xB2:  # sxth, sxtb, uxth, uxtb
        return Effect(bit(middle), bit(low), True)
    if word >> 8 == 0xB5 or word >> 8 == 0xB4:
        return Effect(word & 0xFF, 0, False)
    if word >> 8 == 0xBD:  # pop, with the return address: the result is in r0
        return Effect(0 if word & 1 else bit(0), word & 0xFF, False)
    raise NotUnderstoodError


def _of_two(operation: int, low: int, middle: int) -> Effect:
    both = bit(low) | bit(middle)
    if operation in (8, 10, 11):  # tst, cmp, cmn
        return Effect(both, _NZ if operation == 8 else FLAGS, True)
    if operation in (9, 15):  # neg, mvn
        return Effect(bit(middle), bit(low) | (FLAGS if operation == 9 else _NZ), True)
    if operation in (5, 6):  # adc, sbc
        return Effect(both | _CARRY, bit(low) | FLAGS, True)
    if operation in (2, 3, 4, 7):  # shifts: by 0 the carry stays
        return Effect(both, bit(low) | _NZ | _CARRY, True, _CARRY)
    return Effect(both, bit(low) | _NZ, True)


def _of_any(word: int) -> Effect:
    destination, source = word & 7 | word >> 4 & 8, word >> 3 & 15
    operation = word >> 8 & 3
    if operation == 3:
        if word & 0x87 != 0x80:  # bx
            raise NotUnderstoodError
        return Effect(bit(source) | _CALL_READS, _CALL_WRITES, False)
    if 15 in (destination, source) or 13 in (destination, source):
        raise NotUnderstoodError
    if operation == 0:
        return Effect(bit(destination) | bit(source), bit(destination), True)
    if operation == 1:
        return Effect(bit(destination) | bit(source), FLAGS, True)
    return Effect(bit(source), bit(destination), True)


def _memory(register: int, address: int, store: bool) -> Effect:
    if store:
        return Effect(address | bit(register), 0, False)
    return Effect(address, bit(register), False)  # a peripheral's register may be read for its own sake


def needed_behind(code: Sequence[Instruction]) -> list[int]:
    """Of each instruction the registers whose values are read before they are written again."""
    effects = [effect(each) for each in code]
    reads = [each.reads for each in effects]
    stays = [~(each.writes & ~each.maybe) for each in effects]
    place = {id(each): i for i, each in enumerate(code)}
    targets = [-1 if each.target is None else place[id(each.target)] for each in code]
    ends = [each.ends for each in code]
    before = [0] * (len(code) + 1)
    behind = [0] * len(code)
    changed = True
    while changed:
        changed = False
        for i in range(len(code) - 1, -1, -1):
            needed = 0 if ends[i] else before[i + 1]
            if targets[i] >= 0:
                needed |= before[targets[i]]
            behind[i] = needed
            now = reads[i] | needed & stays[i]
            if now != before[i]:
                before[i] = now
                changed = True
    return behind
