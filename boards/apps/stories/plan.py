"""What a Llama is made of: its cache, its workspace, and the parameters of every kernel call.

Transient (mpy_kv/transient.py), for a model is made once. Every 32-bit vector lies in one array('i'),
`workspace`:
  x[dim]        residual stream, point 16
  act           activation vector of the matrix at hand, see kernels/plain.py
  o             everything short-lived, each overwriting the one before: normalised vectors, q k v,
                gate and up, results of wo and w_down, logits
"""

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

from array import array

from mpy_kv import cache_for, geometry_for
from mpy_kv.errors import BadArgument
from mpy_kv.geometry import SINKS
from mpy_kv.transient import load_module


# fields: matvec, norm
_M_ROWS = const(1)
_M_GROUPS = const(2)
_M_SKIP = const(3)
_WEIGHTS = const(6)
# end of fields

U = load_module("stories.kernels.layout")
_padded = load_module("stories.workspace").padded


def _ints(*values):
    return array("i", values)


def make_cache(
    image,
    window=None,
    sinks=None,
    capacity=None,
    buffer=None,
    kernels=None,
    codec=None,
    policy=None,
    **geometry,
):
    """As stories.model.make_cache."""
    if capacity is None:
        if sinks is None:
            sinks = SINKS if policy is None else 0  # a policy keeps what is looked at, first tokens too
        if window is None:
            window = 256
            if isinstance(sinks, int):
                window = max(1, min(window, image.seq_len - sinks))
    if codec is None:
        codec = image.codec
    g = geometry_for(codec, *shape(image), window=window, sinks=sinks, capacity=capacity, **geometry)
    check_context(image, g)
    options = {"buffer": buffer, "kernels": kernels}
    options.update(shifts(image))
    if policy is not None:
        return load_module("stories.budgets").make(g, policy, **options)
    return cache_for(g, **options)


def shape(image):
    """What a geometry takes first of a model."""
    return image.layers, image.heads, image.kv_heads, image.head_dim


def shifts(image):
    """The binary points of a model's keys, values and queries, as a cache takes them."""
    all_layers = load_module("stories.tensors").shifts(image)
    return {"kv_shift": [(s[0], s[1]) for s in all_layers], "q_shift": [s[2] for s in all_layers]}


def check_context(image, g):
    """BadArgument, with what to lower, where `g` shows more tokens than the model was trained for."""
    if g.max_visible <= image.seq_len:
        return
    if g.capacity is not None:
        what, remedy = "capacity", "lower capacity to %d" % image.seq_len
    else:
        what = "window %d + sinks %d" % (g.window, g.sinks)
        left = image.seq_len - g.sinks
        remedy = "lower window to %d" % left if left > 0 else "lower sinks below %d" % image.seq_len
    raise BadArgument(
        "a context of %d tokens (%s) is more than the %d the model was trained for: %s"
        % (g.max_visible, what, image.seq_len, remedy)
    )


def check(image, g):
    """BadArgument unless a cache of geometry `g` is of this model."""
    for name in ("layers", "heads", "kv_heads", "head_dim"):
        if getattr(g, name) != getattr(image, name):
            raise BadArgument(
                "the cache has %s %d, the model %d: use make_cache"
                % (name, getattr(g, name), getattr(image, name))
            )
    if g.max_visible > image.seq_len:
        raise BadArgument(
            "the cache shows %d tokens, the model was trained for %d: lower window"
            % (g.max_visible, image.seq_len)
        )


