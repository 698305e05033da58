"""The kernels in plain integers: the definition that viper and Thumb must match bit for bit.

Bytecode is slow and, on 32-bit boards, allocates for values beyond 30 bits; this file is for reading,
for tests and for ports without native code. All functions work in the caller's buffer and return 0,
or a negative number for a refusal. See params.py for `a` and `e`, docs/SPEC.md for the bytes.

Bounds that keep every sum inside 31 bits (numbered where they are used):
 B1  |code| <= 127 stored as code + 128 = 1..255, |query code| <= 64.
 B2  a scale has 11 bits at any ratio to the largest. One of V is multiplied with as a number of 16 bits,
     whose lowest 5 tell what that is shifted down by, 1 at least: it is 2^-10 of itself too large at most.
 B3  dots are shifted right so that over all slices |dots| <= 2^19 in sum, the rounding down of each slice
     included; |score| <= 2^19 * 2047 < 2^30, and the difference of two < 2^31.
 B4  a weight times its scale is <= 2^12 * 65535 >> 1 < 2^27; 8 of them < 2^30.
 B5  the small weights of a batch sum to <= 257, so a 16-bit lane takes 255 * 257 = 65535 exactly; times a
     factor <= 2^22 / 245 it is < 2^31.
 B6  sums are kept in units of 2^(UNIT - 21), UNIT being the bits of the sum of all weights, each taken
     2^15 times as if its V scale were the largest: 255 times what weights times scales sum to is < 2^29.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

import struct

from .params import BIAS, DENORMAL, TOO_LARGE, V_TOO_LARGE
from .tables import FRACTION, LEAST_SUM, TABLES

# fields: attend, run, query, encode, vector, layer
_N = const(0)
_RUNS = const(1)
_ROW = const(2)
_SLICES = const(3)
_WIDTH = const(4)
_CODES = const(5)
_VCODES = const(6)
_SCALES = const(7)
_SCALE_STRIDE = const(9)
_SCORES = const(10)
_DOTS = const(11)
_KSCALE = const(12)
_VSCALE = const(13)
_SCALE_ROW = const(14)
_UNITS = const(15)
_SUMS = const(16)
_QUERY = const(17)
_SINK_QUERY = const(18)
_SLICE = const(19)
_KEXP = const(20)
_VEXP = const(21)
_MAX = const(22)
_WHI = const(23)
_WLO = const(24)
_CORR = const(25)
_LOG_SCALE = const(26)
_LOG_EXP = const(27)
_V_BIAS = const(28)
_OUT_SHIFT = const(29)
_Q_AT = const(30)
_SLICE_WIDTH = const(31)
_HEAD_DIM = const(32)
_QUERY_BYTES = const(33)
_SETS = const(34)
_Q_SHIFT = const(35)
_HEADS = const(37)
_QUERY_SET = const(38)
_UNIT = const(43)
_QUERIES = const(44)
_RUN = const(45)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_QUERY_EXP = const(1)
_QUERY_DOWN = const(2)
_QUERY_AT = const(3)
_QUERY_WORDS = const(4)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_GROUP = const(4)
_E_WIDTH = const(5)
_E_SLICES = const(6)
_E_STRIDE = const(7)
_E_K = const(9)
_E_V = const(15)
_E_TABLE = const(21)
_VECTOR_ROW = const(1)
_VECTOR_CODES = const(2)
_VECTOR_BYTES = const(3)
_VECTOR_HEAD = const(4)
_VECTOR_MOST = const(5)
_LAYER_K_SHIFT = const(1)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields

_BATCH = const(8)
# Kinds of a batch: it has two parts; it weighs nothing.
_SPLIT = const(1)
_NOTHING = const(2)
_QUARTER = const(64)  # of the sum of a batch's small weights
_MOST_OFF = const(5 << 18)  # of the same, in 2^-20


def get16(buf, at):
    return buf[at] | buf[at + 1] << 8


def put16(buf, at, x):
    buf[at] = x & 255
    buf[at + 1] = x >> 8


def get32(buf, at):
    x = buf[at] | buf[at + 1] << 8 | buf[at + 2] << 16 | buf[at + 3] << 24
    return x - (1 << 32) if x >> 31 else x


def put32(buf, at, x):
    buf[at] = x & 255
    buf[at + 1] = x >> 8 & 255
    buf[at + 2] = x >> 16 & 255
    buf[at + 3] = x >> 24 & 255


def count_bits(n):
    b = 0
    while n:
        n >>= 1
        b += 1
    return b


def magnitude(x, i, shift):
    """(negative, mantissa, exponent) of x[i]: |x[i]| = mantissa * 2^exponent exactly.

    shift 0: float32 (denormals read as 0, nothing finite has exponent 105), else int16 * 2^-(shift - BIAS).
    """
    if shift:
        m = int(x[i])  # an array of numpy has numbers that overflow
        return m < 0, abs(m), BIAS - shift
    bits = struct.unpack("<I", struct.pack("<f", x[i]))[0]
    e = bits >> 23 & 255
    return bits >> 31, (bits & 0x7FFFFF | 0x800000) if e else 0, e - 150


def _largest(x, at, count, shift):
    """Largest magnitude of x[at:at+count] as (A, E): A * 2^E, A of exactly 24 bits, or (0, 0)."""
    big, e = 0, 0
    for i in range(at, at + count):
        _, m, exp = magnitude(x, i, shift)
        if m and (not big or exp > e or exp == e and m > big):
            big, e = m, exp
    while big and big < 1 << 23:
        big <<= 1
        e -= 1
    return big, e


def _scale(big, e, qmax):
    """Smallest sm * 2^se >= big * 2^e / qmax with sm of 11 bits; big has 24."""
    t = (big + qmax - 1) // qmax
    k = 6
    while (t + (1 << k) - 1) >> k > 2047:
        k += 1
    return (t + (1 << k) - 1) >> k, e + k, t, k


def _rounded(m, exp, sm, se):
    """round(m * 2^exp / (sm * 2^se)), halves away from zero: floor((2|x| + s) / 2s), exact."""
    s = exp + 1 - se
    n = m << s if s >= 0 else m >> -s
    return (n + sm) // (2 * sm)


def code_of(x, i, shift, sm, se):
    """x[i] / (sm * 2^se) rounded, halves away from zero."""
    negative, m, exp = magnitude(x, i, shift)
    code = _rounded(m, exp, sm, se)
    return -code if negative else code


def group_scale(x, at, count, shift, qmax):
    """(float16 bits, sm, se) of the smallest float16 sm * 2^se with qmax times it >= every magnitude of
    x[at:at+count]; 0, 1, 0 for zeros, None beyond 65504 and where a value is not finite."""
    big, exp = _largest(x, at, count, shift)
    return float16_scale(big, exp, qmax) if big else (0, 1, 0)


def float16_scale(big, exp, qmax):
    """(float16 bits, sm, se) of the smallest float16 sm * 2^se >= big * 2^exp / qmax, big of 24 bits; None
    beyond 65504."""
    sm, se, t, k = _scale(big, exp, qmax)
    if se > 5:
        return None
    if se < -24:
        k += -24 - se
        sm = (t + (1 << k) - 1) >> k if k <= 30 else 1
        return sm, sm, -24
    return (se + 25 << 10) + sm - 1024, sm, se


def encode(buf, k, v, e):
    """One token's K and V of one layer, elements E_AT .. of k and v, to codes and scales at slot E_SLOT.

    Every group gets the smallest float16 scale that clips nothing (VECTOR_MOST * scale >= its largest value),
    rounded up; code = x / scale rounded, halves away from zero. A code is stored as the byte 128 + code or,
    where VECTOR_MOST is 7, as the nibble 8 + code, the low one first; the padding of a slice as code 0.
    Returns TOO_LARGE, or V_TOO_LARGE, for a value that is not finite or whose scale would exceed 65504; the
    slot then holds rubbish, which is why only commit() makes it visible.
    """
    table = _E_TABLE + _LAYER_WORDS * e[_E_LAYER]
    if not _encode(buf, k, e, e[table], e[table + _LAYER_K_SHIFT], _E_K):
        return TOO_LARGE
    if not _encode(buf, v, e, e[table], e[table + _LAYER_V_SHIFT], _E_V):
        return V_TOO_LARGE
    return 0


def _encode(buf, x, e, plane, shift, vector):
    """Whether a vector could be stored, or is to be left out; `vector`: its record in `e`, `plane`: K's."""
    most = e[vector + _VECTOR_MOST]
    if not most:
        return True
    plane += e[vector]
    head = plane + e[_E_SLOT] * e[vector + _VECTOR_ROW]
    scale_at = plane + e[vector + _VECTOR_CODES] + 2 * e[_E_SLOT]
    slice_bytes = e[vector + _VECTOR_BYTES]
    at = e[_E_AT]
    piece = 0
    for _ in range(e[_E_COUNT] // e[_E_GROUP]):
        scale = group_scale(x, at, e[_E_GROUP], shift, most)
        if scale is None:
            return False
        half, sm, se = scale
        put16(buf, scale_at, half)
        scale_at += e[_E_STRIDE]
        for _ in range(e[_E_GROUP] // e[_E_WIDTH]):
            codes = [code_of(x, at + i, shift, sm, se) for i in range(e[_E_WIDTH])] + [0] * (2 * slice_bytes)
            at += e[_E_WIDTH]
            out = head + piece * slice_bytes
            for i in range(slice_bytes):
                buf[out + i] = 128 + codes[i] if most == 127 else 136 + codes[2 * i] + 16 * codes[2 * i + 1]
            piece += 1
            if piece == e[_E_SLICES]:
                piece = 0
                head += e[vector + _VECTOR_HEAD]
    return True


def query(buf, q, qs, a):
    """Query records of all heads: 7-bit codes packed for the two-in-one multiply, scale, dot shift.

    q (and qs, the same queries rotated for the sinks, if a[SETS] is 2) share one scale per head, so
    that scores of sinks and window compare. Record: int32 sm, se + 2048, dot shift, element; then a set (or
    two): int32 constant per slice, then per word of codes b0..b3 the pair q2 + (q0 << 16),
    q3 + (q1 << 16), zeros where a slice has an odd number of words. constant = (number of negative q2, q3)
    - 128 * sum(q): see qk().
    """
    shift = a[_Q_SHIFT]
    d = a[_HEAD_DIM]
    for h in range(a[_HEADS]):
        rec = a[_QUERIES] + h * a[_QUERY_BYTES]
        at = a[_Q_AT] + h * d
        big, exp = _largest(q, at, d, shift)
        if a[_SETS] == 2:
            big2, exp2 = _largest(qs, at, d, shift)
            if big2 and (not big or exp2 > exp or exp2 == exp and big2 > big):
                big, exp = big2, exp2
        sm, se = 1024, 0
        if big:
            if exp > 104:  # an infinity or a NaN: float32 exponent field 255
                return TOO_LARGE
            sm, se, _, _ = _scale(big, exp, 64)
        most = 0
        for s in range(a[_SETS]):
            x = qs if s else q
            const_at = rec + 4 * _QUERY_WORDS + s * a[_QUERY_SET]
            word_at = const_at + 4 * a[_SLICES]
            total = 0
            for piece in range(a[_SLICES]):
                const = 0
                first = at + piece * a[_SLICE_WIDTH]
                for w in range(0, a[_WIDTH], 4):
                    c = [0, 0, 0, 0]
                    for i in range(4):
                        if w + i < a[_SLICE_WIDTH]:
                            neg, m, exp = magnitude(x, first + w + i, shift)
                            c[i] = _rounded(m, exp, sm, se)
                            total += c[i]
                            if neg:
                                c[i] = -c[i]
                    const += (c[2] < 0) + (c[3] < 0) - 128 * (c[0] + c[1] + c[2] + c[3])
                    put32(buf, word_at, c[2] + (c[0] << 16))
                    put32(buf, word_at + 4, c[3] + (c[1] << 16))
                    word_at += 8
                if a[_WIDTH] & 4:
                    put32(buf, word_at, 0)
                    put32(buf, word_at + 4, 0)
                    word_at += 8
                put32(buf, const_at + 4 * piece, const)
            most = max(most, total)
        put32(buf, rec, sm)
        put32(buf, rec + 4 * _QUERY_EXP, se + 2048)
        r = 0
        while (127 * most >> r) + a[_SLICES] > 1 << 19:  # B3
            r += 1
        put32(buf, rec + 4 * _QUERY_DOWN, r)
        put32(buf, rec + 4 * _QUERY_AT, at)
    return 0


def scale_of(h):
    """(m, e) of the magnitude of a float16: m * 2^(e - 25), m of 11 bits, denormals too; (0, None) for 0."""
    e, m = h >> 10 & 31, h & 1023
    if e:
        return m | 1024, e
    bits = count_bits(m)
    return (m << 11 - bits, bits - 10) if m else (0, None)


def put_relative(buf, a, s, t, scale, top, which):
    """The scale of slice s of token t relative to those of exponent `top`, B2: 11 bits << 5 | how far its
    exponent is below, of V one more."""
    m, e = scale
    put16(buf, a[_KSCALE + which] + s * a[_SCALE_ROW] + 2 * t, m << 5 | min(top - e, 30) + which if m else 0)


def scales(buf, same, which, a):
    """Scales of the visible tokens, all slices of a head, relative to the largest; which 0: K, 1: V."""
    src = a[_SCALES + which]
    found = []
    for s in range(a[_SLICES]):
        row = []
        for r in range(a[_RUNS]):
            at = src + s * a[_SCALE_STRIDE] + a[_RUN + _RUN_WORDS * r + _RUN_SCALES]
            row += [scale_of(get16(buf, at + 2 * i)) for i in range(a[_RUN + _RUN_WORDS * r + _RUN_COUNT])]
        found.append(row)
    top = max([e for row in found for m, e in row if m] or [1])
    a[_KEXP + which] = top + DENORMAL
    for s, row in enumerate(found):
        for t, scale in enumerate(row):
            put_relative(buf, a, s, t, scale, top, which)
    return 0


def qk(buf, same, mask, a):
    """Dot of slice a[SLICE] of the query with every visible row: int32 to DOTS. `same` is buf again.

    It and `mask`, params.MASK, are arguments because viper keeps the first three in registers.

    The codes are unsigned; two products come out of one multiply: for a word b0..b3 and
    Q = q2 + (q0 << 16), ((b0 + (b2 << 16)) * Q) >> 16 = b0*q0 + b2*q2 - (q2 < 0), exactly: the lower
    half b0*q2 lies within +-16320, and is never 0 for a negative q2 because b0 >= 1. The constant of
    the slice takes the borrows back and the offset 128 out.
    """
    out = a[_DOTS]
    words = a[_WIDTH] // 4
    padded = (words + 1) // 2 * 2
    for r in range(a[_RUNS]):
        sinks = a[_SINK_QUERY] if a[_RUN + _RUN_WORDS * r + _RUN_SINKS] else 0
        set_at = a[_QUERY] + 4 * _QUERY_WORDS + sinks
        const = get32(buf, set_at + 4 * a[_SLICE])
        q_at = set_at + 4 * a[_SLICES] + 8 * padded * a[_SLICE]
        q = []
        for i in range(words):
            even, odd = get32(buf, q_at + 8 * i), get32(buf, q_at + 8 * i + 4)
            for low, word in ((0, even), (1, odd)):
                half = (word & 0xFFFF ^ 0x8000) - 0x8000
                q.append((4 * i + low, (word - half) >> 16))
                q.append((4 * i + low + 2, half))
        const -= sum([c < 0 for k, c in q if k & 2])
        row = a[_CODES] + a[_SLICE] * a[_WIDTH] + a[_RUN + _RUN_WORDS * r]
        for _ in range(a[_RUN + _RUN_WORDS * r + _RUN_COUNT]):
            dot = const
            for k, c in q:
                dot += buf[row + k] * c
            put32(buf, out, dot)
            out += 4
            row += a[_ROW]
    return 0


def score(buf, same, spare, a):
    """Dots of slice a[SLICE] times their scales, added up over slices in SCORES; largest to MAX.

    `spare` is any number: viper uses its register."""
    s = a[_SLICE]
    r = get32(buf, a[_QUERY] + 4 * _QUERY_DOWN)
    top = -(1 << 31)
    for t in range(a[_N]):
        scale = get16(buf, a[_KSCALE] + s * a[_SCALE_ROW] + 2 * t)
        y = (get32(buf, a[_DOTS] + 4 * t) >> r) * (scale >> 5) >> (scale & 31)  # B3
        if s:
            y += get32(buf, a[_SCORES] + 4 * t)
        put32(buf, a[_SCORES] + 4 * t, y)
        top = max(top, y)
    a[_MAX] = top
    return 0


def _small(us, whole, split):
    """Weights of a batch as small ints on one unit: (ps, factor), u = p * factor / 2^(22 - bits(whole)).

    The unit is whole / 250 or a little less, so that the ps, rounded to nearest, sum to 245..257 (B5); the
    factor makes their sum that of the weights. Where one has a quarter of it and the roundings sum to more
    than 5/4, the p that gave the most to it is rounded the other way, until they do not. Of a batch that is
    split, p is rounded down, and behind 16 bits are 32nds of the unit, each with what the one before it left
    over.
    """
    bits = count_bits(whole)
    fifteen = whole << 15 >> bits
    step = (fifteen >> 7) + 1
    step += step - 1 >> 6  # 131..259
    inverse = TABLES[FRACTION + step - LEAST_SUM]
    zs = [(u << 15 >> bits) * inverse for u in us]
    if split:
        ps, left = [], 0
        for z in zs:
            left += z
            ps.append(left >> 20 | (left >> 15 & 31) << 16)
            left &= 32767
        return ps, step << 6
    ps = [z + (1 << 19) >> 20 for z in zs]
    off = (sum(ps) << 20) - fifteen * inverse
    while max(ps) >= _QUARTER and abs(off) > _MOST_OFF:
        one = 1 if off > 0 else -1
        offs = [((p << 20) - z) * one for p, z in zip(ps, zs)]
        i = offs.index(max(offs))
        ps[i] -= one
        zs[i] = ps[i] << 20
        off -= one << 20
    return ps, fifteen * TABLES[FRACTION + sum(ps) - LEAST_SUM] >> 14


def distance_scale(buf, a):
    """(m, e, down): a distance d of scores is t = (d >> down) * m >> e. Only t < 7168 (28 doublings) counts;
    d >> down then fits 16 bits, as m >= 2^14."""
    m = get32(buf, a[_QUERY]) * a[_LOG_SCALE]
    k = 10 if m < 1 << 25 else 11
    se = get32(buf, a[_QUERY] + 4 * _QUERY_EXP) - 2048
    e = a[_LOG_EXP] + 17 - k - se - a[_KEXP] - get32(buf, a[_QUERY] + 4 * _QUERY_DOWN)
    if e < 1:
        return 32767, 1, 0
    if e > 17:
        return m >> k, 17, min(e - 17, 31)
    return m >> k, e, 0


def weights(buf, same, tables, a):
    """Scores to small weights of slice a[SLICE], in DOTS; `tables` is tables.TABLES.

    The weight of a token is T >> whole = 2^-(t / 256), t = (MAX - score) in 1/256 of a doubling, rounded
    down (all err alike, and only ratios count), T = 4096 * 2^-fraction; beyond 28 doublings it is 0. Their
    sum goes to WHI, WLO. Times its V scale (B4), it shares a unit with those of its batch (B5), and sums
    have one that follows the sum of all (B6), of UNIT bits. Batches of 8 count from the oldest visible
    token, whatever the runs: ring and pages of any size give the same bits. UNITS[batch] = factor | shift <<
    16 | kind << 24 of av(); CORR: see there.
    """
    m, e, down = distance_scale(buf, a)
    n = a[_N]
    total = scaled = 0
    for b in range(0, n, _BATCH):
        whole = 0
        for i in range(b, b + _BATCH):
            t = 7168  # zeros make the last batch whole
            if i < n:
                t = (a[_MAX] - get32(buf, a[_SCORES] + 4 * i) >> down) * m >> e
            u = 0
            if t < 7168:
                x = get16(buf, a[_VSCALE] + a[_SLICE] * a[_SCALE_ROW] + 2 * i)
                u = tables[t & 255] * x >> (x & 31) + (t >> 8)
                total += tables[t & 255] << 15 >> (t >> 8)
            put32(buf, a[_DOTS] + 4 * i, u)
            whole += u
        put32(buf, a[_UNITS] + 4 * (b // _BATCH), whole)
        scaled += whole >> 13
    a[_WHI] = total >> 16
    a[_WLO] = total & 0xFFFF
    a[_UNIT] = unit = count_bits(total)
    # What all together weigh less than 2^-12 of the sum is left out, and what would be shifted down by more
    # than 31.
    least = max(scaled << 1 >> count_bits((n + 7) // 8), (1 << unit >> 31) - 1)
    for b in range(0, n, _BATCH):
        at = a[_UNITS] + 4 * (b // _BATCH)
        whole = get32(buf, at)
        word = _NOTHING << 24 | 1 << 20
        if whole > least:
            r = unit + 1 - count_bits(whole)
            split = whole >> 11 > scaled and r < 27  # a quarter of all
            tokens = range(a[_DOTS] + 4 * b, a[_DOTS] + 4 * (b + _BATCH), 4)
            ps, word = _small([get32(buf, t) for t in tokens], whole, split)
            for t, p in zip(tokens, ps):
                put32(buf, t, p)
            word |= r << 16 | split * _SPLIT << 24
        put32(buf, at, word)
    a[_CORR] = batches(buf, a, 0, [128] * n, in_units)
    return 0


def av(buf, same, mask, a):
    """Small weights times the codes of slice a[SLICE], summed over tokens: int32 to SUMS, offset in.

    Arguments as in qk()."""
    start = a[_VCODES] + a[_SLICE] * a[_WIDTH]
    rows = []
    for r in range(a[_RUNS]):
        for i in range(a[_RUN + _RUN_WORDS * r + _RUN_COUNT]):
            rows.append(start + a[_RUN + _RUN_WORDS * r] + i * a[_ROW])
    return sums(buf, a, rows, a[_WIDTH], lambda row, c: buf[row + c])


def sums(buf, a, rows, channels, byte):
    """Small weights times byte(row, channel), summed over rows, to SUMS."""
    for c in range(channels):
        put32(buf, a[_SUMS] + 4 * c, batches(buf, a, 0, [byte(row, c) for row in rows], in_units))
    return 0


def in_units(lane, factor, r):
    """A batch's sum of small weights times codes in the unit of all."""
    return lane * factor >> r


def batches(buf, a, first, codes, in_units):
    """Small weights times codes, one of each token from `first` on, summed up batch by batch."""
    total = 0
    for b in range(first // _BATCH * _BATCH, first + len(codes), _BATCH):
        w = get32(buf, a[_UNITS] + 4 * (b // _BATCH))
        if w >> 24 == _NOTHING:
            continue
        lane = fine = 0
        for t in range(max(b, first), min(b + _BATCH, first + len(codes))):
            p = get32(buf, a[_DOTS] + 4 * t)
            lane += codes[t - first] * (p & 0xFFFF)
            fine += codes[t - first] * (p >> 16)
        r = w >> 16 & 31
        total += in_units(lane, w & 0xFFFF, r)
        if w >> 24 == _SPLIT:
            total += in_units(fine, w & 0xFFFF, r + 5)
    return total


def emit(buf, a, out):
    """SUMS less CORR over the sum of weights, to slice a[SLICE] of the head's place in `out`, which is that
    of its query; int16 saturates."""
    # |SUMS - CORR| < 2^28 (B6): less 13 bits it fits 15 and a little, however peaked the weights are. Of
    # floats the 15 bits are those that the channel has.
    inv = (1 << 30) // ((a[_WHI] << 16 | a[_WLO]) >> a[_UNIT] - 16)
    x = a[_VEXP] - a[_V_BIAS]
    at = get32(buf, a[_QUERY] + 4 * _QUERY_AT) + a[_SLICE] * a[_SLICE_WIDTH]
    shift = a[_OUT_SHIFT]
    for c in range(a[_SLICE_WIDTH]):
        z = get32(buf, a[_SUMS] + 4 * c) - a[_CORR]
        if shift:
            z = (z + (1 << 12) >> 13) * inv
            s = -(x + shift - BIAS)
            if s > 30:
                v = 0
            elif s > 0:
                v = z + (1 << s - 1) >> s
            else:
                v = max(-32767, min(32767, z)) << min(-s, 15)
            out[at + c] = max(-32767, min(32767, v))
        else:
            up = 28 - count_bits(abs(z))
            m = ((abs(z) << up) + (1 << 12) >> 13) * inv  # 29 to 31 bits, or 0
            k = count_bits(m) - 24
            f = x + k + 150 - up
            if not z or f < 1:
                bits = 0
            else:
                bits = (f << 23) + (m >> k & 0x7FFFFF)
                if z < 0:
                    bits |= 1 << 31
            out[at + c] = struct.unpack("<f", struct.pack("<I", bits))[0]
    return 0
