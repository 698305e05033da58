"""The catalogue: what each rule refuses, why, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """`message`: one line, says what to do. `why`: the fault, where it strikes, what is right."""

    name: str
    message: str
    why: str


# Literals outside -2^30 .. 2^30 - 1 are no small ints on a 32-bit board.
WORD_LIMIT = 1 << 30
MOST_ARGUMENTS = 4
# Locals that mpy-cross keeps in registers.
REGISTERS = 2
# Words, halfwords or bytes that a 16-bit Thumb store reaches from its base.
NEAR_INDEXES = 32

_ALL = (
    Rule(
        "unary",
        "unary minus or ~ on a local overwrites it: write 0 - x or x ^ -1",
        "The emitters of 1.23 to 1.28 negate and invert in place, in the register that holds the local: "
        "after `b = -a`, a is changed too. A cast does not help (`-int(a)` is the same register); a "
        "computed operand does, as it lies in a register of its own.",
    ),
    Rule(
        "indexed",
        "a ptr16 or ptr32 is indexed with a variable: move the pointer, ptr32(int(p) + (i << 2))[0]",
        "1.26 and 1.27 scale the index in place on Thumb and RV32: after `p[i]`, i is 2 or 4 times what it "
        "was. The 64-bit unix port does not show it. A ptr8 needs no scaling and may be indexed freely.",
    ),
    Rule(
        "far-store",
        f"a store at a constant index beyond {NEAR_INDEXES - 1}: move the pointer first",
        "Before 1.26 a store that does not fit a 16-bit Thumb instruction moved the base pointer and left "
        "it there. Loads are right at any index.",
    ),
    Rule(
        "negative-index",
        "a negative index reads before the buffer: pointers do not count from the end",
        "Viper checks no bounds and gives an index its plain meaning: p[-1] is the item before the first.",
    ),
    Rule(
        "literal",
        "a literal that is no small int on a board: build it with a shift, or pass it in",
        "Integers outside -2^30 .. 2^30 - 1, and all floats, are objects in viper. mpy-cross refuses most "
        "uses of them; the unix port, whose small ints have 63 bits, takes them. A constant expression "
        "counts as the literal it folds to.",
    ),
    Rule(
        "divide",
        "// or % by what may be 0: guard it with `if divisor:`, or say why it never is",
        "Viper does not check: a division by 0 kills the process on x64 and is undefined elsewhere. A "
        "guard counts when it tests the divisor, a local, and nothing assigns the local below it.",
    ),
    Rule(
        "signature",
        "viper takes plain positional parameters only: no default, no *, no keyword-only",
        "Defaults compile and are ignored: leaving the argument out raises TypeError. Keyword-only "
        "parameters compile and read whatever the stack holds.",
    ),
    Rule(
        "is-none",
        "`is` does not work on viper's types: pass a flag, or 0",
        "`x is None` is no comparison of machine words. What may be absent needs a number that says so.",
    ),
    Rule(
        "global",
        "a global that is neither cast nor const: pass it in as an argument",
        "One look-up of a real global, len() included, makes every call of the function save and restore "
        "an exception context and swap the globals, about 20 % of a short kernel.",
    ),
    Rule(
        "try",
        "try or with in viper: do it in the caller",
        "Any handler in a function moves all of its locals from registers to the stack: 5.9 to 9.2 us for "
        "the same loop.",
    ),
    Rule(
        "arguments",
        f"more than {MOST_ARGUMENTS} arguments: pass the rest in one prebuilt array('i')",
        "Each argument of a viper call is converted at run time, and a caller in bytecode with a long "
        "argument list needs a frame of more than 11 words, which lies on the heap.",
    ),
    Rule(
        "order",
        f"one of the first {REGISTERS} parameters is no pointer, a later one is: the hottest pointers first",
        "Only the first 2 locals live in registers (3 when the board compiles) and arguments are the first "
        "locals: the same loop takes 9.1 us with its pointers first and 11.4 us with them last.",
    ),
    Rule(
        "far-jump",
        "a jump beyond what firmware 1.24 can encode: split the function",
        "Before 1.26 a jump of more than 2 KiB does not compile on ARMv6-M (RP2040); before 1.27 a "
        "conditional jump of more than 4 KiB goes astray on ARMv7-M (RP2350 hangs). Measured in the code "
        "that mpy-cross makes for those, laid out as 1.24 would, with a reserve for what 1.24 does at more "
        "length.",
    ),
    Rule(
        "refused",
        "mpy-cross refuses the function for an instruction set of a board",
        "What it said follows. Found while measuring jumps.",
    ),
    Rule(
        "mixed",
        "int and uint in one operation, or // or % of a uint: cast one side",
        "The left operand decides the type of `int + uint`, so the same sum is signed or not by the order "
        "of its terms; a comparison of the two is refused, and uint has no // and %.",
    ),
    Rule(
        "uint-result",
        "a uint result of 2^30 or more allocates: return an int, or store it in the caller's buffer",
        "The result of a viper function becomes a Python object; a big one is allocated on every call.",
    ),
    Rule(
        "shift",
        "a shift by 32 or more, or a negative one: not portable outside `if _WIDE:`",
        "ARM gives 0 or the sign, RV32 and Xtensa take the count modulo 32, x64 modulo 64.",
    ),
    Rule(
        "extend",
        "x << 24 >> 24 extends no sign on 64-bit words: write (x ^ 0x80) - 0x80",
        "The idiom needs the value's sign bit to reach bit 31 and words to be 32 bits wide. For halfwords "
        "write (x ^ 0x8000) - 0x8000; both are right on every word size.",
    ),
    Rule(
        "sign",
        "the sign of a ptr32 load is tested, but it has none on 64-bit words: extend it under `if _WIDE:`",
        "A load is zero-extended to the word: 0xFFFFFFFF is -1 on a board and 4294967295 on x64.",
    ),
    Rule(
        "unaligned",
        "the pointer moves by no whole number of its items: a HardFault on Cortex-M0+",
        "Words must lie at multiples of 4 and halfwords at multiples of 2 on RP2040. x64 and Cortex-M33 do "
        "not care.",
    ),
    Rule(
        "unbound",
        "the local is read before anything is assigned to it",
        "Native code checks no binding: it reads what the register or stack slot held, a wild object in "
        "@native, and crashes. Bytecode would raise NameError.",
    ),
    Rule(
        "asm-op",
        "no ARMv6-M instruction of MicroPython's assembler: RP2040 has only those",
        "A function of asm_thumb runs on RP2040 and RP2350 alike; the first has no movw, movt, it, clz, "
        "sdiv, udiv, wide branches, nor push and pop of r8 and up.",
    ),
    Rule(
        "asm-arguments",
        "asm_thumb takes at most 4 parameters, named r0, r1, r2, r3 in this order",
        "They are the registers in which the arguments arrive.",
    ),
    Rule(
        "allowance",
        "an allowance that allows nothing, names no rule or gives no reason",
        "Write `# viper: allow RULE because ...` (or RULE, RULE) on a line of the code that the rule "
        "refuses; for a rule about the signature or the whole function, on a line of its head.",
    ),
)

RULES: dict[str, Rule] = {rule.name: rule for rule in _ALL}
