"""The loop over the heads of a layer, with kernels called by name. Allocates nothing.

For kernels that do not call one another: those in assembler have this loop as heads() in kernels/thumb.py,
and a board that has them is spared this file.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from . import cpython as micropython
    from .cpython import const, ptr32

# fields: attend, encode, vector
_N = const(0)
_SLICES = const(3)
_CODES = const(5)
_VCODES = const(6)
_SCALES = const(7)
_VSCALES = const(8)
_SCALE_STRIDE = const(9)
_QUERY = const(17)
_SLICE = const(19)
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
# end of fields

# Of kernels/params.py.
_MASK = const(0x00FF00FF)


@micropython.viper
def heads(one, codes: int, out, tables):
    """The loop over heads; heads() in assembler does the same. In native code an attribute, element or
    sum costs about as much as ten tokens of a kernel; in viper only the attribute and the call do."""
    a = one.a
    p = ptr32(a)
    e = ptr32(one.e)
    g = one.geometry
    buf = one.buffer
    kernels = one.kernels
    qk = kernels.qk
    score = kernels.score
    weights = kernels.weights
    av = kernels.av
    emit = kernels.emit
    watched = 0
    probe = one.probe
    if probe:
        watched = 1
        uses = probe.uses
        plan = probe.plan
    # Of int4: sealed tokens stand behind the fresh ones, whose kernels are int8's, in one list of scores
    # and weights. While av() runs, N counts the fresh ones alone.
    sealed = two = 0
    form = one.form
    if form:
        two = 1
        sealed = int(form.begin(codes))
        qk4 = kernels.qk4
        center = kernels.center
        av4 = kernels.av4
    n = p[_N]
    slices = p[_SLICES]
    slice_scales = slices * p[_SCALE_STRIDE]
    v_codes = codes + e[_E_V + _VECTOR_AT]
    scales = codes + e[_E_K + _VECTOR_CODES]
    v_scales = v_codes + e[_E_V + _VECTOR_CODES]
    stride = e[_E_K + _VECTOR_HEAD]
    v_stride = int(g.v_head_stride)
    kv = int(g.kv_heads)
    per_kv = p[_HEADS] // kv  # viper: allow divide because it is 1 at least
    per_scales = e[_E_GROUP] // p[_HEAD_DIM]  # viper: allow divide because it is 1 at least
    query = p[_QUERIES]
    p[_SLICE] = 0
    same_scales = 0
    while kv:
        kv -= 1
        p[_CODES] = codes
        p[_VCODES] = v_codes
        codes += stride
        v_codes += v_stride
        if same_scales == 0:
            p[_SCALES] = scales
            p[_VSCALES] = v_scales
            scales += slice_scales
            v_scales += slice_scales
            kernels.scales(buf, buf, 0, a)
            kernels.scales(buf, buf, 1, a)
            same_scales = per_scales
        if same_scales:
            same_scales -= 1
        h = per_kv
        while h:
            h -= 1
            p[_QUERY] = query
            query += p[_QUERY_BYTES]
            s = 0
            while s < slices:
                p[_SLICE] = s
                qk(buf, buf, _MASK, a)
                if sealed:
                    qk4(buf, buf, _MASK, a)
                score(buf, buf, 0, a)
                s += 1
            s = 0
            while s < slices:
                p[_SLICE] = s
                if sealed:
                    center(buf, buf, tables, a)
                if watched:
                    uses(buf, plan, tables, a)
                weights(buf, buf, tables, a)
                p[_N] = n - sealed
                av(buf, buf, _MASK, a)
                p[_N] = n
                if sealed:
                    av4(buf, buf, _MASK, a)
                emit(buf, a, out)
                s += 1
        if two:
            if kv:
                form.next(same_scales)
