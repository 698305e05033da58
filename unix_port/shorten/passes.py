"""What is done to a list of instructions, again and again until nothing changes.

Each step looks at instructions that stand side by side, none but the first a target of a jump, and says by
which registers are needed behind them that nobody sees the difference. Whether flags are needed counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unix_port.shorten.code import ALWAYS, Instruction
from unix_port.shorten.live import FLAGS, bit, effect, needed_behind

_COMMUTE = {0, 1, 12, 13}  # and, eor, orr, mul
_SHIFTS = {2: 0, 3: 1, 4: 2}  # lsl, lsr, asr by a register -> by a number


def shorten(code: list[Instruction]) -> list[Instruction]:
    """The same computation in fewer instructions."""
    changed = True
    while changed:
        changed = False
        for step in _STEPS:
            code = _reached(code)
            state = _State(code)  # each step sees what is needed as the one before has left it
            if step(state):
                code = state.left()
                changed = True
    return _reached(code)


class _State:
    """One round: the code, what is needed behind each instruction, which are jumped to; and what is gone."""

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        self.needed = needed_behind(code)
        self.targets = {id(each.target) for each in code if each.is_jump}
        self.gone: set[int] = set()
        self._touched: set[int] = set()

    def window(self, at: int, count: int) -> list[Instruction] | None:
        """So many instructions from there on that are run one after the other and were not changed in this
        round."""
        if at + count > len(self.code) or not self.free(at, count):
            return None
        found = self.code[at : at + count]
        if any(id(each) in self.targets for each in found[1:]):
            return None
        return found

    def free(self, at: int, count: int) -> bool:
        """Whether none of so many was changed in this round."""
        return not any(i in self._touched for i in range(at, at + count))

    def dead(self, registers: int, at: int) -> bool:
        """Whether none of them is needed behind the instruction there."""
        return not self.needed[at] & registers

    def replace(self, at: int, count: int, words: Sequence[int | Instruction]) -> None:
        """Put these in the place of so many. The first keeps what jumps to it."""
        for i in range(count):
            self._touched.add(at + i)
            if i >= len(words):
                self.gone.add(at + i)
                continue
            new = words[i]
            old = self.code[at + i]
            if isinstance(new, int):
                old.word, old.condition, old.target, old.number = new, None, None, None
            else:
                old.word, old.condition, old.target, old.number = (
                    *(new.word, new.condition),
                    *(new.target, new.number),
                )

    def touch(self, at: int, count: int) -> None:
        """Leave so many as they are for the rest of this round."""
        self._touched |= set(range(at, at + count))

    def left(self) -> list[Instruction]:
        """The code without what is gone; jumps to what is gone lead to what follows it."""
        after: dict[int, Instruction] = {}
        following: Instruction | None = None
        for i in range(len(self.code) - 1, -1, -1):
            if i not in self.gone:
                following = self.code[i]
            assert following is not None
            after[id(self.code[i])] = following
        for each in self.code:
            if each.target is not None:
                each.target = after[id(each.target)]
        return [each for i, each in enumerate(self.code) if i not in self.gone]


def _reached(code: list[Instruction]) -> list[Instruction]:
    """Without what nothing leads to, and without jumps to what comes next anyway."""
    place = {id(each): i for i, each in enumerate(code)}
    seen: set[int] = set()
    todo = [0]
    while todo:
        i = todo.pop()
        if i in seen:
            continue
        seen.add(i)
        if code[i].target is not None:
            todo.append(place[id(code[i].target)])
        if not code[i].ends:
            todo.append(i + 1)
    return [code[i] for i in sorted(seen)]


def _jumps(state: _State) -> bool:
    """A jump over a jump is one of the other condition; one to what follows is none; one to a jump leads to
    where that goes."""
    done = False
    for i, each in enumerate(state.code):
        if not each.is_jump:
            continue
        target = each.target
        assert target is not None
        if target.condition == ALWAYS and target.target is not target and target is not each:
            each.target = target.target
            done = True
        following = state.code[i + 1] if i + 1 < len(state.code) else None
        if each.target is following and i not in state.gone and i > 0:
            if state.window(i, 1):
                state.replace(i, 1, ())
                done = True
            continue
        pair = state.window(i, 2)
        if pair and each.condition != ALWAYS and pair[1].condition == ALWAYS and i + 2 < len(state.code):
            assert each.condition is not None
            if each.target is state.code[i + 2]:
                state.replace(i, 2, [Instruction(0xD000, each.condition ^ 1, pair[1].target)])
                done = True
    return done


def _truths(state: _State) -> bool:
    """A comparison that becomes 0 or 1, which is compared with 0: one jump."""
    done = False
    for i in range(len(state.code) - 5):
        jump, zero, over, one, test, last = state.code[i : i + 6]
        register = zero.word >> 8 & 7
        if (
            jump.condition in (None, ALWAYS)
            or over.condition != ALWAYS
            or jump.target is not one
            or over.target is not test
            or zero.word != 0x2000 | register << 8
            or one.word != 0x2001 | register << 8
            or test.word != 0x2800 | register << 8
            or any(each.is_jump for each in (zero, one, test))
            or last.condition not in (0, 1)
        ):
            continue
        alone = [each for each in state.code if each.target in (zero, one, over, test, last)]
        if len(alone) != 2 or not state.dead(bit(register) | FLAGS, i + 5):
            continue
        assert jump.condition is not None
        if state.free(i, 6):
            condition = jump.condition ^ (1 if last.condition == 0 else 0)
            state.replace(i, 6, [Instruction(0xD000, condition, last.target)])
            done = True
    return done


def _unneeded(state: _State) -> bool:
    """What writes only registers that nobody needs."""
    done = False
    for i, each in enumerate(state.code):
        found = effect(each)
        same = _move(each)
        useless = state.dead(found.writes, i) or (same and same[0] == same[1])
        if found.idle and useless and state.window(i, 1):
            state.replace(i, 1, ())
            done = True
    return done


def _move(each: Instruction) -> tuple[int, int] | None:
    """(destination, source) of a mov between low registers."""
    if each.is_jump or each.number is not None or each.word & 0xFFC0 != 0x4600:
        return None
    return each.word & 7, each.word >> 3 & 7


def _numbers(state: _State) -> bool:
    """A small number that was put into a register goes into the instruction that uses it there."""
    done = False
    known: dict[int, int] = {}
    for i, each in enumerate(state.code):
        if id(each) in state.targets:
            known.clear()
        new = None if each.is_jump or each.number is not None else _with_number(each.word, known)
        if new is not None and state.window(i, 1):
            state.replace(i, 1, [new])
            done = True
        written = effect(each).writes
        for register in range(8):
            if written & bit(register):
                known.pop(register, None)
        if not each.is_jump and each.number is None and each.word >> 11 == 4:
            known[each.word >> 8 & 7] = each.word & 0xFF
    return done


def _with_number(word: int, known: dict[int, int]) -> int | None:
    low, middle, high = word & 7, word >> 3 & 7, word >> 6 & 7
    if word >> 10 == 0b010000 and middle in known:
        operation = word >> 6 & 15
        number = known[middle]
        if operation in _SHIFTS and 1 <= number <= 31 and low != middle:
            return _SHIFTS[operation] << 11 | number << 6 | low << 3 | low
        if operation == 10 and low != middle:  # cmp
            return 0x2800 | low << 8 | number
    if word >> 10 == 0b000110 and high in known:  # add, sub of three registers
        number = known[high]
        subtract = word >> 9 & 1
        if low == middle and low != high:
            return (0x3800 if subtract else 0x3000) | low << 8 | number
        if number < 8 and middle != high:
            return 0x1C00 | subtract << 9 | number << 6 | middle << 3 | low
    return None


def _operands(state: _State) -> bool:
    """mov a, b; a op= c; mov d, a: in one or two."""
    done = False
    for i in range(len(state.code) - 2):
        found = state.window(i, 3)
        if not found:
            continue
        first, last = _move(found[0]), _move(found[2])
        if not first or not last or first[0] != last[1] or first[0] == last[0]:
            continue
        a, b = first
        d = last[0]
        if not state.dead(bit(a), i + 2):
            continue
        new = _operated(found[1], a, b, d)
        if new is not None:
            state.replace(i, 3, new)
            done = True
    return done


def _operated(each: Instruction, a: int, b: int, d: int) -> list[int] | None:
    """Instructions for d = b op ..., of one for a = a op ...; a is not needed any more."""
    word = each.word
    if each.is_jump or each.number is not None:
        return None
    low, middle, high = word & 7, word >> 3 & 7, word >> 6 & 7
    top = word >> 11
    if top < 3 and low == a and middle == a:
        return [word & ~0x3F | b << 3 | d]
    if top == 3 and low == a:
        new = word & ~0x7
        if middle == a:
            new = new & ~0x38 | b << 3
        if not word >> 10 & 1 and high == a:
            new = new & ~0x1C0 | b << 6
        return [new | d]
    if top in (6, 7) and word >> 8 & 7 == a:
        if word & 0xFF < 8:
            return [0x1C00 | (top == 7) << 9 | (word & 7) << 6 | b << 3 | d]
        return [word & ~0x700 | d << 8] if b == d else [0x4600 | b << 3 | d, word & ~0x700 | d << 8]
    if word >> 10 == 0b010000 and low == a:
        operation = word >> 6 & 15
        if operation in (8, 9, 10, 11, 15):
            return None
        c = b if middle == a else middle
        if c == d and d != b:
            return [word & ~0x3F | b << 3 | d] if operation in _COMMUTE else None
        new = word & ~0x3F | c << 3 | d
        return [new] if b == d else [0x4600 | b << 3 | d, new]
    return None


def _results(state: _State) -> bool:
    """a = ...; mov d, a: the result goes to d at once."""
    done = False
    for i in range(len(state.code) - 1):
        found = state.window(i, 2)
        if not found:
            continue
        last = _move(found[1])
        if not last or last[0] == last[1] or not state.dead(bit(last[1]), i + 1):
            continue
        new = _written_to(found[0], last[1], last[0])
        if new is not None:
            state.replace(i, 2, [new])
            done = True
    return done


def _written_to(each: Instruction, a: int, d: int) -> Instruction | None:
    """An instruction that writes `d` instead of `a`; None where it cannot."""
    word = each.word
    if each.is_jump or not effect(each).writes & bit(a):
        return None
    top = word >> 11
    if each.number is not None or top in (4, 19, 21):
        return Instruction(word & ~0x700 | d << 8, number=each.number)
    if top <= 3 or top in (13, 15, 17) or (top in (10, 11) and word >> 9 & 7 > 2):
        return Instruction(word & ~7 | d)
    if word >> 10 == 0b010000 and word >> 6 & 15 in (9, 15):  # neg, mvn
        return Instruction(word & ~7 | d)
    if word >> 8 == 0xB2:
        return Instruction(word & ~7 | d)
    return None


def _sources(state: _State) -> bool:
    """mov a, b, where b stays as long as a is read: b is read instead."""
    done = False
    for i, each in enumerate(state.code):
        move = _move(each)
        if not move or move[0] == move[1] or not state.window(i, 1):
            continue
        a, b = move
        uses: list[tuple[int, int]] = []
        at = i + 1
        while at < len(state.code) and state.window(at - 1, 2):
            other = state.code[at]
            found = effect(other)
            if found.reads & bit(a):
                new = _reading(other, a, b)
                if new is None:
                    break
                uses.append((at, new))
            if found.writes & bit(a) or (state.dead(bit(a), at) and uses):
                for place, word in uses:
                    state.replace(place, 1, [word])
                state.replace(i, 1, ())
                state.touch(i, at + 1 - i)  # where b is needed longer than is known
                done = True
                break
            if found.writes & bit(b) or other.ends or other.is_jump:
                break
            at += 1
    return done


def _reading(each: Instruction, a: int, b: int) -> int | None:
    """The instruction, reading `b` where it read `a`; None where it cannot, such as where it changes `a`."""
    word = each.word
    if each.is_jump or each.number is not None:
        return None
    low, middle, high = word & 7, word >> 3 & 7, word >> 6 & 7
    top = word >> 11
    if top < 3 or 12 <= top <= 17 or word >> 8 == 0xB2:
        store = 12 <= top <= 17 and not word >> 11 & 1
        new = word
        if middle == a:
            new = new & ~0x38 | b << 3
        if store and low == a:
            new = new & ~7 | b
        return new
    if top == 3 or top in (10, 11):
        new = word
        if middle == a:
            new = new & ~0x38 | b << 3
        if high == a and not (top == 3 and word >> 10 & 1):
            new = new & ~0x1C0 | b << 6
        if top in (10, 11) and word >> 9 & 7 < 3 and low == a:
            new = new & ~7 | b
        return new
    if top == 5 or top == 18:  # cmp with a number, str at the stack pointer's distance
        return word & ~0x700 | b << 8
    if word >> 10 == 0b010000:
        operation = word >> 6 & 15
        if operation in (8, 10, 11):
            new = word & ~7 | b if low == a else word
            return new & ~0x38 | b << 3 if middle == a else new
        if operation in (9, 15) or low != a:
            return word & ~0x38 | b << 3
        return None
    move = _move(each)
    return word & ~0x38 | b << 3 if move else None


def _slots(state: _State) -> bool:
    """A word of the stack that a register still holds is not read again."""
    done = False
    held: dict[int, int] = {}  # slot -> register
    for i, each in enumerate(state.code):
        if id(each) in state.targets:
            held.clear()
        plain = not each.is_jump and each.number is None
        top = each.word >> 11 if plain else -1
        slot, register = each.word & 0xFF, each.word >> 8 & 7
        if top == 19 and slot in held and state.window(i, 1):
            state.replace(i, 1, [0x4600 | held[slot] << 3 | register])
            done = True
            top = -1
        found = effect(each)
        if plain and (each.word >> 8 in (0x47, 0xB0, 0xB4, 0xB5, 0xBD)):
            held.clear()
        for known, holder in list(held.items()):
            if found.writes & bit(holder):
                del held[known]
        if top == 18 or top == 19:
            held[slot] = register
    return done


_STEPS: tuple[Callable[[_State], bool], ...] = (
    _jumps,
    _truths,
    _numbers,
    _operands,
    _results,
    _sources,
    _slots,
    _unneeded,
)
