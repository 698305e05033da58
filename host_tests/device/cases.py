"""Small inputs with known answers, run under CPython and MicroPython by the same code.

usage: cases.py CASE KERNELS    prints the case's result as JSON
"""

import json
import sys
from array import array

import float_cases
import int4_cases
import sparse_cases
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.codecs.scales import half
from mpy_kv.errors import BadArgument
from mpy_kv.kernels import params as P

try:
    from uctypes import addressof
except ImportError:
    addressof = None


def floats(values):
    return array("f", values)


def step(cache, k, v, q=None, q_sinks=None):
    """One token, the same vectors in every layer; the last layer's output, or None."""
    g = cache.geometry
    out = None if q is None else floats([0] * (g.heads * g.head_dim))
    for layer in range(g.layers):
        cache.append(layer, k, v)
        if q is not None:
            cache.attend(layer, q, out, q_sinks)
    cache.commit()
    return out


def scale(cache, layer, which, position, group):
    """A stored scale as a number."""
    codes, scales = cache.place(layer, which, position)
    at = scales + group * cache.geometry.scale_stride
    m, e = half(cache.buffer[at] | cache.buffer[at + 1] << 8)
    return m * 2.0**e


def zero_vector(kernel_set):
    """Keys 1, 0, -1 in channel 0; what is stored and what comes out."""
    cache = KVCache(Geometry(1, 1, 1, 16, window=8, sinks=0), kernels=kernel_set)
    q = floats([1] + [0] * 15)
    out = floats([0] * 16)
    for key, value in ((1, 1), (0, 2), (-1, 3)):
        out = step(cache, floats([key] + [0] * 15), floats([value] * 16), q)
    return {
        "read": [cache.read(0, "k", t) for t in range(3)],
        "scales": [scale(cache, 0, "k", t, 0) for t in range(3)],
        "out": list(out),
    }


def constant_vector(kernel_set):
    cache = KVCache(Geometry(1, 1, 1, 16, window=8, sinks=0), kernels=kernel_set)
    out = step(cache, floats([0.5] * 16), floats([0.5] * 16), floats([0.5] * 16))
    return {"read": cache.read(0, "k", 0), "scale": scale(cache, 0, "k", 0, 0), "out": list(out)}


def outlier(kernel_set):
    """One channel of 100 among 0.5, in two groups of 16."""
    cache = KVCache(Geometry(1, 1, 1, 32, window=4, sinks=0, group=16), kernels=kernel_set)
    x = floats([100] + [0.5] * 31)
    step(cache, x, x)
    return {
        "read": cache.read(0, "k", 0),
        "scales": [scale(cache, 0, "k", 0, group) for group in (0, 1)],
    }


def put32(buf, at, x):
    for i in range(4):
        buf[at + i] = x >> 8 * i & 255


def get32(buf, at):
    x = buf[at] | buf[at + 1] << 8 | buf[at + 2] << 16 | buf[at + 3] << 24
    return x - (1 << 32) if x >> 31 else x


def dots(kernel_set, rows, q):
    """Run qk over rows of stored bytes with the query codes q (both of a length divisible by 4)."""
    width = len(q)
    query_at, dots_at = width * len(rows), width * len(rows) + 20 + 2 * width
    buf = bytearray(dots_at + 4 * len(rows))
    for i, row in enumerate(rows):
        buf[i * width : (i + 1) * width] = bytes(row)
    put32(buf, query_at + 16, sum([c < 0 for i, c in enumerate(q) if i & 2]) - 128 * sum(q))
    for w in range(0, width, 4):
        put32(buf, query_at + 20 + 2 * w, q[w + 2] + (q[w] << 16))
        put32(buf, query_at + 24 + 2 * w, q[w + 3] + (q[w + 1] << 16))
    a = array("i", [0] * P.A_COUNT)
    a[P.N] = len(rows)
    a[P.RUNS] = 1
    a[P.ROW] = a[P.WIDTH] = width
    a[P.SLICES] = 1
    a[P.QUERY] = query_at
    a[P.DOTS] = dots_at
    a[P.RUN + 2] = len(rows)
    kernel_set.qk(buf, buf, P.MASK, a)
    return [get32(buf, dots_at + 4 * i) for i in range(len(rows))]


