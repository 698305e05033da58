"""The kernels of int4 in plain integers: the definition that viper and Thumb must match bit for bit.

Fresh rows are int8's, and so are encode, query, qk, score, weights, av and emit, whose bounds hold here
(mpy_kv/kernels/plain.py). Of its own: scales, which writes both forms' scales with one exponent; qk4, center
and av4, the sealed part of qk, weights and av; seal_keys and seal_values, which make the sealed form of 16
fresh rows; open_row, which reads one token of it back. SPEC.md, "The sealed cache", has the layout.

Further bounds:
 C1  keys are sealed in units of P / 4096, P the power of two with |x| < 64 P for all values x of the block's
     group: |x| < 2^18, so the minimum, a multiple of 16 units, fits 16 bits signed, the step 16 bits. What is
     read back is at most 64.01 P, so that dots have the bound of int8's (B3), where a code is at most 127.
 C2  16 tokens' scales are brought to the largest exponent, 15 bits (B2): a code times that is < 2^22.
 C3  q * step is at most 64 * 34954 < 2^22; cut to 10 bits and a sign, 8 nibbles' worth of two products in
     one multiply stay within 16 bits: 2 * 15 * 1023 < 2^15. A slice has at most 32 values: what the minima
     add is < 32 * 64 * 2^18 = 2^29.
 C4  of a sealed token's values, the exponents at which scales are relative is so high that 8 s and the
 minimum
     are each less than 32 steps of int8 at the top: the sum of both is inside the 128 that emit() reckons
     with.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

from ..params import DENORMAL
from ..plain import (
    batches,
    count_bits,
    distance_scale,
    float16_scale,
    get16,
    get32,
    in_units,
    put16,
    put32,
    put_relative,
    scale_of,
)

# fields: attend, run, query, attend4, seal
_N = const(0)
_RUNS = const(1)
_SLICES = const(3)
_WIDTH = const(4)
_SCALES = const(7)
_SCALE_STRIDE = const(9)
_SCORES = const(10)
_DOTS = const(11)
_KSCALE = const(12)
_SCALE_ROW = const(14)
_SUMS = const(16)
_QUERY = const(17)
_SLICE = const(19)
_KEXP = const(20)
_MAX = const(22)
_CORR = const(25)
_SLICE_WIDTH = const(31)
_UNIT = const(43)
_RUN = const(45)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_WORDS = const(4)
_QUERY_WORDS = const(4)
_SEALED = const(57)
_FIRST = const(58)
_ROWS = const(59)
_ROW4 = const(60)
_WIDTH4 = const(61)
_CODES4 = const(62)
_RANGES = const(63)
_VCODES4 = const(64)
_POWERS = const(65)
_VSCALES4 = const(66)
_MINIMA_GAP = const(67)
_HEADER = const(68)
_STRIDE4 = const(69)
_CENTERS = const(70)
_CENTER_ROW = const(71)
_LIFT = const(72)
_LIFT_LOW = const(73)
_SPREAD = const(74)
_FINER = const(75)
_S_K = const(0)
_S_KS = const(1)
_S_V = const(2)
_S_VS = const(3)
_S_HEAD = const(4)
_S_STRIDE = const(5)
_S_ROW = const(6)
_S_WIDTH = const(7)
_S_SLICE = const(8)
_S_SLICES = const(9)
_S_GROUP = const(10)
_S_GROUPS = const(11)
_S_K4 = const(12)
_S_HEADER = const(13)
_S_POWERS = const(14)
_S_V4 = const(15)
_S_VS4 = const(16)
_S_GAP = const(17)
_S_HEAD4 = const(18)
_S_STRIDE4 = const(19)
_S_ROW4 = const(20)
_S_WIDTH4 = const(21)
_S_SPREAD = const(22)
_S_TOKEN = const(23)
# end of fields

_BLOCK = 16
_MOST = 1 << 18  # of a key in units of P / 4096, C1
_ABOVE = 1 << 29  # added to sums and to _CORR, so that sums stay positive


def _half(h):
    """(mantissa, exponent field) of the magnitude of a float16: mantissa * 2^(field - 25)."""
    e = h >> 10 & 31
    return (h & 1023 | 1024, e) if e else (h & 1023, 1)


def _shifted(x, left):
    return x << left if left >= 0 else x >> min(-left, 31)


def _fresh(g, s):
    """Of each value of group g: bytes from a fresh row of head 0 to its code, from a sealed one to its byte,
    and by how much its nibble is shifted."""
    found = []
    for i in range(g * s[_S_GROUP], (g + 1) * s[_S_GROUP]):
        piece, c = divmod(i, s[_S_SLICE])
        head, piece = divmod(piece, s[_S_SLICES])
        byte = head * s[_S_HEAD4] + piece * s[_S_WIDTH4] + c // 2
        found.append((head * s[_S_HEAD] + piece * s[_S_WIDTH] + c, byte, 4 * (c & 1)))
    return found


def _in_range(x):
    return max(-_MOST, min(_MOST - 1, x))


def _put_nibble(buf, at, shift, n):
    """The first of a byte's two clears the other."""
    buf[at] = buf[at] & 15 | n << 4 if shift else n


