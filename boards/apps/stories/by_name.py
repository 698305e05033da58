"""A step of the model with its kernels called by name: where they are not in assembler, or the image is not
mapped, so that programs.py cannot be. Allocates nothing. `m` is a Llama.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from mpy_kv import cpython as micropython
    from mpy_kv.cpython import const

from .kernels.tables import SIGMOID, SINE

# fields: embed, matvec, rope
_ROW_AT = const(3)
_M_AT = const(0)
_M_ROWS = const(1)
_M_GROUPS = const(2)
_M_SKIP = const(3)
_M_ACT = const(4)
_M_TO = const(5)
_M_EXPONENT = const(6)
_POSITION = const(1)
# end of fields

# Of kernels/layout.py.
_GROUP = const(32)
_MASK = const(0x00FF00FF)

# Bytecode, half the size of native code: 5 % of a token's time is spent here. A frame of more than 11
# words (locals and the deepest expression) would lie on the heap, so these functions are short.


def compute(m, token, logits):
    """A step but for its checks and its commit."""
    layer = 0
    while layer < m.layers:
        before(m, layer, token)
        _attend(m, layer)
        layer += 1
    before(m, layer, token)
    if logits:
        normalise(m, 2 * layer)
        multiply(m, m.matrices[7 * layer])


def before(m, layer, token):
    """What stands in front of append and attend of a layer, or behind those of the last: as programs.py."""
    if layer:
        _mix_tokens(m, layer - 1)
        _mix_channels(m, layer - 1)
    else:
        _turn_to(m)
        _load(m, token)
    if layer < m.layers:
        _ask(m, layer)


def _turn_to(m):
    """The rotary angles of this position."""
    rope_table = m.kernels.rope_table
    if m.sinks:
        m.turn_sinks[_POSITION] = m.cache.sink_query_position()
        rope_table(m.increments, m.cs_sinks, SINE, m.turn_sinks)
    m.turn[_POSITION] = m.cache.length
    rope_table(m.increments, m.cs, SINE, m.turn)


def normalise(m, i):
    """x, by the weights of norm i, as an activation vector."""
    a = m.norms[i]
    m.kernels.norm(m.norm_weights, m.workspace, a)
    m.kernels.quant(m.workspace, a)


def _ask(m, layer):
    """Keys, values and queries of a layer."""
    k = m.kernels
    v = m.workspace
    at = 7 * layer
    normalise(m, 2 * layer)
    multiply(m, m.matrices[at])
    multiply(m, m.matrices[at + 1])
    multiply(m, m.matrices[at + 2])
    k.rotate(v, m.k, m.cs, m.rotate_k)
    k.narrow(v, m.kv_out, m.narrow)
    k.rotate(v, m.q, m.cs, m.rotate_q)
    if m.sinks:
        k.rotate(v, m.q_sinks, m.cs_sinks, m.rotate_q)


def _attend(m, layer):
    m.cache.append(layer, m.k, m.kv_out)
    if m.sinks:
        m.cache.attend(layer, m.q, m.att, m.q_sinks)
    else:
        m.cache.attend(layer, m.q, m.att)


def _mix_tokens(m, layer):
    """What attention has found in a layer: x += wo att."""
    k = m.kernels
    v = m.workspace
    k.widen(m.att, v, m.widen[layer])
    k.quant(v, m.widen[layer])
    multiply(m, m.matrices[7 * layer + 3])
    k.add(v, m.add)


def _mix_channels(m, layer):
    """The feed-forward of one layer: x += w_down (silu(gate) * up)."""
    k = m.kernels
    v = m.workspace
    at = 7 * layer
    normalise(m, 2 * layer + 1)
    multiply(m, m.matrices[at + 4])
    multiply(m, m.matrices[at + 5])
    k.swiglu(v, SIGMOID, m.swiglu)
    k.quant(v, m.swiglu)
    multiply(m, m.matrices[at + 6])
    k.add(v, m.add)


def _load(m, token):
    """The token's embedding to x."""
    a = m.embed
    at = m.embed_at + token * m.embed_row_bytes
    if m.mapped:
        a[_ROW_AT] = at
    else:
        m.image.read(at, m.views[m.embed_row_bytes], m.embed_row_bytes)
    m.kernels.embed(m.weights, m.workspace, a)


@micropython.native
def multiply(m, a):
    """The matrix of those parameters times the activation vector."""
    if m.mapped:
        m.kernels.matvec(m.weights, m.workspace, _MASK, a)
        return
    c = m.chunk
    c[_M_GROUPS] = a[_M_GROUPS]
    c[_M_SKIP] = a[_M_SKIP]
    c[_M_ACT] = a[_M_ACT]
    c[_M_TO] = a[_M_TO]
    c[_M_EXPONENT] = a[_M_EXPONENT]
    row = a[_M_GROUPS] * _GROUP + a[_M_SKIP]
    most = len(m.weights) // row
    at = a[_M_AT]
    left = a[_M_ROWS]
    while left > 0:
        n = most if most < left else left
        m.image.read(at, m.views[n * row], n * row)
        c[_M_ROWS] = n
        m.kernels.matvec(m.weights, m.workspace, _MASK, c)
        c[_M_TO] += n
        at += n * row
        left -= n
