"""What heads() steps through: kernels by their addresses, and where what they read lies.

Transient, see ../transient.py; makes the one array `calls` of a cache.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from array import array

from ..port import addressof
from ..transient import load_module
from .tables import TABLES

# fields: attend, encode, vector, calls
_SLICES = const(3)
_SCALE_STRIDE = const(9)
_HEAD_DIM = const(32)
_QUERY_BYTES = const(33)
_HEADS = const(37)
_QUERIES = const(44)
_E_GROUP = const(4)
_E_K = const(9)
_E_V = const(15)
_VECTOR_AT = const(0)
_VECTOR_CODES = const(2)
_VECTOR_HEAD = const(4)
_CALL_SCALES = const(0)
_CALL_QK = const(1)
_CALL_SCORE = const(2)
_CALL_USES = const(3)
_CALL_WEIGHTS = const(4)
_CALL_AV = const(5)
_CALL_EMIT = const(6)
_POLICY_AT = const(7)
_TABLES_AT = const(8)
_TO_VALUES = const(10)
_TO_SCALES = const(11)
_TO_VSCALES = const(12)
_NEXT_CODES = const(13)
_NEXT_VCODES = const(14)
_NEXT_SCALES = const(15)
_NEXT_QUERY = const(16)
_FIRST_QUERY = const(17)
_KV_HEADS = const(18)
_GROUP_HEADS = const(19)
_SHARED_SCALES = const(20)
_CALLS_COUNT = const(21)
# end of fields
A = load_module("mpy_kv.kernels.addresses")


def use(one, kernels):
    """Give an Attention that kernel set, before a token policy watches it."""
    one.kernels = kernels
    one.calls = None if one.form else _of_heads(one.geometry, kernels, one.a, one.e)
    if one.calls is None:
        one.call_by_name()


def _of_heads(g, kernels, a, e):
    """The array `calls` for heads() of that kernel set, with which `a` and `e` are read; None where a kernel
    is not in assembler."""
    like = getattr(kernels, "caller", None)
    if like is None:
        return None
    code = [A.address(getattr(kernels, name), 4, like) for name in ("scales", "qk", "score", "weights", "av")]
    code.append(A.address(kernels.emit, 3, like))
    tables = addressof(TABLES)
    if 0 in code or not 0 < tables <= A.MOST:
        return None
    calls = array("i", [0] * _CALLS_COUNT)
    (
        calls[_CALL_SCALES],
        calls[_CALL_QK],
        calls[_CALL_SCORE],
        calls[_CALL_WEIGHTS],
        calls[_CALL_AV],
        calls[_CALL_EMIT],
    ) = code
    calls[_TABLES_AT] = tables
    calls[_TO_VALUES] = e[_E_V + _VECTOR_AT]
    calls[_TO_SCALES] = e[_E_K + _VECTOR_CODES]
    calls[_TO_VSCALES] = e[_E_V + _VECTOR_CODES]
    calls[_NEXT_CODES] = e[_E_K + _VECTOR_HEAD]
    calls[_NEXT_VCODES] = g.v_head_stride
    calls[_NEXT_SCALES] = a[_SLICES] * a[_SCALE_STRIDE]
    calls[_NEXT_QUERY] = a[_QUERY_BYTES]
    calls[_FIRST_QUERY] = a[_QUERIES]
    calls[_KV_HEADS] = g.kv_heads
    calls[_GROUP_HEADS] = a[_HEADS] // g.kv_heads
    calls[_SHARED_SCALES] = max(1, e[_E_GROUP] // a[_HEAD_DIM])
    return calls


def watch(one, uses, policy):
    """Have heads() call a token policy's uses(), which is told `policy`, if that is in assembler too."""
    calls = one.calls
    if calls is None:
        return
    code = A.address(uses, 4, one.kernels.caller)
    told = addressof(policy)
    if not code or told > A.MOST:
        one.call_by_name()
        return
    calls[_CALL_USES] = code
    calls[_POLICY_AT] = told