def seal_keys(buf, same, g, s):
    """Keys of group g of 16 fresh tokens to a sealed block: a range a channel, of one power of two.

    In units of P / 4096, rounded down, channel by channel: M the least value, rounded down to a multiple of
    16; S = ceil((greatest - M) / 15); nibble = floor((2 (x - M) + S) / 2 S), 0 where S is 0. C1, C2.
    """
    scales = [_half(get16(buf, s[_S_KS] + g * s[_S_STRIDE] + 2 * t)) for t in range(_BLOCK)]
    top = max([e for _, e in scales])
    relative = [m << 4 >> top - e for m, e in scales]
    for t in range(_BLOCK):
        put32(buf, s[_S_SPREAD] + 4 * t, relative[t])
    bounds = s[_S_SPREAD] + 4 * _BLOCK
    channels = []
    most = 0
    for code, byte, shift in _fresh(g, s):
        x = [(buf[s[_S_K] + code + t * s[_S_ROW]] - 128) * relative[t] for t in range(_BLOCK)]
        channels.append((x, byte, shift))
        put32(buf, bounds, min(x))
        put32(buf, bounds + 4, max(x))
        bounds += 8
        most = max(most, max(x), -min(x))
    p = max(-24, min(15, count_bits(most) + top - 35))
    put16(buf, s[_S_HEADER] + 2 * g, p + 25 - 10 << 10 if p > -15 else 1 << p + 24)
    left = top - 17 - p
    at = s[_S_HEADER] + s[_S_POWERS] + 4 * g * s[_S_GROUP]
    for x, byte, shift in channels:
        low = _in_range(_shifted(min(x), left)) >> 4
        high = _in_range(_shifted(max(x), left))
        step = (high - (low << 4) + 14) // 15
        put16(buf, at, step)
        put16(buf, at + 2, low & 0xFFFF)
        at += 4
        for t in range(_BLOCK):
            n = 0
            if step:
                n = (2 * (_shifted(x[t], left) - (low << 4)) + step) // (2 * step)
            _put_nibble(buf, s[_S_K4] + byte + t * s[_S_ROW4], shift, max(0, min(15, n)))
    return 0


def _float16_below(x, top):
    """(float16 bits, value) of the largest float16 <= x, not below -65504, in units of 2^(top - 29)."""
    big = abs(x)
    if not big:
        return 0, 0
    k = max(count_bits(big) - 11, 5 - top)
    if k > 0:
        sm = (big + (1 << k) - 1 if x < 0 else big) >> k
    else:
        sm = big << -k
    half = min((k + top - 4 << 10) + sm - 1024, 0x7BFF)
    m, e = _half(half)
    value = _shifted(m, e - top + 4)
    return (half | 0x8000, -value) if x < 0 else (half, value)


