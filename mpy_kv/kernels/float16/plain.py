"""The kernels of float16 in plain integers: the definition that viper and Thumb must match bit for bit.

encode, scales, qk and av; the others are those of int8 (mpy_kv/kernels/plain.py). Stored: IEEE halves, little
endian, zeros in the padding of a row. What does not depend on the width of a number serves float32 too: there
`size` is its bytes, read(buf, at, by) gives the integer f and field(buf, at) the exponent field.

Bounds, beside B1 to B6:
 F1  |f| of a value <= 2047 * 2^11 < 2^22, of a key 2^(5 - k) times less, k being spare_bits(). On the way
     to it, 10 bits of mantissa times 2^20.
 F2  the codes of a query sum to 64 * 2^(8 - k) at most in magnitude, so |sum(q f)| < 2^31. In units of 2^k it
     is a dot as of codes below 128 times 2^10, which is what other types' is with its scale, at most 1.0074
     times as large as B3 allows: |score| < 2^30.
 F3  the small weights of a batch sum to <= 257 (B5): |sum(p f)| < 2^30.1; >> 15 and times the factor it is
     < 2^29.1.
 F4  the shift of a batch is 1..31 (B6), so that what rounds it is 2^30 at most.
 F5  |sum of values| <= 2^28 and 1/2 a batch (B6): with 2^29 added it is positive and below 2^30.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

from ..params import DENORMAL, TOO_LARGE, V_TOO_LARGE
from ..plain import batches, count_bits, get32, magnitude, put16, put32

# fields: attend, run, query, encode, vector, layer
_N = const(0)
_RUNS = const(1)
_ROW = const(2)
_SLICES = const(3)
_WIDTH = const(4)
_CODES = const(5)
_VCODES = const(6)
_DOTS = const(11)
_KSCALE = const(12)
_VSCALE = const(13)
_SUMS = const(16)
_QUERY = const(17)
_SINK_QUERY = const(18)
_KEXP = const(20)
_CORR = const(25)
_HEAD_DIM = const(32)
_V_WIDTH = const(40)
_VARIED = const(42)
_RUN = const(45)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_QUERY_WORDS = const(4)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_WIDTH = const(5)
_E_K = const(9)
_E_V = const(15)
_E_TABLE = const(21)
_VECTOR_ROW = const(1)
_VECTOR_BYTES = const(3)
_VECTOR_HEAD = const(4)
_LAYER_K_SHIFT = const(1)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields

_OFFSET = 1 << 29  # F5
_TABLE = 512  # bytes; of K, then of V
_TABLES = 1024
_NEAR = 4  # what exponents may differ by and be read alike
_LEAST = 12  # exponent field


def encode(buf, k, v, e):
    """One token's K and V of one layer, elements E_AT .. of k and v, to slot E_SLOT.

    To nearest, ties to even, the sign of zero kept; what is below 2^-25 becomes zero. Returns TOO_LARGE, or
    V_TOO_LARGE, for a magnitude beyond 65504 and what is not finite; the slot then holds rubbish.
    """
    return store(buf, k, v, e, 2, _put)


def store(buf, k, v, e, size, put):
    """As encode; put(buf, at, x, i, shift) stores x[i], and says whether it could."""
    table = _E_TABLE + _LAYER_WORDS * e[_E_LAYER]
    at = e[table] + e[_E_SLOT] * e[_E_K + _VECTOR_ROW]
    if not _vector(buf, k, e, at, e[table + _LAYER_K_SHIFT], size, put):
        return TOO_LARGE
    if not _vector(buf, v, e, at + e[_E_V], e[table + _LAYER_V_SHIFT], size, put):
        return V_TOO_LARGE
    return 0


def _vector(buf, x, e, head, shift, size, put):
    """Whether a vector could be stored, head 0 at `head`."""
    width = e[_E_WIDTH]
    for i in range(e[_E_COUNT]):
        c = i % width
        if not put(buf, head + c * size, x, e[_E_AT] + i, shift):
            return False
        if c == width - 1:
            for at in range(head + width * size, head + e[_E_K + _VECTOR_BYTES]):
                buf[at] = 0
            head += e[_E_K + _VECTOR_HEAD]
    return True


def _put(buf, at, x, i, shift):
    negative, m, exp = magnitude(x, i, shift)
    h = 0
    if m:
        bits = 0
        while m >> bits:
            bits += 1
        if exp + bits > 16 or exp + bits == 16 and m << 24 - bits > 2047 << 13:
            return False
        # The last place is 2^ue; the hidden bit counts as one more in the exponent field, as does a carry.
        ue = max(exp + bits - 11, -24)
        d = ue - exp
        h = (ue + 24 << 10) + (m + (1 << d - 1) - 1 + (m >> d & 1) >> d if d > 0 else m << -d)
    put16(buf, at, h | 32768 if negative else h)
    return True


def _field(buf, at):
    """Its exponent, of denormals as if there were no least one; -9 of zero."""
    h = (buf[at] | buf[at + 1] << 8) & 32767
    return h >> 10 or max(count_bits(h), 1) - 10


def _read(buf, at, table):
    """f of the number there: sign and exponent choose t and b, the other 10 bits m make (m * t >> 9) + b."""
    entry = table + 8 * (buf[at + 1] >> 2)
    return ((buf[at] | buf[at + 1] << 8 & 768) * get32(buf, entry) >> 9) + get32(buf, entry + 4)


def spare_bits(head_dim):
    """Bits that a sum over so many channels leaves for each key: 5 of 8, 0 of 256, -2 of 1,024."""
    return 5 - count_bits(head_dim - 1 >> 3)


def scales(buf, same, which, a):
    """KEXP or VEXP: the largest exponent among the visible numbers of the head; the relative scales; the
    table by which qk or av reads a number. which 0: K, 1: V.

    A value is then f * 2^(top - 36), but 0 if its exponent lies more than 20 below top; from 12 below on
    bits are cut off, which makes it smaller. A key is f * 2^(top - 31 - k), and so on with 5 - k less (F1).
    That is f / 2^(10 + k) codes of int8 with the scale 2^14 * 2^(top - 6 - 29): LOG_EXP and V_BIAS have the 6
    in them. A key whose exponent is d below top, d at least 4, has 2^-d of that scale, and f is
    relative to its own: VARIED. The tables, int32 [sign][32][2] of K and then of V right before the relative
    scales, hold t and b of _read(); d entries behind its start are those of a smaller top, but for numbers of
    exponent field 0, which the table's own 0 to d stand for: they must be small, so d counts from _LEAST on.
    """
    bits = 20 if which else 15 + spare_bits(a[_HEAD_DIM])
    top = relative(buf, which, a, 2, _field, _LEAST)
    for e in range(max(top, 1) + 1):
        at = a[_KSCALE] - _TABLES + _TABLE * which + 8 * e
        d = top - max(e, 1)
        t = 1 << bits >> d if d > 0 else 1 << bits - d
        hidden = t << 1 if e else 0
        put32(buf, at, t)
        put32(buf, at + 4, hidden)
        put32(buf, at + 256, -t)
        put32(buf, at + 260, int(t & 511 > 0) - hidden)
    return 0


def relative(buf, which, a, size, field, least):
    """The largest exponent among the visible numbers of the head, field(buf, at) that of one; the row of
    relative scales: all those of 1; of K those of sums in units of 2^k, and how far a token's exponent, or
    `least`, is below."""
    row = a[_ROW]
    tops = []
    for r in range(a[_RUNS]):
        at = a[_CODES + which] + a[_RUN + _RUN_WORDS * r]
        for at in range(at, at + a[_RUN + _RUN_WORDS * r + _RUN_COUNT] * row, row):
            tops.append(max([field(buf, c) for c in range(at, at + row, size)]))
    top = max(tops)
    a[_KEXP + which] = top + DENORMAL
    if which:
        for t in range(a[_N]):
            put16(buf, a[_VSCALE] + 2 * t, 1024 << 5 | 1)
        return top
    k = spare_bits(a[_HEAD_DIM])
    scale = 1 << 5 | k if k > 0 else 1 << 5 - k
    a[_VARIED] = 0
    for t, own in enumerate(tops):
        d = min(top - max(own, least), 25)
        if d < _NEAR:
            d = 0
        else:
            a[_VARIED] = scale
        put16(buf, a[_KSCALE] + 2 * t, scale + d)
    return top


def qk(buf, same, spare, a):
    """Dot of the query with every visible row: sum(q f), int32 to DOTS (F2). `spare` is any number."""
    return dots(buf, a, 2, _read, a[_KSCALE] - _TABLES, 8)


def dots(buf, a, size, read, by, step):
    """read(buf, at, by + d * step) reads a number of a token whose exponent is d below the largest."""
    out = a[_DOTS]
    scale = a[_KSCALE]
    for r in range(a[_RUNS]):
        sinks = a[_SINK_QUERY] if a[_RUN + _RUN_WORDS * r + _RUN_SINKS] else 0
        q_at = a[_QUERY] + 4 * _QUERY_WORDS + sinks + 4 * a[_SLICES]
        q = []
        for i in range(0, a[_WIDTH], 4):
            even, odd = get32(buf, q_at + 2 * i), get32(buf, q_at + 2 * i + 4)
            q2, q3 = [(word & 0xFFFF ^ 0x8000) - 0x8000 for word in (even, odd)]
            q += [even - q2 >> 16, odd - q3 >> 16, q2, q3]
        row = a[_CODES] + a[_RUN + _RUN_WORDS * r]
        for _ in range(a[_RUN + _RUN_WORDS * r + _RUN_COUNT]):
            dot = 0
            own = by + (buf[scale] - a[_VARIED] if a[_VARIED] else 0) * step
            for c in range(len(q)):
                if q[c]:
                    dot += q[c] * read(buf, row + size * c, own)
            put32(buf, out, dot)
            out += 4
            scale += 2
            row += a[_ROW]
    return 0


def av(buf, same, spare, a):
    """Small weights times the values, summed over tokens: int32 to SUMS, with an offset that goes to CORR.

    A batch's sum(p f) times its factor, >> 15, is shifted to the common unit and rounded, halves up: a sum of
    weights that nearly vanish would else lean to one side. Arguments as in qk()."""
    return sums(buf, a, 2, _read, a[_KSCALE] - _TABLE)


def sums(buf, a, size, read, by):
    rows = []
    for r in range(a[_RUNS]):
        for i in range(a[_RUN + _RUN_WORDS * r + _RUN_COUNT]):
            rows.append(a[_VCODES] + a[_RUN + _RUN_WORDS * r] + i * a[_ROW])
    a[_CORR] = _OFFSET
    for c in range(a[_V_WIDTH] // size):
        values = [read(buf, row + size * c, by) for row in rows]
        put32(buf, a[_SUMS] + 4 * c, _OFFSET + batches(buf, a, 0, values, _in_units))
    return 0


def _in_units(lane, factor, r):
    return (lane * factor >> 15) + (1 << r - 1) >> r
