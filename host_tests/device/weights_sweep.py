"""Runs the weights kernel of plain and of every native set on scores around every threshold, at every
exponent.

Prints the number of comparisons with each set; exits with 1 at the first difference.
"""

from array import array

from mpy_kv import kernels
from mpy_kv.kernels import params as P
from mpy_kv.kernels.tables import TABLES

N = 64
SCORES = 16
VSCALE = SCORES + 4 * N
UNITS = VSCALE + 2 * N
LOG_SCALES = (16384, 20000, 23637, 32767)

plain = kernels.get("plain")
native = []
for name in ("viper", "thumb"):
    try:
        native.append(kernels.get(name))
    except ValueError:
        pass  # not for this port
a = array("i", [0] * P.A_COUNT)
a[P.N] = N
a[P.SLICES] = 1
a[P.SCORES] = a[P.DOTS] = SCORES
a[P.VSCALE] = VSCALE
a[P.UNITS] = UNITS
a[P.QUERY] = 0
compared = 0


def put32(buf, at, x):
    for i in range(4):
        buf[at + i] = x >> 8 * i & 255


def run(kernel, sm, se, down, scores):
    buf = bytearray(UNITS + N // 2)
    put32(buf, 0, sm)
    put32(buf, 4, se + 2048)
    put32(buf, 8, down)
    for i, s in enumerate(scores):
        put32(buf, SCORES + 4 * i, s)
        buf[VSCALE + 2 * i] = 37 * i & 255
        buf[VSCALE + 2 * i + 1] = 127 >> (i & 7)
    a[P.MAX] = max(scores)
    a[P.WHI] = a[P.WLO] = a[P.CORR] = -1
    kernel.weights(buf, buf, TABLES, a)
    return bytes(buf), a[P.WHI], a[P.WLO], a[P.CORR]


for e in range(-40, 70):
    for log_scale in LOG_SCALES:
        for sm in (1024, 1500, 2047):
            a[P.LOG_SCALE] = log_scale
            a[P.KEXP] = 15
            m = sm * log_scale
            k = 10 if m < 1 << 25 else 11
            m >>= k
            down = e & 7
            a[P.LOG_EXP] = 15
            se = a[P.LOG_EXP] + 21 - k - e - a[P.KEXP] - down
            # The distance at which nothing is left (7168 steps), the 16-bit limit, and powers of two.
            scores = [1 << 29]
            for centre in (7168 * 2**e // m if e > 0 else 1, 1 << max(15, min(e - 1, 28)), 3):
                for near in range(-4, 5):
                    scores.append((1 << 29) - min(max(centre + near * (centre >> 9 or 1), 0), (1 << 30) - 1))
            for i in range(N - len(scores)):
                scores.append((1 << 29) - (1 << (i % 30)) + i)
            want = run(plain, sm, se, down, scores)
            compared += 1
            for kernel in native:
                if run(kernel, sm, se, down, scores) != want:
                    print(kernel.name, "e", e, "log_scale", log_scale, "sm", sm)
                    raise SystemExit(1)
print(compared)
