"""The kernels in plain integers: the definition that viper.py must match bit for bit.

For reading, for tests and for ports without native code; on 32-bit boards it allocates big ints.

Memory: `v` is the workspace, one array('i') that holds every 32-bit vector of the model; offsets into
it count elements. `w` is the board image (or a copy of some of its rows); offsets into it count bytes.
`a` is an array('i') of parameters, which the model fills in once: fields of the tables in
tools/field_tables/stories.py (`python tools/fields.py --list`). Kernels return 0 unless said.

Numbers: every 32-bit value stored lies within +-LIMIT = 2^30 - 1 (saturated, never wrapped), so the sum
of two of them fits, and reading one on a 32-bit board makes a small int. A point p means value =
integer * 2^-p. Vectors have point POINT = 16, except q, k and v: what the image calibrated for the layer.

An activation vector, as quant() writes and matvec() reads it, is codes in groups of 32:
  [0] mantissa M, 2^14 <= M < 2^15   [1] exponent E
  then per group: [0..23] packed codes, three elements for each four, see matvec()   [24] group scale;
  element = code * group scale * M * 2^E; a vector's group scales add up to 2^14.
Four codes that lie together share a budget: their magnitudes add up to 258 at most.

Bounds, numbered where they are used:
 B1  a weight is stored as code + 128 = 1..255, |code| <= 127, its group scale is <= 4095:
     four products at once lie within +-127 * 258 = +-32,766, a signed half word.
 B2  |dot of a group| <= 8 * 32,766 = 262,128; * 4095 = 1,073,414,160 < 2^30;
     (that + 2^13) >> 14 <= 65,517.
 B3  group scales are rounded, so they add up to <= 2^14 + groups / 2 <= 16,512 for 256 groups:
     a row sums to <= 65,517 * 16,512 = 1,081,816,704.
 B4  M < 2^15, so (sum >> 15) * M + ((sum & 0x7FFF) * M >> 15), which is sum * M >> 15, is no larger than
     the sum; shifted right by 1 or more it is below LIMIT.
 B5  |x| <= 2^15 after its shift, |norm weight| <= 2^15: |product| <= 2^30.
 B6  squares <= 2^30 are added as two halves of 15 bits: each sum < 2^31 for 32,768 of them.
 B7  |x| < 2^15 and cos^2 + sin^2 ~ 1 in units of 2^15: |x0 * cos - x1 * sin| <= sqrt(2) * 2^30 < 2^31.
"""

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

from .layout import ACT_GROUP, ACT_HEADER, LIMIT, OFFSETS, POINT, ROOT_ONE

# fields: embed, of_vector, norm, swiglu, matvec, rope, rotate, narrow, add, pick
_ROW_COLUMNS = const(0)
_ROW_CODES = const(1)
_ROW_TO = const(2)
_ROW_AT = const(3)
_ROW_EXPONENT = const(4)
_N = const(0)
_PADDED = const(1)
_TO = const(2)
_ACT = const(3)
_ROOT = const(4)
_EXPONENT = const(5)
_WEIGHTS = const(6)
_FROM = const(7)
_WEIGHTS_EXPONENT = const(8)
_EPS = const(9)
_GATE = const(6)
_UP = const(7)
_M_AT = const(0)
_M_ROWS = const(1)
_M_GROUPS = const(2)
_M_SKIP = const(3)
_M_ACT = const(4)
_M_TO = const(5)
_M_EXPONENT = const(6)
_FREQUENCIES = const(0)
_POSITION = const(1)
_R_FROM = const(0)
_R_HEADS = const(1)
_R_PAIRS = const(2)
_R_STEP = const(3)
_R_GAP = const(4)
_NARROW_FROM = const(0)
_NARROW_COUNT = const(1)
_ADD_COUNT = const(0)
_ADD_X = const(1)
_ADD_Y = const(2)
_VOCAB = const(0)
_LOGITS = const(1)
_HEAT = const(2)
_HEAT_EXPONENT = const(3)
_BITS = const(4)
_SUM = const(5)
_TOP_P = const(6)
_STATE = const(7)
# end of fields


