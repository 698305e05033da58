"""Time per multiply-accumulate of QK and AV over int8 rows, in nanoseconds, all in one run.

usage: kernels.py HEAD_DIM TOKENS. Prints one line of JSON. Each figure is the median of several rounds
and every round times all variants, so that a slow spell of the machine slows them alike.
Variants: the chosen kernel set; the plain twin; and `unrolled`, the loop a careful user writes in
bytecode (eight products an iteration, no calls), so that the comparison is with the faster of the two.
"""

import json
import sys
import time
from array import array

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.kernels import params

ROUNDS = 7


def unrolled_qk(buf, q, rows, row, start, out):
    """Dots of q (signed codes) with `rows` rows of codes at `start`: bytecode, 8 products a turn."""
    n = len(q)
    total = 0
    for i in range(n):
        total += q[i]
    total *= 128
    k = start
    for t in range(rows):
        s = 0
        i = 0
        while i < n:
            s += (
                buf[k] * q[i]
                + buf[k + 1] * q[i + 1]
                + buf[k + 2] * q[i + 2]
                + buf[k + 3] * q[i + 3]
                + buf[k + 4] * q[i + 4]
                + buf[k + 5] * q[i + 5]
                + buf[k + 6] * q[i + 6]
                + buf[k + 7] * q[i + 7]
            )
            i += 8
            k += 8
        k += row - n
        out[t] = s - total


def unrolled_av(buf, p, rows, row, start, out):
    """Weights p[t] times the codes of each row, summed over rows: bytecode, 8 products a turn."""
    n = len(out)
    for c in range(0, n, 8):
        a = b = d = e = f = g = h = i = 0
        k = start + c
        total = 0
        for t in range(rows):
            w = p[t]
            total += w
            a += buf[k] * w
            b += buf[k + 1] * w
            d += buf[k + 2] * w
            e += buf[k + 3] * w
            f += buf[k + 4] * w
            g += buf[k + 5] * w
            h += buf[k + 6] * w
            i += buf[k + 7] * w
            k += row
        total *= 128
        out[c] = a - total
        out[c + 1] = b - total
        out[c + 2] = d - total
        out[c + 3] = e - total
        out[c + 4] = f - total
        out[c + 5] = g - total
        out[c + 6] = h - total
        out[c + 7] = i - total


def clock(function, *args, seconds=0.04):
    """Nanoseconds of one call, over as many calls as fill `seconds`."""
    calls = 1
    while True:
        start = time.ticks_us()
        for _ in range(calls):
            function(*args)
        took = time.ticks_diff(time.ticks_us(), start)
        if took > seconds * 1000000 or calls > 1 << 20:
            return took * 1000 / calls
        calls *= 4


def median(values):
    return sorted(values)[len(values) // 2]


def main(head_dim, tokens):
    # One slice: a kernel call does whole rows.
    g = Geometry(1, 1, 1, head_dim, window=tokens, sinks=0, group=head_dim)
    cache = KVCache(g)
    k = array("f", [0.0] * head_dim)
    q = array("f", [0.0] * head_dim)
    out = array("f", [0.0] * head_dim)
    for t in range(tokens):
        for i in range(head_dim):
            k[i] = ((t * 31 + i * 17) % 255 - 127) / 64
            q[i] = ((t * 13 + i * 29) % 127 - 63) / 32
        cache.append(0, k, k)
        cache.attend(0, q, out)
        cache.commit()
    fast, plain = cache.kernels, kernels.get("plain")
    buf, a = cache.kernel_arguments()
    if tokens != a[params.N]:
        raise RuntimeError("the cache sees %d tokens, not %d" % (a[params.N], tokens))
    codes = array("b", [(i * 29) % 127 - 63 for i in range(head_dim)])
    dots = array("i", [0] * tokens)
    weights = array("i", [(i * 7) % 33 for i in range(tokens)])
    sums = array("i", [0] * head_dim)
    row = g.row_bytes
    loops = {
        "qk": (unrolled_qk, (buf, codes, tokens, row, a[params.CODES], dots)),
        "av": (unrolled_av, (buf, weights, tokens, row, a[params.VCODES], sums)),
    }
    result = {"kernels": fast.name, "head_dim": head_dim, "tokens": tokens}
    products = tokens * head_dim
    for name in ("qk", "av"):
        args = (buf, buf, params.MASK, a)
        times = {"plain": [], "unrolled": [], "fast": []}
        for _ in range(ROUNDS):
            times["fast"].append(clock(getattr(fast, name), *args))
            times["unrolled"].append(clock(loops[name][0], *loops[name][1]))
            times["plain"].append(clock(getattr(plain, name), *args, seconds=0.01))
        result[name] = {key: median(values) / products for key, values in times.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
