"""Memory asked for ahead of its use, in compiled code.

A trace says what comes next. With a million entries nearly each access waits for memory several times, and
would wait one at a time.
"""

from __future__ import annotations

from typing import Any

from kvlab.engine import compiled

compiled.numba()

from llvmlite import ir  # type: ignore[import-untyped]  # noqa: E402
from numba.core import cgutils, types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

# Arguments of llvm.prefetch: to read or write, how often again (3: keep it), data and no code.
_WRITE, _KEEP, _DATA = 0, 3, 1


def _prefetch(typing: Any, array: Any, index: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        held = context.make_array(kind)(context, builder, arguments[0])
        at = context.cast(builder, arguments[1], signature.args[1], types.intp)
        item = cgutils.get_item_pointer(context, builder, kind, held, [at], wraparound=False)
        place = builder.bitcast(item, cgutils.voidptr_t)
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [place.type], shape)
        builder.call(call, [place, number(_WRITE), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, index), generate


# prefetch(array, index), in compiled code: array[index], an index within, will be needed soon.
prefetch: Any = intrinsic(_prefetch)