def _u16(w, at):
    return w[at] | w[at + 1] << 8


def _s16(w, at):
    return (_u16(w, at) ^ 0x8000) - 0x8000


def _s32(x):
    return (x & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def _codes(x):
    """The lower and the upper of two codes in one word, modulo 2^32."""
    low = (x & 0xFFFF ^ 0x8000) - 0x8000
    return low, _s32(x - low) >> 16


def _clamp(x, limit):
    return max(-limit, min(limit, x))


def _scaled(x, shift):
    """x * 2^-shift, rounded half up, saturated to LIMIT; -31 <= shift <= 31, |x| < 2^31."""
    if shift > 0:
        x = (x >> shift - 1) + 1 >> 1
    elif shift < 0:
        x = _clamp(x, LIMIT >> -shift) << -shift
    return _clamp(x, LIMIT)


def _fold(top):
    """Shift that brings 0 <= top < 2^31 below 2^15."""
    s = 0
    while top >> s >= 1 << 15:
        s += 1
    return s


def embed(w, v, a):
    """One row of the embedding as fixed point.

    a: fields of `embed`, ROW_COLUMNS to ROW_EXPONENT.
    """
    at, dst = a[_ROW_AT], a[_ROW_TO]
    shift = _clamp(-a[_ROW_EXPONENT], 31)
    for i in range(a[_ROW_COLUMNS]):
        scale = _u16(w, at + a[_ROW_CODES] + (i >> 5) * 2)
        v[dst + i] = _scaled((w[at + i] - 128) * scale, shift)
    return 0


def norm(w, v, a):
    """x * weight, and the root of the mean square of x for quant() to divide by.

    a: fields of `of_vector` and `norm`; ROOT and EXPONENT are written. EPS < 2^29.
    The normalised vector is v[TO...] * 2^EXPONENT / ROOT, 2^14 <= ROOT <= 2^15; its padding is zeroed.
    """
    n, dst, at, src = a[_N], a[_TO], a[_WEIGHTS], a[_FROM]
    top = 0
    for i in range(n):
        top = max(top, abs(v[src + i]))
    s = _fold(top)
    half = 1 << s >> 1
    high = low = 0
    for i in range(n):
        x = v[src + i] + half >> s
        v[dst + i] = x * _s16(w, at + 2 * i)  # B5
        high += x * x >> 15  # B6
        low += x * x & 0x7FFF
    for i in range(n, a[_PADDED]):
        v[dst + i] = 0
    high += low >> 15
    low &= 0x7FFF
    # The integers x have point POINT - s, so eps * 2^(2 * POINT - 2 * s): 32 is twice POINT.
    square = (high // n << 15) + ((high % n << 15) + low) // n + (a[_EPS] >> 2 * s)
    exponent = a[_WEIGHTS_EXPONENT]
    root = ROOT_ONE
    if square:
        while square >= 1 << 30:
            square >>= 2
            exponent -= 1
        while square < 1 << 28:
            square <<= 2
            exponent += 1
        root = 0
        bit = 1 << 14
        while bit:
            if (root + bit) * (root + bit) <= square:
                root += bit
            bit >>= 1
        if square - root * root > root:
            root += 1
    a[_ROOT] = root
    a[_EXPONENT] = exponent
    return 0


def quant(v, a):
    """A vector as an activation vector.

    a: fields of `of_vector`: from TO to ACT. vector = v[TO...] * 2^EXPONENT / ROOT.
    |source| <= 2^30. What a group's scale stands for is a quarter of what its heaviest four adds up to, or up
    to 4 more. Relative to each other, the scales share a budget of 2^14 (B3); one mantissa and exponent carry
    the rest, the division included.
    """
    src, act = a[_TO], a[_ACT]
    groups = a[_PADDED] >> 5
    tops = []
    for g in range(groups):
        top = 0
        for i in range(src + 32 * g, src + 32 * g + 32, 4):
            # Of each |x| or |x| - 1, as it costs less: a quarter, rounded down, is 1 too little at most.
            top = max(top, sum([v[k] >> 2 ^ v[k] >> 31 for k in range(i, i + 4)]))
        tops.append(top + 4)
    fold = _fold(max(tops))
    total = sum([top >> fold for top in tops])  # < 2^15 * 256
    # total / root, as a mantissa and an exponent.
    m = total
    e = fold - 20 + a[_EXPONENT]
    while m < 1 << 29:
        m <<= 1
        e -= 1
    m = (m + (a[_ROOT] >> 1)) // a[_ROOT]  # 2^14 .. 2^16
    while m >= 1 << 15:
        m = m + 1 >> 1
        e += 1
    v[act] = m
    v[act + 1] = e
    at = act + ACT_HEADER
    for top in tops:
        # The group's own 13 bits, so that small groups keep their codes' bits.
        down = up = 0
        while top >> down >= 1 << 13:
            down += 1
        half = 1 << down >> 1
        unit = top + half >> down
        while unit << up < 1 << 12:
            up += 1
        inverse = (LIMIT >> 2) // (unit << up) << up
        # A four adds up to 4 * top, so to 2^30 / 2^22 = 256 and the rounding of each: to 258.
        for k in range(at, at + ACT_GROUP - 1, 3):
            c = [(x + half >> down) * inverse + (1 << 21) >> 22 for x in v[src : src + 4]]
            src += 4
            even = c[2] + (c[0] << 16)
            odd = c[3] + (c[1] << 16)
            v[k] = even
            v[k + 1] = _s32(odd - (even << 8))
            v[k + 2] = _s32((1 << 15) - (even + odd) * OFFSETS)
        at += ACT_GROUP
        v[at - 1] = ((top >> fold << 14) + (total >> 1)) // total
    return 0


def matvec(w, v, mask, a):
    """Rows of int8 weights times an activation vector.

    a: fields of `matvec`, M_AT to M_EXPONENT.
    mask: MASK, an argument so that it lives in a register.

    Four products come out of two multiplies. A word x of stored bytes b0..b3 is even + odd * 2^8, where
    even = b0 + b2 * 2^16 and odd = b1 + b3 * 2^16, that is x >> 8, masked. With C = c2 + c0 * 2^16 and
    D = c3 + c1 * 2^16 the upper half of even * C + odd * D is the sum of all b * c, the lower half that of
    b0 * c2 and b1 * c3. Even need not be masked out: the same is x * C + odd * (D - C * 2^8). What the 128 in
    each b adds is known of the codes alone, (C + D) * OFFSETS, and is taken off before the upper half is
    read, with 2^15 that keep the lower half from borrowing (B1). So C, D - C * 2^8 and 2^15 -
    (C + D) * OFFSETS, all modulo 2^32, are what is stored of four codes, and the sum is exact.
    """
    at, out = a[_M_AT], a[_M_TO]
    first = a[_M_ACT] + ACT_HEADER
    codes = []
    scales = []
    for _ in range(a[_M_GROUPS]):
        for k in range(first, first + ACT_GROUP - 1, 3):
            even = _codes(v[k])
            odd = _codes(v[k + 1] + (v[k] << 8))
            codes += even[1], odd[1], even[0], odd[0]
        first += ACT_GROUP
        scales.append(v[first - 1])
    m = v[a[_M_ACT]]
    shift = _clamp(-(29 + v[a[_M_ACT] + 1] + a[_M_EXPONENT]), 31)
    for _ in range(a[_M_ROWS]):
        scale_at = at + 32 * a[_M_GROUPS]
        total = 0
        k = 0
        for scale in scales:
            dot = 0
            for i in range(32):
                dot += (w[at + i] - 128) * codes[k + i]  # B1
            k += 32
            at += 32
            total += (dot * _u16(w, scale_at) + 8192 >> 14) * scale  # B2 B3
            scale_at += 2
        v[out] = _scaled((total >> 15) * m + ((total & 0x7FFF) * m >> 15), shift)  # B4
        out += 1
        at += a[_M_SKIP]
    return 0


def rope_table(inc, cs, sine, a):
    """cos and sin of a position, in units of 2^15: cs[2i], cs[2i + 1]. a: fields of `rope`.

    inc[i]: turns * 2^32 per position. The phase is position * inc mod 2^32, so it never drifts; sine is
    a quarter wave of 256 steps, interpolated: within 5e-5 of the true values.
    """
    for i in range(a[_FREQUENCIES]):
        phase = inc[i] * a[_POSITION] & 0xFFFFFFFF
        p = phase & 0x3FFFFFFF
        parts = []
        for x in (p, (1 << 30) - p):
            t = sine[x >> 22]
            t += (sine[(x >> 22) + 1] - t) * (x >> 7 & 0x7FFF) + (1 << 14) >> 15
            parts.append(min(t, 32767))
        s, c = parts
        quadrant = phase >> 30
        if quadrant & 1:
            s, c = c, -s
        if quadrant & 2:
            s, c = -s, -c
        cs[2 * i] = c
        cs[2 * i + 1] = s
    return 0


def rotate(v, dst, cs, a):
    """Rotated heads as int16, saturated to +-32767.

    a: fields of `rotate`, R_FROM to R_GAP. R_STEP and R_GAP: (2, 1) pairs neighbours as llama2.c does,
    (1, pairs) pairs the halves of a head.
    """
    at, out = a[_R_FROM], 0
    for _ in range(a[_R_HEADS]):
        for i in range(a[_R_PAIRS]):
            j = a[_R_STEP] * i
            x0, x1 = _clamp(v[at + j], 32767), _clamp(v[at + j + a[_R_GAP]], 32767)
            c, s = cs[2 * i], cs[2 * i + 1]
            dst[out + j] = _clamp(x0 * c - x1 * s + (1 << 14) >> 15, 32767)  # B7
            dst[out + j + a[_R_GAP]] = _clamp(x0 * s + x1 * c + (1 << 14) >> 15, 32767)
        at += 2 * a[_R_PAIRS]
        out += 2 * a[_R_PAIRS]
    return 0


def narrow(v, dst, a):
    """Elements as int16, saturated to +-32767. a: fields of `narrow`."""
    for i in range(a[_NARROW_COUNT]):
        dst[i] = _clamp(v[a[_NARROW_FROM] + i], 32767)
    return 0


def widen(src, v, a):
    """int16 to elements, padded with zeros for quant(). a: fields of `of_vector`."""
    for i in range(a[_PADDED]):
        v[a[_TO] + i] = src[i] if i < a[_N] else 0
    return 0


def swiglu(v, sigmoid, a):
    """gate * sigmoid(gate) * up for quant().

    a: fields of `of_vector` and `swiglu`; EXPONENT is written, ROOT is ROOT_ONE.
    The products keep 30 bits: both factors are first brought to 15 bits for the whole vector.
    """
    n, dst, gate, up = a[_N], a[_TO], a[_GATE], a[_UP]
    top = top_up = 0
    for i in range(n):
        x = v[gate + i]
        m = abs(x)
        if m >= 1 << 20:  # 16: sigmoid is 1 or 0 to 2^-23
            x = max(x, 0)
        else:
            t = sigmoid[m >> 12]
            t += (sigmoid[(m >> 12) + 1] - t) * (m & 4095) + 2048 >> 12
            if x < 0:
                t = 32768 - t
            m = (m >> 6) * t + ((m & 63) * t >> 6) + 256 >> 9
            x = -m if x < 0 else m
        v[gate + i] = x
        top = max(top, abs(x))
        top_up = max(top_up, abs(v[up + i]))
    s, s_up = _fold(top), _fold(top_up)
    half, half_up = 1 << s >> 1, 1 << s_up >> 1
    for i in range(n):
        v[dst + i] = (v[gate + i] + half >> s) * (v[up + i] + half_up >> s_up)
    for i in range(n, a[_PADDED]):
        v[dst + i] = 0
    a[_EXPONENT] = s + s_up - 2 * POINT + 14
    return 0


def add(v, a):
    """x += y, saturated. a: fields of `add`."""
    for i in range(a[_ADD_COUNT]):
        v[a[_ADD_X] + i] = _clamp(v[a[_ADD_X] + i] + v[a[_ADD_Y] + i], LIMIT)
    return 0


def argmax(v, a):
    """Index of the largest element, the first of equals. a: fields of `pick`."""
    best = 0
    for i in range(1, a[_VOCAB]):
        if v[a[_LOGITS] + i] > v[a[_LOGITS] + best]:
            best = i
    return best


def softmax(v, exp2, a):
    """Logits to weights 2^bits * e^((logit - largest) / temperature), in place; their sum to SUM.

    a: fields of `pick`: VOCAB << BITS <= 2^30, so the SUM, which is written, fits. Weights below 1 become 0.
    """
    at = a[_LOGITS]
    top = max([v[at + i] for i in range(a[_VOCAB])])
    total = 0
    for i in range(at, at + a[_VOCAB]):
        d = min(top - v[i], LIMIT)
        t = (d >> 15) * a[_HEAT] + ((d & 0x7FFF) * a[_HEAT] >> 15)  # d * mantissa / 2^15 < 2^30
        if a[_HEAT_EXPONENT] < 0:
            t = t >> -a[_HEAT_EXPONENT]
        else:
            t = min(t, LIMIT >> a[_HEAT_EXPONENT]) << a[_HEAT_EXPONENT]
        weight = 0
        if t >> 16 <= a[_BITS]:
            f = t & 0xFFFF
            e = exp2[f >> 10]
            e += (exp2[(f >> 10) + 1] - e) * (f & 1023) + 512 >> 10
            weight = (e << 15 >> 30 - a[_BITS]) >> (t >> 16)
        v[i] = weight
        total += weight
    a[_SUM] = total
    return 0


def _share(x, part):
    """x * part / 2^15, rounded down; 0 <= x <= 2^30, 0 <= part <= 2^15."""
    return (x >> 15) * part + ((x & 0x7FFF) * part >> 15)


def pick(v, a):
    """An index drawn by weight from the smallest set of the largest that holds more than top_p of all.

    a: fields of `pick`. Of equal weights the first count first. Returns the index.
    """
    at, n = a[_LOGITS], a[_VOCAB]
    mass = a[_SUM]
    least = 1
    equals = n  # how many weights == least may join
    if a[_TOP_P] < 1 << 15:
        goal = _share(mass, a[_TOP_P])
        # The largest bound such that the weights >= bound add up to more than the goal.
        least = 0
        for k in range(a[_BITS], -1, -1):
            if sum([v[i] for i in range(at, at + n) if v[i] >= least + (1 << k)]) > goal:
                least += 1 << k
        mass = sum([v[i] for i in range(at, at + n) if v[i] > least])
        equals = (goal - mass) // least + 1
        mass += equals * least
    x = a[_STATE] & 0xFFFFFFFF
    x ^= x << 13 & 0xFFFFFFFF
    x ^= x >> 17
    x ^= x << 5 & 0xFFFFFFFF
    a[_STATE] = x - (1 << 32) if x >> 31 else x
    # mass * r / 2^30 for 30 random bits r, low * low left out: still below mass
    r = x >> 2
    r_high, r_low = r >> 15, r & 0x7FFF
    left = r_high * (mass >> 15) + (r_high * (mass & 0x7FFF) + r_low * (mass >> 15) >> 15)
    last = 0
    for i in range(n):
        weight = v[at + i]
        if weight > least or weight == least and equals:
            if weight == least:
                equals -= 1
            last = i
            if left < weight:
                break
            left -= weight
    return last