def _step(span, top):
    """(float16 bits, sm, se) of the smallest float16 sm * 2^se with 15 times it >= span * 2^(top - 29), at
    most 65504."""
    if span <= 0:
        return 0, 0, 0
    e = top - 29
    while span < 1 << 23:
        span <<= 1
        e -= 1
    return float16_scale(span, e, 15) or (0x7BFF, 2047, 5)


def seal_values(buf, same, g, s):
    """Values of group g of 16 fresh tokens to a sealed block: a range a token.

    m the largest float16 <= the least value (not below -65504); s the smallest float16 with m + 15 s >= the
    greatest (at most 65504); nibble = floor((2 (x - m) + s) / 2 s), 0..15; 0 where s is 0.
    """
    columns = _fresh(g, s)
    for t in range(_BLOCK):
        m, top = _half(get16(buf, s[_S_VS] + g * s[_S_STRIDE] + 2 * t))
        x = [(buf[s[_S_V] + code + t * s[_S_ROW]] - 128) * (m << 4) for code, _, _ in columns]
        half, low = _float16_below(min(x), top)
        step, sm, se = _step(max(x) - low, top)
        at = s[_S_VS4] + g * s[_S_STRIDE4] + 2 * t
        put16(buf, at, step)
        put16(buf, at + s[_S_GAP], half)
        for (_, byte, shift), value in zip(columns, x):
            n = 0
            if sm:
                n = (_shifted(value - low, top - 28 - se) + sm) // (2 * sm)
            _put_nibble(buf, s[_S_V4] + byte + t * s[_S_ROW4], shift, max(0, min(15, n)))
    return 0


def open_row(buf, k, v, s):
    """Token s[S_TOKEN] of a sealed block as float32 to k and v: what reads back, of values rounded down to
    24 bits, relative to the greater of minimum and step."""
    t = s[_S_TOKEN]
    for g in range(s[_S_GROUPS]):
        p = get16(buf, s[_S_HEADER] + 2 * g)
        pm, pe = _half(p)
        unit = pm * 2.0 ** (pe - 37)
        at = s[_S_HEADER] + s[_S_POWERS] + 4 * g * s[_S_GROUP]
        vs = s[_S_VS4] + g * s[_S_STRIDE4] + 2 * t
        step, e = _half(get16(buf, vs))
        low, e_low = _half(get16(buf, vs + s[_S_GAP]))
        if buf[vs + s[_S_GAP] + 1] >> 7:
            low = -low
        top = max(e_low, e + 4) - 12
        for i, (_, byte, shift) in enumerate(_fresh(g, s)):
            row = byte + t * s[_S_ROW4]
            n = buf[s[_S_K4] + row] >> shift & 15
            m = (get16(buf, at + 2) ^ 0x8000) - 0x8000
            k[g * s[_S_GROUP] + i] = ((m << 4) + get16(buf, at) * n) * unit
            at += 4
            n = buf[s[_S_V4] + row] >> shift & 15
            x = _shifted(low, e_low - top) + _shifted(step * n, e - top)
            v[g * s[_S_GROUP] + i] = x * 2.0 ** (top - 25)
    return 0


