"""The model's kernel calls between those of the cache, as programs for run() (kernels/thumb.py).

Between two calls of the cache stand some twenty of kernels, with the same arguments at every token. As steps
of a program they take one call from bytecode, where each call of a kernel takes some hundred instructions.
Transient (mpy_kv/transient.py). Of a model whose image is mapped; others read their weights between calls.
Makes next to no garbage, which a start would collect again and again.
"""

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

from array import array

from mpy_kv.port import addressof
from mpy_kv.transient import load_module

from .kernels.tables import SIGMOID, SINE

_KERNELS = ("embed", "norm", "matvec", "rope_table", "rotate", "narrow", "widen", "swiglu", "add", "quant")
_ARGUMENTS = (3, 3, 4, 4, 4, 3, 3, 3, 2, 2)

# fields: step
_STEP_CALL = const(0)
_STEP_R0 = const(1)
_STEP_R1 = const(2)
_STEP_R2 = const(3)
_STEP_R3 = const(4)
_STEP_WORDS = const(5)
# end of fields

# Of kernels/layout.py.
_MASK = const(0x00FF00FF)


def _program(steps):
    """Room for so many steps, and behind them for a word 0. Of each layer its own: a heap that is nearly full
    has small gaps."""
    return array("i", bytes(4 * (_STEP_WORDS * steps + 1)))


def _add(words, at, code, a, b, c=0, d=0):
    """Write step number `at`: the address of a kernel, and its arguments. The next number."""
    i = at * _STEP_WORDS
    words[i + _STEP_CALL] = code
    words[i + _STEP_R0] = a
    words[i + _STEP_R1] = b
    words[i + _STEP_R2] = c
    words[i + _STEP_R3] = d
    return at + 1


def make(m, streamed=None):
    """Programs for a Llama whose image is mapped, of kernels with a caller: array('i') of STEP records each,
    one a layer, in front of its append and attend, one behind the last, one of the logits. None where a
    kernel is not in assembler, or an address no small int. streamed: what puts other steps in the place of
    each matrix's, see streaming/streamed.py."""
    kernels = m.kernels
    like = kernels.caller
    addresses = load_module("mpy_kv.kernels.addresses")
    code = [addresses.address(getattr(kernels, name), n, like) for name, n in zip(_KERNELS, _ARGUMENTS)]
    places = [m.workspace, m.weights, m.norm_weights, m.att, m.q, m.k, m.kv_out, SINE, SIGMOID]
    places = [addressof(x) for x in places]
    for x in code + places:
        if not 0 < x <= addresses.MOST:
            return None
    return _made(m, code, places, streamed)


def _made(m, code, places, streamed):
    embed, norm, matvec, rope_table, rotate, narrow, widen, swiglu, add, quant = code
    v, w, norm_w, att, q, k, kv_out, sine, sigmoid = places
    sinks = 1 if m.sinks else 0
    inc, cs = addressof(m.increments), addressof(m.cs)
    turn_k, turn_q, narrowed = addressof(m.rotate_k), addressof(m.rotate_q), addressof(m.narrow)
    added, gated = addressof(m.add), addressof(m.swiglu)
    cs_sinks, q_sinks = addressof(m.cs_sinks), addressof(m.q_sinks)
    programs = []
    matrix = 0

    def multiply(to, at, matrix):
        if streamed is not None:
            return streamed.multiply(to, at, matrix, _add)
        return _add(to, at, matvec, w, v, _MASK, addressof(m.matrices[matrix]))

    for layer in range(m.layers + 1):
        first, last = layer == 0, layer == m.layers
        steps = (2 + sinks if first else 12) + (0 if last else 8 + sinks)
        if streamed is not None:
            steps += streamed.more(matrix, (0 if first else 4) + (0 if last else 3)) + (first or last)
        to = _program(steps)
        at = 0
        if first:
            if streamed is not None:
                at = streamed.begin(to, at, _add)
            at = _add(to, at, rope_table, inc, cs, sine, addressof(m.turn))
            if sinks:
                at = _add(to, at, rope_table, inc, cs_sinks, sine, addressof(m.turn_sinks))
            at = _add(to, at, embed, w, v, addressof(m.embed))
        else:
            x = addressof(m.widen[layer - 1])
            normed = addressof(m.norms[2 * layer - 1])
            at = _add(to, at, widen, att, v, x)
            at = _add(to, at, quant, v, x)
            at = multiply(to, at, matrix)
            at = _add(to, at, add, v, added)
            at = _add(to, at, norm, norm_w, v, normed)
            at = _add(to, at, quant, v, normed)
            at = multiply(to, at, matrix + 1)
            at = multiply(to, at, matrix + 2)
            at = _add(to, at, swiglu, v, sigmoid, gated)
            at = _add(to, at, quant, v, gated)
            at = multiply(to, at, matrix + 3)
            at = _add(to, at, add, v, added)
            matrix += 4
        if not last:
            normed = addressof(m.norms[2 * layer])
            at = _add(to, at, norm, norm_w, v, normed)
            at = _add(to, at, quant, v, normed)
            for _ in range(3):
                at = multiply(to, at, matrix)
                matrix += 1
            at = _add(to, at, rotate, v, k, cs, turn_k)
            at = _add(to, at, narrow, v, kv_out, narrowed)
            at = _add(to, at, rotate, v, q, cs, turn_q)
            if sinks:
                _add(to, at, rotate, v, q_sinks, cs_sinks, turn_q)
        elif streamed is not None:
            streamed.end(to, at, _add)
        programs.append(to)
    to = _program(3 if streamed is None else 4 + streamed.more(matrix, 1))
    normed = addressof(m.norms[-1])
    at = _add(to, 0, norm, norm_w, v, normed)
    at = _add(to, at, quant, v, normed)
    at = multiply(to, at, matrix)
    if streamed is not None:
        streamed.end(to, at, _add)
    programs.append(to)
    return programs
