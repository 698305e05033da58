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

# How far they are written: words, programs begun.
_WRITTEN = const(0)
_BEGUN = const(1)


def _begin(starts, at):
    """The next program; behind the last step of the one before stays a word 0."""
    begun = at[_BEGUN]
    if begun:
        at[_WRITTEN] += 1
    starts[begun] = 4 * at[_WRITTEN]
    at[_BEGUN] = begun + 1


def _add(words, at, code, a, b, c=0, d=0):
    """A step: the address of a kernel, and its arguments."""
    i = at[_WRITTEN]
    words[i + _STEP_CALL] = code
    words[i + _STEP_R0] = a
    words[i + _STEP_R1] = b
    words[i + _STEP_R2] = c
    words[i + _STEP_R3] = d
    at[_WRITTEN] += _STEP_WORDS


def make(m):
    """(steps, starts) for a Llama: array('i') of STEP records, and the byte at which each program begins: one
    a layer, in front of its append and attend, one behind the last, one of the logits. None where a kernel is
    not in assembler, or an address no small int."""
    kernels = m.kernels
    like = getattr(kernels, "caller", None)
    if like is None or not m.mapped:
        return None
    addresses = load_module("mpy_kv.kernels.addresses")
    code = [addresses.address(getattr(kernels, name), n, like) for name, n in zip(_KERNELS, _ARGUMENTS)]
    places = [m.workspace, m.weights, m.norm_weights, m.att, m.q, m.k, m.kv_out, SINE, SIGMOID]
    places = [addressof(x) for x in places]
    for x in code + places:
        if not 0 < x <= addresses.MOST:
            return None
    return _made(m, code, places)


def _made(m, code, places):
    embed, norm, matvec, rope_table, rotate, narrow, widen, swiglu, add_, quant = code
    v, w, norm_w, att, q, k, kv_out, sine, sigmoid = places
    mask = load_module("stories.kernels.layout").MASK
    sinks = 1 if m.sinks else 0
    programs = 2 + m.layers
    to = array("i", bytes(4 * (_STEP_WORDS * (5 + sinks + (20 + sinks) * m.layers) + programs)))
    starts = array("i", bytes(4 * programs))
    at = array("i", (0, 0))
    add = _add
    _begin(starts, at)
    inc, cs = addressof(m.increments), addressof(m.cs)
    add(to, at, rope_table, inc, cs, sine, addressof(m.turn))
    if sinks:
        cs_sinks, q_sinks = addressof(m.cs_sinks), addressof(m.q_sinks)
        add(to, at, rope_table, inc, cs_sinks, sine, addressof(m.turn_sinks))
    add(to, at, embed, w, v, addressof(m.embed))
    turn_k, turn_q, narrowed = addressof(m.rotate_k), addressof(m.rotate_q), addressof(m.narrow)
    added, gated = addressof(m.add), addressof(m.swiglu)
    norms = [addressof(x) for x in m.norms]
    matrices = [addressof(x) for x in m.matrices]
    matrix = 0
    for layer in range(m.layers):
        add(to, at, norm, norm_w, v, norms[2 * layer])
        add(to, at, quant, v, norms[2 * layer])
        for _ in range(3):
            add(to, at, matvec, w, v, mask, matrices[matrix])
            matrix += 1
        add(to, at, rotate, v, k, cs, turn_k)
        add(to, at, narrow, v, kv_out, narrowed)
        add(to, at, rotate, v, q, cs, turn_q)
        if sinks:
            add(to, at, rotate, v, q_sinks, cs_sinks, turn_q)
        _begin(starts, at)
        x = addressof(m.widen[layer])
        add(to, at, widen, att, v, x)
        add(to, at, quant, v, x)
        add(to, at, matvec, w, v, mask, matrices[matrix])
        add(to, at, add_, v, added)
        add(to, at, norm, norm_w, v, norms[2 * layer + 1])
        add(to, at, quant, v, norms[2 * layer + 1])
        add(to, at, matvec, w, v, mask, matrices[matrix + 1])
        add(to, at, matvec, w, v, mask, matrices[matrix + 2])
        add(to, at, swiglu, v, sigmoid, gated)
        add(to, at, quant, v, gated)
        add(to, at, matvec, w, v, mask, matrices[matrix + 3])
        add(to, at, add_, v, added)
        matrix += 4
    _begin(starts, at)
    add(to, at, norm, norm_w, v, norms[-1])
    add(to, at, quant, v, norms[-1])
    add(to, at, matvec, w, v, mask, matrices[matrix])
    return to, starts