def signed_bytes(kernel_set):
    ones = [1] * 8
    sweep = []
    for lane in range(8):
        rows = [[128] * 8 for _ in range(255)]
        for v in range(255):
            rows[v][lane] = v + 1
        sweep.append(dots(kernel_set, rows, ones))
    mixed = [[1, 255, 1, 255, 255, 1, 255, 1], [255] * 8, [1] * 8]
    return {
        "minus one": dots(kernel_set, [[0x7F] * 8], ones),
        "sweep": sweep,
        "extremes": dots(kernel_set, mixed, [64, -64, -64, 64, 64, -64, 64, -64])
        + dots(kernel_set, mixed, [-64] * 8),
    }


def offsets(kernel_set):
    """The same steps in buffers that begin at each of four addresses."""
    g = Geometry(2, 2, 1, 12, window=5, sinks=1, group=4)
    found = []
    for offset in range(4):
        cache = KVCache(g, memoryview(bytearray(g.bytes() + 8))[offset:], kernels=kernel_set)
        outs = []
        for t in range(9):
            x = floats([(t * 7 + i * 3) % 11 - 5 for i in range(24)])
            outs += list(step(cache, x[:12], x[12:], x, x))
        aligned = addressof is None or (addressof(cache.buffer) + cache.attention[0].codes[0]) % 4 == 0
        found.append([aligned, outs])
    return found


def grouped_heads(kernel_set):
    """Values of KV head h are h + 1; the outputs of all query heads."""
    found = {}
    for heads, kv_heads in ((6, 2), (8, 1), (6, 6)):
        cache = KVCache(Geometry(1, heads, kv_heads, 4, window=4, sinks=0), kernels=kernel_set)
        v = floats([h + 1 for h in range(kv_heads) for _ in range(4)])
        for _ in range(3):
            out = step(cache, floats([1] * (4 * kv_heads)), v, floats([1] * (4 * heads)))
        found["%d/%d" % (heads, kv_heads)] = list(out)
    try:
        Geometry(1, 6, 4, 4)
        found["6/4"] = "taken"
    except BadArgument as error:
        found["6/4"] = str(error)
    return found


def watched(kernel_set, window, sinks):
    """A cache for numbered tokens: V of KV head 0 is the position, of head 1 one-hot at position % 64."""
    g = Geometry(1, 2, 2, 64, window=window, sinks=sinks, group=64)
    cache = KVCache(g, kernels=kernel_set)
    return cache, floats([0] * 128), floats([0] * 128), floats([0] * 128)


def see(cache, out):
    """[visible, mean of V over what was attended, positions % 64 that were attended]"""
    top = max(out[64:])
    return [cache.visible(), out[0], [i for i in range(64) if out[64 + i] > top / 4]]


def number(v, t):
    """V of token t, in place."""
    for i in range(64):
        v[i] = t
        v[64 + i] = 0
    v[64 + t % 64] = 1


def survivors(kernel_set):
    """What is visible after 16, 17, 20, 21 and 100 tokens, with 4, no and 16 sinks."""
    found = {}
    for sinks in (4, 0, 16):
        cache, same, v, out = watched(kernel_set, 16, sinks)
        for t in range(100):
            number(v, t)
            cache.append(0, same, v)
            cache.attend(0, same, out)
            cache.commit()
            if t + 1 in (16, 17, 20, 21, 100):
                found["%d/%d" % (sinks, t + 1)] = see(cache, out)
    return found


def long_run(kernel_set):
    """70,000 single steps; what is visible around each power of two where a counter might wrap, and last."""
    cache, same, v, out = watched(kernel_set, 16, 4)
    found = {}
    for t in range(70000):
        number(v, t)
        cache.append(0, same, v)
        cache.attend(0, same, out)
        cache.commit()
        if t + 1 in (256, 257, 32768, 32769, 65536, 65537, 70000):
            found[t + 1] = see(cache, out)
    return found


def boundary(kernel_set):
    """Window 8, no sinks: what is visible as the length passes it, by steps and after a prefill of 6."""
    found = {}
    for way in ("steps", "prefill"):
        cache, same, v, out = watched(kernel_set, 8, 0)
        first = 0
        if way == "prefill":
            first = 6
            rows = floats([0] * (6 * 128))
            outs = floats([0] * (6 * 128))
            for t in range(6):
                number(v, t)
                for i in range(128):
                    rows[t * 128 + i] = v[i]
            cache.prefill(0, floats([0] * (6 * 128)), rows, 6)
            cache.attend(0, floats([0] * (6 * 128)), outs, None, 6)
            cache.commit()
        for t in range(first, 11):
            number(v, t)
            cache.append(0, same, v)
            cache.attend(0, same, out)
            cache.commit()
            if t + 1 in (8, 9, 11):
                found["%s/%d" % (way, t + 1)] = see(cache, out)
        found[way + "/bytes"] = list(cache.buffer[: cache.geometry.layer_bytes])
    return found


