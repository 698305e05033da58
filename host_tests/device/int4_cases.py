"""Small inputs with known answers for values of 4 bits: cases of cases.py, which hands on its kernel set."""

from array import array

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.codecs.scales import half
from mpy_kv.kernels import params as P

CODEC = "int8-int4"


def floats(values):
    return array("f", values)


def own(kernel_set):
    """The set of that name for this element type."""
    return kernels.of(CODEC).get(kernel_set.name)


def cache_of(kernel_set, head_dim, window=8, **options):
    return KVCache(Geometry(1, 1, 1, head_dim, window, 0, codec=CODEC, **options), kernels=own(kernel_set))


def step(cache, k, v, q=None):
    """One token, and what it sees with the query q."""
    out = floats([0] * cache.geometry.head_dim)
    cache.append(0, floats(k), floats(v))
    if q is not None:
        cache.attend(0, floats(q), out)
    cache.commit()
    return list(out)


def scale(cache, position, group):
    """The bits of a value's stored scale, as a number."""
    at = cache.place(0, "v", position)[1] + group * cache.geometry.scale_stride
    m, e = half(cache.buffer[at] | cache.buffer[at + 1] << 8)
    return m * 2.0**e


def codes(cache, position):
    """The bytes of head 0's row."""
    at = cache.place(0, "v", position)[0]
    return list(cache.buffer[at : at + cache.geometry.v_row_bytes])


def zeros(kernel_set):
    """Keys 1, 0, -1 with values 1, 2, 3: the output; then a value of zeros."""
    cache = cache_of(kernel_set, 16)
    q = [1] + [0] * 15
    for key, value in ((1, 1), (0, 2), (-1, 3)):
        out = step(cache, [key] + [0] * 15, [value] * 16, q)
    step(cache, q, [0] * 16)
    return {
        "key": cache.read(0, "k", 1),
        "out": out,
        "value": cache.read(0, "v", 3),
        "scale": scale(cache, 3, 0),
        "codes": codes(cache, 3),
    }


def constant(kernel_set):
    cache = cache_of(kernel_set, 16)
    out = step(cache, [0.5] * 16, [0.5] * 16, [0.5] * 16)
    return {"read": cache.read(0, "v", 0), "scale": scale(cache, 0, 0), "out": out}


def outlier(kernel_set):
    """One channel of 100 among 0.5, in two groups of 16."""
    cache = cache_of(kernel_set, 32, group=16)
    step(cache, [0] * 32, [100] + [0.5] * 31)
    return {"read": cache.read(0, "v", 0), "scales": [scale(cache, 0, group) for group in (0, 1)]}


def packing(kernel_set):
    """-7 .. 7 and 0 in one group: bytes, values read back, and what attention over this token alone gives."""
    cache = cache_of(kernel_set, 16, window=1)
    values = list(range(-7, 8)) + [0]
    out = step(cache, [0] * 16, values, [1] * 16)
    return {"codes": codes(cache, 0), "scale": scale(cache, 0, 0), "read": cache.read(0, "v", 0), "out": out}


def pairs(kernel_set):
    """All pairs of neighbours -7 .. 7, four a token; whatever differs when read back."""
    cache = cache_of(kernel_set, 10, window=4)
    every = [(a, b) for a in range(-7, 8) for b in range(-7, 8)]
    wrong = []
    for i in range(0, len(every), 4):
        values = [7, -7]
        for a, b in every[i : i + 4]:
            values += [a, b]
        values += [0] * (10 - len(values))
        step(cache, [0] * 10, values)
        read = cache.read(0, "v", cache.length - 1)
        if read != values:
            wrong.append([values, read])
    return wrong


def odd_rows(kernel_set):
    """Rows of 5 values in a ring that wraps: bytes of the last one, and all that is visible."""
    cache = cache_of(kernel_set, 5, window=3)
    for t in range(11):
        step(cache, [0] * 5, [7, t % 7, -t % 5, t % 3, t % 2 - 7])
    return {"codes": codes(cache, 10), "read": [cache.read(0, "v", p) for p in cache.visible()]}


def lanes(kernel_set):
    """av itself over stored nibbles: each value in each place of a word; the largest codes at the largest
    sum of weights; rows in two runs. What it adds to CORR."""
    found = []
    rows = [[n << 4 * place for n in range(16)] for place in range(8)]
    for place in range(8):
        for n in range(1, 16):
            found.append(mixed(own(kernel_set), [rows[place][n]], [1], [1]))
    most = [32] * 7 + [33]
    for word in (0xFFFFFFFF, 0x11111111, 0xF1F1F1F1, 0x1F1F1F1F):
        found.append(mixed(own(kernel_set), [word] * 8, most, [3, 5]))
    words, weights = [0x87654321 + i for i in range(19)], [i % 5 for i in range(19)]
    found.append(mixed(own(kernel_set), words, weights, [8, 11]))
    return found


def mixed(kernel_set, words, weights, runs):
    """SUMS of av over one word a token, a batch scaled by 1, less CORR."""
    n = len(words)
    weights_at, units_at, sums_at = 4 * n, 8 * n, 8 * n + 4 * ((n + 7) // 8)
    buf = bytearray(sums_at + 32)
    a = array("i", [0] * (P.RUN + 2 * len(runs)))
    a[P.N] = n
    a[P.RUNS] = len(runs)
    a[P.V_ROW] = a[P.V_WIDTH] = 4
    a[P.SLICES] = 1
    a[P.DOTS], a[P.UNITS], a[P.SUMS] = weights_at, units_at, sums_at
    a[P.CORR] = 128 * sum(weights)
    a[P.V_RUNS] = 4 * P.RUN
    first = 0
    for i, count in enumerate(runs):
        a[P.RUN + 2 * i], a[P.RUN + 2 * i + 1] = 4 * first, count
        first += count
    for i in range(n):
        put32(buf, 4 * i, words[i])
        put32(buf, weights_at + 4 * i, weights[i])
    for i in range((n + 7) // 8):
        put32(buf, units_at + 4 * i, 1 << 14 | 14 << 16)
    kernel_set.av(buf, buf, P.MASK, a)
    return [get32(buf, sums_at + 4 * i) - a[P.CORR] for i in range(8)]


def put32(buf, at, x):
    for i in range(4):
        buf[at + i] = x >> 8 * i & 255


def get32(buf, at):
    return buf[at] | buf[at + 1] << 8 | buf[at + 2] << 16 | buf[at + 3] << 24


CASES = {
    "int4 zeros": zeros,
    "int4 constant": constant,
    "int4 outlier": outlier,
    "int4 packing": packing,
    "int4 pairs": pairs,
    "int4 odd rows": odd_rows,
    "int4 lanes": lanes,
}
