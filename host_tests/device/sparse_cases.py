"""Small inputs with known answers for sparse values: cases of cases.py, which hands on its kernel set."""

from array import array

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.codecs.scales import half
from mpy_kv.kernels import params as P

CODEC = "sparse"


def floats(values):
    return array("f", values)


def own(kernel_set):
    """The set of that name for this element type."""
    return kernels.of(CODEC).get(kernel_set.name)


def cache_of(kernel_set, kv_heads, head_dim, window=8, **options):
    g = Geometry(1, kv_heads, kv_heads, head_dim, window, 0, codec=CODEC, **options)
    return KVCache(g, kernels=own(kernel_set))


def step(cache, k, v, q=None):
    """One token, and what it sees with the query q."""
    out = floats([0] * cache.geometry.width)
    cache.append(0, floats(k), floats(v))
    if q is not None:
        cache.attend(0, floats(q), out)
    cache.commit()
    return list(out)


def row(cache, position, group=0):
    """The bytes of a group's row."""
    at = cache.place(0, "v", position)[0] + group * cache.geometry.v_group_stride
    return list(cache.buffer[at : at + cache.geometry.v_row_bytes])


def scale(cache, position, group):
    """The bits of a value's stored scale, as a number."""
    at = cache.place(0, "v", position)[1] + group * cache.geometry.scale_stride
    m, e = half(cache.buffer[at] | cache.buffer[at + 1] << 8)
    return m * 2.0**e


def zeros(kernel_set):
    """Keys 1, 0, -1 with values 1, 2, 3: the output; then a value of zeros."""
    cache = cache_of(kernel_set, 1, 16)
    q = [1] + [0] * 15
    for key, value in ((1, 1), (0, 2), (-1, 3)):
        out = step(cache, [key] + [0] * 15, [value] * 16, q)
    step(cache, q, [0] * 16)
    return {"out": out, "value": cache.read(0, "v", 3), "scale": scale(cache, 3, 0), "row": row(cache, 3)}


def ties(kernel_set):
    """Which of equal magnitudes stay: one group of 8, then two of 4 with denormals, which count as zeros."""
    one = cache_of(kernel_set, 1, 8)
    out = step(one, [0] * 8, [3, -1, 1, 2, -1, 127, 0, 1], [0] * 8)
    two = cache_of(kernel_set, 2, 4, group=4)
    step(two, [0] * 8, [1, 0, 1e-39, 127, 1e-39, 0, -127, -1])
    return {
        "row": row(one, 0),
        "read": one.read(0, "v", 0),
        "out": out,
        "rows": [row(two, 0), row(two, 0, 1)],
        "read two": two.read(0, "v", 0),
        "sound": one.check() + two.check(),
    }


def narrow_heads(kernel_set):
    """32 heads of one channel share a group: what attention over one token gives, and what is stored."""
    cache = cache_of(kernel_set, 32, 1, window=1)
    values = [(i * 37) % 64 - 31 for i in range(32)]
    out = step(cache, [0] * 32, values, [1] * 32)
    return {"out": out, "read": cache.read(0, "v", 0), "values": values}


def odd_rows(kernel_set):
    """Rows of 5 values in a ring that wraps: bytes of the last one, and all that is visible."""
    cache = cache_of(kernel_set, 1, 5, window=3)
    for t in range(11):
        step(cache, [0] * 5, [127, t % 7, -t % 5, t % 3 + 3, t % 2 - 7])
    return {"row": row(cache, 10), "read": [cache.read(0, "v", p) for p in cache.visible()]}


def lanes(kernel_set):
    """av itself: every bitmap of a head of 8, at each place in a group of 32, whatever the bits around it;
    what differs from the sum it stands for. Then the largest and least codes at the largest sum of
    weights."""
    wrong = []
    for bits in range(256):
        first = bits * 5 % 4 * 8
        bitmap = 0x9D3A5CE7 + bits * 0x01010101 & (0xFFFFFFFF ^ 255 << first) | bits << first
        codes = [(bits * 7 + i * 31) % 255 + 1 for i in range(32)]
        got = mixed(own(kernel_set), [(bitmap, codes)], [1], [1], first // 8)
        want = expected(bitmap, codes, first)
        if got != want:
            wrong.append([bits, got, want])
    most = [32] * 7 + [33]
    full = []
    for bitmap, byte in ((0xFFFFFFFF, 255), (0xFFFFFFFF, 1), (0x55555555, 255), (0xAAAAAAAA, 1)):
        full.append(mixed(own(kernel_set), [(bitmap, [byte] * 32)] * 8, most, [3, 5], 2))
    return {"wrong": wrong, "full": full}


def expected(bitmap, codes, first):
    """Channels first .. first + 8 of the codes that the bitmap says."""
    found = []
    i = 0
    for c in range(32):
        code = 0
        if bitmap >> c & 1:
            code = codes[i] - 128
            i += 1
        if first <= c < first + 8:
            found.append(code)
    return found


def mixed(kernel_set, rows, weights, runs, head):
    """SUMS of av for one of four heads of 8 over rows of 36 bytes, a batch scaled by 1, less CORR."""
    n = len(rows)
    weights_at, units_at = 36 * n, 40 * n
    sums_at = units_at + 4 * ((n + 7) // 8)
    buf = bytearray(sums_at + 32)
    a = array("i", [0] * (P.RUN + 3 + 2 * len(runs)))
    a[P.N] = n
    a[P.RUNS] = len(runs)
    a[P.V_ROW] = 36
    a[P.SLICES] = 1
    a[P.SLICE_WIDTH] = a[P.HEAD_DIM] = 8
    a[P.QUERY_BYTES] = 16
    a[P.QUERIES], a[P.QUERY] = 64, 64 + 16 * head
    a[P.DOTS], a[P.UNITS], a[P.SUMS] = weights_at, units_at, sums_at
    a[P.CORR] = 128 * sum(weights)
    a[P.RUN], a[P.RUN + 1] = 16, 32
    a[P.V_RUNS] = 4 * (P.RUN + 3)
    first = 0
    for i, count in enumerate(runs):
        a[P.RUN + 3 + 2 * i], a[P.RUN + 4 + 2 * i] = 36 * first, count
        first += count
    for i, (bitmap, codes) in enumerate(rows):
        put32(buf, 36 * i, bitmap)
        buf[36 * i + 4 : 36 * i + 36] = bytes(codes)
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
    "sparse zeros": zeros,
    "sparse ties": ties,
    "sparse narrow heads": narrow_heads,
    "sparse odd rows": odd_rows,
    "sparse lanes": lanes,
}