def rotated(position):
    from math import cos, sin

    return cos(position), sin(position)


def sink_positions(kernel_set):
    """Raw key (1, 0), 1 rad a position, 4 sinks, window 16, 100 tokens, query raw (8, 0): the weights of all
    visible tokens, read off V one-hot in four groups of heads; with and without q_sinks."""
    found = {}
    for way in ("R", "O"):
        # KV head h shows in its 2 channels the weights of two of the visible tokens.
        heads = 10
        g = Geometry(1, heads, heads, 2, window=16, sinks=4, group=2)
        cache = KVCache(g, kernels=kernel_set)
        out = floats([0] * (2 * heads))
        asked = []
        for t in range(100):
            c, s = rotated(t)
            k = floats([c, s] * heads)
            v = floats([0] * (2 * heads))
            mine = t if t < 4 else 4 + (t - 4) % 16
            v[mine] = 1
            at = cache.sink_query_position()
            asked.append(at)
            qc, qs = rotated(at)
            q = floats([8 * c, 8 * s] * heads)
            q_sinks = floats([8 * qc, 8 * qs] * heads) if way == "R" else None
            cache.append(0, k, v)
            cache.attend(0, q, out, q_sinks)
            cache.commit()
        found[way] = {"weights": list(out), "asked": asked, "visible": cache.visible()}
        # Also after a rollback: the position of the query for the sinks follows the length.
        cache.rollback(5)
        found[way]["after rollback"] = [
            cache.length,
            cache.sink_query_position(),
            cache.sink_query_position(3),
        ]
        cache.rollback(cache.length - 7)
        found[way]["deep"] = [cache.length, cache.sink_query_position(), cache.sink_query_position(20)]
    return found


def views(kernel_set):
    """Rows given as views into larger arrays, and q overwritten by its own result: what comes out."""
    found = []
    for way in ("arrays", "views", "in place"):
        cache = KVCache(Geometry(1, 2, 1, 8, window=4, sinks=1), kernels=kernel_set)
        rows = floats([(i * 7) % 23 - 11 for i in range(9 * 50)])
        view = memoryview(rows)
        seen = []
        for t in range(9):
            at = t * 50 + 1
            cut = [(at, at + 8), (at + 8, at + 16), (at + 16, at + 32), (at + 32, at + 48)]
            if way == "views":
                k, v, q, out = [view[a:b] for a, b in cut]
            else:
                k, v, q, out = [rows[a:b] for a, b in cut]
            if way == "in place":
                out = q
            cache.append(0, k, v)
            cache.attend(0, q, out, q)
            cache.commit()
            seen += list(out)
        # The same in one prefill, in place.
        n = 3
        k, v, q = [floats([(i * s) % 19 - 9 for i in range(n * c)]) for s, c in ((5, 8), (7, 8), (3, 16))]
        out = q if way == "in place" else floats([0] * (n * 16))
        cache.prefill(0, k, v, n)
        cache.attend(0, q, out, q, n)
        cache.commit()
        found.append(seen + list(out))
    return found


def dirty(kernel_set):
    """The same steps in buffers that held zeros, ones or rubbish before."""
    found = []
    for rubbish in (0, 255, None):
        g = Geometry(2, 4, 2, 6, window=5, sinks=2, group=3)
        buffer = bytearray(g.bytes())
        for i in range(len(buffer)):
            buffer[i] = i * 89 & 255 if rubbish is None else rubbish
        cache = KVCache(g, buffer, kernels=kernel_set)
        seen = []
        for t in range(14):
            k = floats([(t * 5 + i * 3) % 13 - 6 for i in range(12)])
            q = floats([(t * 3 + i * 5) % 11 - 5 for i in range(24)])
            seen += list(step(cache, k, k, q, k[:12] + k))
        found.append([seen, cache.check(), cache.read(1, "v", 0), cache.read(1, "k", 13)])
    return found


CASES = {
    "dirty": dirty,
    "views": views,
    "zero_vector": zero_vector,
    "constant_vector": constant_vector,
    "outlier": outlier,
    "signed_bytes": signed_bytes,
    "offsets": offsets,
    "grouped_heads": grouped_heads,
    "survivors": survivors,
    "long_run": long_run,
    "boundary": boundary,
    "sink_positions": sink_positions,
}
CASES.update(int4_cases.CASES)
CASES.update(float_cases.CASES)
CASES.update(sparse_cases.CASES)

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]](kernels.get(sys.argv[2]))))
