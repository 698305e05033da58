"""Runs the weights kernel of plain and viper on scores around every threshold, at every exponent.

Prints the number of comparisons; exits with 1 at the first difference.
"""

from array import array

from mpy_kv import kernels
from mpy_kv.kernels import params as P
from mpy_kv.kernels.tables import EXP2

N = 64
SCORES = 16
LOG_SCALES = (16384, 20000, 23637, 32767)

plain, viper = kernels.get("plain"), kernels.get("viper")
a = array("i", [0] * P.A_COUNT)
a[P.N] = N
a[P.SCORES] = SCORES
a[P.QUERY] = 0
compared = 0


def put32(buf, at, x):
    for i in range(4):
        buf[at + i] = x >> 8 * i & 255


def run(kernel, sm, se, down, scores):
    buf = bytearray(SCORES + 4 * N)
    put32(buf, 0, sm)
    put32(buf, 4, se + 2048)
    put32(buf, 8, down)
    for i, s in enumerate(scores):
        put32(buf, SCORES + 4 * i, s)
    a[P.MAX] = max(scores)
    a[P.WHI] = a[P.WLO] = -1
    kernel.weights(buf, a, EXP2)
    return bytes(buf), a[P.WHI], a[P.WLO]


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
            got = run(viper, sm, se, down, scores)
            compared += 1
            if want != got:
                print("e", e, "log_scale", log_scale, "sm", sm)
                raise SystemExit(1)
print(compared)