def arrays(image, sinks, workspace, act, o):
    """The vectors and the parameters of every kernel call, as Llama takes them, and last the bytes of all of
    them, the workspace included, of which workspace.py says where `act` and `o` begin."""
    dim, hidden, d = image.dim, image.hidden, image.head_dim
    q, kv = image.heads * d, image.kv_heads * d
    table = load_module("stories.tensors")
    shifts = table.shifts(image)
    x = 0
    logits = memoryview(workspace)[o : o + image.vocab]
    q_vector = array("h", bytes(2 * q))
    q_sinks = q_vector if not sinks else array("h", bytes(2 * q))
    k = array("h", bytes(2 * kv))
    kv_out = array("h", bytes(2 * kv))
    att = array("h", bytes(2 * q))

    embed_at, _, _, embed_row_bytes, exponent, _, groups = table.entry(image, 0)
    embed = _ints(dim, groups * U.GROUP, x, 0, exponent + U.POINT)
    norms = []  # attention's and the feed-forward's of each layer, then the final one
    matrices = []  # q, k, v, o, gate, up, down of each layer, then the classifier
    widen = []
    for layer in range(image.layers):
        k_shift, v_shift, q_shift = shifts[layer]
        norms.append(_norm(image, table.of_layer(image, layer, table.ATT_NORM), x, o, act))
        norms.append(_norm(image, table.of_layer(image, layer, table.FFN_NORM), x, o, act))
        for which, to, point in (
            (table.WQ, o, q_shift),
            (table.WK, o + q, k_shift),
            (table.WV, o + q + kv, v_shift),
            (table.WO, o, U.POINT),
            (table.W_GATE, o, U.POINT),
            (table.W_UP, o + _padded(hidden), U.POINT),
            (table.W_DOWN, o, U.POINT),
        ):
            matrices.append(_matrix(table.of_layer(image, layer, which), act, to, point))
        # attend() leaves values at v_shift; 14: ROOT_ONE divides
        widen.append(_ints(q, _padded(q), o, act, U.ROOT_ONE, 14 - v_shift))
    norms.append(_norm(image, table.final_norm(image), x, o, act))
    matrices.append(_matrix(table.classifier(image), act, o, U.POINT))
    swiglu = _ints(hidden, _padded(hidden), o, act, U.ROOT_ONE, 0, o, o + _padded(hidden))
    add = _ints(dim, x, o)

    pairs = d // 2
    step, gap = (1, pairs) if image.half_split else (2, 1)
    inc = table.rope_increments(image)
    turn = _ints(pairs, 0)
    cs = array("h", bytes(2 * d))
    turn_sinks = _ints(pairs, 0)
    cs_sinks = array("h", bytes(2 * d))
    rotate_q = _ints(o, image.heads, pairs, step, gap)
    rotate_k = _ints(o + q, image.kv_heads, pairs, step, gap)
    narrow = _ints(o + q + kv, kv)
    ints = [workspace, inc, turn, turn_sinks, embed, swiglu, add, rotate_q, rotate_k, narrow]
    ints += norms + matrices + widen
    halves = [q_vector, k, kv_out, att, cs, cs_sinks] + ([q_sinks] if sinks else [])
    payload = 4 * sum([len(x) for x in ints]) + 2 * sum([len(x) for x in halves])
    return (
        (logits, q_vector, q_sinks, k, kv_out, att, embed, embed_at, embed_row_bytes)
        + (norms, matrices, widen, swiglu, add, inc, turn, cs, turn_sinks, cs_sinks)
        + (rotate_q, rotate_k, narrow, payload)
    )


def _norm(image, entry, x, o, act):
    offset, _, _, _, exponent, _, _ = entry
    return _ints(image.dim, _padded(image.dim), o, act, 0, 0, offset, x, exponent, image.eps_q32)


def _matrix(entry, act, to, point):
    offset, rows, _, row_bytes, exponent, _, groups = entry
    skip_bytes = row_bytes - groups * U.GROUP  # from the codes' end to the next row
    return _ints(offset, rows, groups, skip_bytes, act, to, exponent + point)


def weights(image, norms, matrices, embed_row_bytes, buffer):
    """Where the kernels find weights: (of matrices, of norms, views, parameters of matvec, bytes of RAM).

    Mapped, that is the image itself. Else rows are read into `buffer`, or into one of the longest row where
    that is longer, with a view by number of bytes that will be read; the norm weights are few and held in
    RAM, and `norms` is changed to say where.
    """
    if image.buffer is not None:
        return image.buffer, image.buffer, None, None, 0
    longest = max([m[_M_GROUPS] * U.GROUP + m[_M_SKIP] for m in matrices] + [embed_row_bytes])
    w = buffer if len(buffer) >= longest else bytearray(longest // 4 * 4)
    sizes = {embed_row_bytes}
    for m in matrices:
        row = m[_M_GROUPS] * U.GROUP + m[_M_SKIP]
        rows = len(w) // row
        sizes.add(row * min(rows, m[_M_ROWS]))
        sizes.add(row * (m[_M_ROWS] % rows))
    view = memoryview(w)
    views = {n: view[:n] for n in sizes}
    chunk = _ints(0, 0, 0, 0, 0, 0, 0)
    norm_bytes = 2 * image.dim + 3 & ~3
    norm_w = bytearray(norm_bytes * len(norms))
    for i, a in enumerate(norms):
        norm_w[i * norm_bytes : i * norm_bytes + 2 * image.dim] = image.bytes_at(a[_WEIGHTS], 2 * image.dim)
        a[_WEIGHTS] = i * norm_bytes
    return w, norm_w, views, chunk, len(w) + len(norm_w) + 4 * len(chunk)
