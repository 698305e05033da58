"""The rules for @micropython.asm_thumb: what RP2040's core and MicroPython's assembler both have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from viper_lint.rules import MOST_ARGUMENTS

_CONDITIONS = "eq ne cs cc mi pl vs vc hi ls ge lt gt le"
_BRANCHES = {f"b{condition}{end}" for condition in _CONDITIONS.split() for end in ("", "_n")}
_TWO = "mov cmp add sub and_ eor lsl lsr asr adc sbc ror tst neg cmn orr mul bic mvn"
_MEMORY = "ldr ldrb ldrh str strb strh"

# Name -> numbers of operands.
ARMV6M: dict[str, tuple[int, ...]] = {
    "label": (1,),
    "align": (1,),
    "data": tuple(range(2, 256)),
    "nop": (0,),
    "wfi": (0,),
    "b": (1,),
    "bl": (1,),
    "bx": (1,),
    "cpsid": (1,),
    "cpsie": (1,),
    "push": (1,),
    "pop": (1,),
    **dict.fromkeys(_BRANCHES, (1,)),
    **dict.fromkeys([*_TWO.split(), *_MEMORY.split()], (2,)),
    **dict.fromkeys(("lsl", "lsr", "asr"), (2, 3)),
    **dict.fromkeys(("add", "sub"), (2, 3)),
}

_LOW = {f"r{n}" for n in range(8)}
_LISTS = {"push": _LOW | {"lr", "r14"}, "pop": _LOW | {"pc", "r15"}}


def check_thumb(node: ast.FunctionDef) -> Iterator[tuple[str, ast.AST, str]]:
    args = node.args
    names = [argument.arg for argument in args.args]
    wanted = [f"r{n}" for n in range(MOST_ARGUMENTS)]
    plain = not (args.defaults or args.vararg or args.kwonlyargs or args.kwarg or args.posonlyargs)
    if not plain or names != wanted[: len(names)]:
        yield "asm-arguments", node, ""
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=operands)):
                if len(operands) not in ARMV6M.get(name, ()):
                    yield "asm-op", statement, f"{name} with {len(operands)} operands"
                elif name in _LISTS and not _registers(operands[0]) <= _LISTS[name]:
                    yield "asm-op", statement, ast.unparse(statement)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case _:
                yield "asm-op", statement, ast.unparse(statement).splitlines()[0]


def _registers(operand: ast.expr) -> set[str]:
    """Names in {r0, r1, ...}."""
    return {part.id.lower() for part in ast.walk(operand) if isinstance(part, ast.Name)}