def scales(buf, same, which, a):
    """As int8's, of all visible tokens: fresh ones, then sealed ones, relative to one exponent.

    Of sealed keys the scale is the power of two. Of sealed values it is s / 16, as a nibble n counts for the
    byte 16 n, of value 16 n - 128; what is missing then, the middle of the range m + 8 s, goes to CENTERS in
    units 64 times as large as those of the relative scales. C4.
    """
    src = a[_SCALES + which]
    rows = []
    tops = []
    for s in range(a[_SLICES]):
        row = []
        for r in range(a[_RUNS]):
            at = src + s * a[_SCALE_STRIDE] + a[_RUN + _RUN_WORDS * r + _RUN_SCALES]
            row += [scale_of(get16(buf, at + 2 * i)) for i in range(a[_RUN + _RUN_WORDS * r + _RUN_COUNT])]
        tops += [e for m, e in row if m]
        sealed = []
        for i in range(a[_SEALED]):
            r = (a[_FIRST] + i) % a[_ROWS]
            if which:
                at = a[_VSCALES4] + s * a[_STRIDE4] + 2 * r
                step, low = scale_of(get16(buf, at)), get16(buf, at + a[_MINIMA_GAP])
                sealed.append((step, scale_of(low), low >> 15))
                tops += [e - more for (m, e), more in ((step, 2), (scale_of(low), 5)) if m]
            else:
                m, e = scale_of(get16(buf, a[_POWERS] + 2 * s + r // _BLOCK * a[_HEADER]))
                if m:  # a power of two, unless seal_keys() has failed
                    tops.append(e)
                    e -= a[_FINER]
                sealed.append((m, e, 0))
        rows.append((row, sealed))
    top = max(tops or [1])
    a[_KEXP + which] = top + DENORMAL
    for s, (row, sealed) in enumerate(rows):
        for t, scale in enumerate(row):
            put_relative(buf, a, s, t, scale, top, which)
        center = a[_CENTERS] + s * a[_CENTER_ROW]
        for t, x in enumerate(sealed, len(row)):
            if which:
                (step, e), (low, e_low), negative = x
                out = a[_KSCALE + which] + s * a[_SCALE_ROW] + 2 * t
                put16(buf, out, step << 5 | min(top + 4 - e, 30) + 1 if step else 0)
                low = low << 3 >> min(top + 5 - e_low, 31) if low else 0
                step = step << 3 >> min(top + 2 - e, 31) if step else 0
                put16(buf, center, step + (-low if negative else low) & 0xFFFF)
                center += 2
            else:
                put_relative(buf, a, s, t, x[:2], top, which)
    return 0


def qk4(buf, same, mask, a):
    """The part of qk() of sealed tokens: their dots, behind those of the fresh ones.

    A key is (16 M + S n) P / 4096. Once a block, per channel, q S is cut by `cut` bits (rounded, halves up)
    so that all fit 10 bits and a sign (C3); what is lost counts as if n were 7.5. A token's dot is (sum(q 16
    M + lost * 7.5) >> cut) + sum(n * cut q S) >> 12 - cut. Two products come out of one multiply: for a word
    of nibbles n0..n7 and Q = Q4 + (Q0 << 16), ((n0 + (n4 << 16)) * Q >> 16) = n0 Q0 + n4 Q4 - (n0 Q4 < 0).
    """
    width, words = a[_SLICE_WIDTH], a[_WIDTH4] // 4
    codes = _query_codes(buf, a)
    spread = a[_SPREAD] + 32 * words
    out = a[_DOTS] + 4 * (a[_N] - a[_SEALED])
    block = -1
    for i in range(a[_SEALED]):
        r = (a[_FIRST] + i) % a[_ROWS]
        if r // _BLOCK != block:
            block = r // _BLOCK
            at = a[_RANGES] + block * a[_HEADER] + 4 * a[_SLICE] * width
            total, found = 0, []
            for c in range(width):
                total += codes[c] * ((get16(buf, at + 4 * c + 2) ^ 0x8000) - 0x8000)
                found.append(codes[c] * get16(buf, at + 4 * c))
            cut = 0
            while max([abs(x) for x in found]) >> cut > 1022:
                cut += 1
            cuts = [x + (1 << cut >> 1) >> cut for x in found]
            lost = sum(found) - (sum(cuts) << cut)
            found = cuts + [0] * 8
            for w in range(words):
                for c in range(4):
                    put32(buf, spread + 16 * w + 4 * c, found[8 * w + c + 4] + (found[8 * w + c] << 16))
            total = (total << 4) + (lost * 15 >> 1) >> cut
        dot = total
        row = a[_CODES4] + a[_SLICE] * a[_WIDTH4] + r * a[_ROW4]
        for w in range(words):
            for c in range(4):
                x, y = found[8 * w + c], found[8 * w + c + 4]
                byte, byte4 = buf[row + 4 * w + c // 2], buf[row + 4 * w + 2 + c // 2]
                n0, n4 = byte >> 4 * (c & 1) & 15, byte4 >> 4 * (c & 1) & 15
                dot += n0 * x + n4 * y - (n0 * y < 0)
        put32(buf, out, _shifted(dot, cut + a[_FINER] - 12))
        out += 4
    return 0


def _query_codes(buf, a):
    """Codes of slice a[SLICE] of the query that sees the window, from its record; also to SPREAD."""
    words = a[_WIDTH] // 4
    at = a[_QUERY] + 4 * _QUERY_WORDS + 4 * a[_SLICES] + 8 * ((words + 1) // 2 * 2) * a[_SLICE]
    codes = []
    for i in range(words):
        four = [0, 0, 0, 0]
        for low in (0, 1):
            word = get32(buf, at + 8 * i + 4 * low)
            four[low + 2] = (word & 0xFFFF ^ 0x8000) - 0x8000
            four[low] = word - four[low + 2] >> 16
        codes += four
    codes += [0] * (2 * a[_WIDTH4] - len(codes))
    for c, code in enumerate(codes):
        put32(buf, a[_SPREAD] + 4 * c, code)
    return codes


def center(buf, same, tables, a):
    """The sum of the middles of sealed tokens' values, each times its token's weight, to LIFT and LIFT_LOW.
    After score(), before weights(), whose weights these are; `tables` is tables.TABLES."""
    m, e, down = distance_scale(buf, a)
    n = a[_SEALED]
    high = low = 0
    for i in range(n):
        d = a[_MAX] - get32(buf, a[_SCORES] + 4 * (a[_N] - n + i)) >> down
        t = d * m >> e
        if t < 7168:
            c = get16(buf, a[_CENTERS] + a[_SLICE] * a[_CENTER_ROW] + 2 * i)
            # Towards zero, as all that weights are multiplied with.
            x = tables[t & 255] * (0x10000 - c if c >> 15 else c) << 3 >> (t >> 8)
            if c >> 15:
                x = -x
            high += x >> 16
            low += x & 0xFFFF
    a[_LIFT] = high + (low >> 16)
    a[_LIFT_LOW] = low & 0xFFFF
    return 0


def av4(buf, same, mask, a):
    """The part of av() of sealed tokens, and LIFT in units of SUMS, less than 2^28 (C4), added to SUMS; with
    2^29, of which CORR has as much. Batches go on where those of the fresh tokens end: one that both forms
    share is cut in two."""
    a[_CORR] += _ABOVE
    lift = _ABOVE + ((a[_LIFT] << 16 | a[_LIFT_LOW]) >> a[_UNIT] - 24)
    fresh = a[_N] - a[_SEALED]
    start = a[_VCODES4] + a[_SLICE] * a[_WIDTH4]
    for c in range(2 * a[_WIDTH4]):
        # Of the last word's nibbles four may be padding: av() has made no sums for them.
        total = lift + (get32(buf, a[_SUMS] + 4 * c) if c < a[_WIDTH] else 0)
        codes = []
        for i in range(a[_SEALED]):
            row = start + (a[_FIRST] + i) % a[_ROWS] * a[_ROW4]
            codes.append((buf[row + c // 2] >> 4 * (c & 1) & 15) * 16)
        put32(buf, a[_SUMS] + 4 * c, total + batches(buf, a, fresh, codes, in_units))
    return 0
