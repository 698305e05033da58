"""av of int8-int4 as native code: the bits of plain.py here. Style and limits: ../viper.py."""

import micropython
from micropython import const

# fields: attend, v_run
_N = const(0)
_VCODES = const(6)
_DOTS = const(11)
_UNITS = const(15)
_SUMS = const(16)
_SLICE = const(19)
_V_ROW = const(39)
_V_WIDTH = const(40)
_V_RUNS = const(41)
_V_RUN_CODES = const(0)
_V_RUN_COUNT = const(1)
_V_RUN_WORDS = const(2)
# end of fields


@micropython.viper
def av(v: ptr32, p: ptr32, m: int, a: ptr32) -> int:
    base = int(v)
    m = m & 0xF000F0
    row = int(a[_V_ROW])
    width = int(a[_V_WIDTH])
    col = 0
    while col < width:
        o = ptr32(base + int(a[_SUMS]) + (col << 3))
        o[0] = 0
        o[1] = 0
        o[2] = 0
        o[3] = 0
        o[4] = 0
        o[5] = 0
        o[6] = 0
        o[7] = 0
        sh = ptr32(base + int(a[_UNITS]))
        p = ptr32(base + int(a[_DOTS]))
        v_run = ptr32(int(a) + int(a[_V_RUNS]))
        total = int(a[_N])
        n = 0
        s0 = 0
        s1 = 0
        s2 = 0
        s3 = 0
        cut = 0  # bits of a weight before the part of it that is next, where a batch is split
        while total:
            # A batch: 8 tokens, or what is left; it may span runs.
            batch = 8
            if total < 8:
                batch = total
            total -= batch
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            v0 = int(v)
            n0 = n
            run0 = int(v_run)
            p0 = int(p)
            while batch:
                if not n:
                    v = ptr32(
                        base + int(a[_VCODES]) + int(a[_SLICE]) * width + col + int(v_run[_V_RUN_CODES])
                    )
                    n = int(v_run[_V_RUN_COUNT])
                    v_run = ptr32(int(v_run) + 4 * _V_RUN_WORDS)
                    continue
                k = n
                if batch < k:
                    k = batch
                n -= k
                batch -= k
                if c >> 25:
                    # It weighs nothing.
                    v = ptr32(int(v) + k * row)
                    p = ptr32(int(p) + (k << 2))
                    k = 0
                if c >> 24 == 0:
                    while k >> 2:
                        s0 = (v[0] << 4 & m) * p[0] + s0
                        s1 = (v[0] & m) * p[0] + s1
                        s2 = (v[0] >> 4 & m) * p[0] + s2
                        s3 = (v[0] >> 8 & m) * p[0] + s3
                        v = ptr32(int(v) + row)
                        s0 = (v[0] << 4 & m) * p[1] + s0
                        s1 = (v[0] & m) * p[1] + s1
                        s2 = (v[0] >> 4 & m) * p[1] + s2
                        s3 = (v[0] >> 8 & m) * p[1] + s3
                        v = ptr32(int(v) + row)
                        s0 = (v[0] << 4 & m) * p[2] + s0
                        s1 = (v[0] & m) * p[2] + s1
                        s2 = (v[0] >> 4 & m) * p[2] + s2
                        s3 = (v[0] >> 8 & m) * p[2] + s3
                        v = ptr32(int(v) + row)
                        s0 = (v[0] << 4 & m) * p[3] + s0
                        s1 = (v[0] & m) * p[3] + s1
                        s2 = (v[0] >> 4 & m) * p[3] + s2
                        s3 = (v[0] >> 8 & m) * p[3] + s3
                        v = ptr32(int(v) + row)
                        p = ptr32(int(p) + 16)
                        k -= 4
                while k:
                    w = int(p[0]) >> cut & 0xFFFF
                    s0 = (v[0] << 4 & m) * w + s0
                    s1 = (v[0] & m) * w + s1
                    s2 = (v[0] >> 4 & m) * w + s2
                    s3 = (v[0] >> 8 & m) * w + s3
                    v = ptr32(int(v) + row)
                    p = ptr32(int(p) + 4)
                    k -= 1
            if not c >> 25:
                k = c >> 16 & 31
                if cut:
                    k += 5
                f = c & 0xFFFF
                o[0] = ((s0 & 0xFFFF) * f >> k) + o[0]
                o[1] = ((s1 & 0xFFFF) * f >> k) + o[1]
                o[2] = ((s2 & 0xFFFF) * f >> k) + o[2]
                o[3] = ((s3 & 0xFFFF) * f >> k) + o[3]
                o[4] = ((s0 >> 16 & 0xFFFF) * f >> k) + o[4]
                o[5] = ((s1 >> 16 & 0xFFFF) * f >> k) + o[5]
                o[6] = ((s2 >> 16 & 0xFFFF) * f >> k) + o[6]
                o[7] = ((s3 >> 16 & 0xFFFF) * f >> k) + o[7]
                s0 = 0
                s1 = 0
                s2 = 0
                s3 = 0
            if c >> 24 & 1:
                # A split batch: once more with the other part of its weights.
                cut = 16 - cut
                if cut:
                    total += (int(p) - p0) >> 2
                    v = ptr32(v0)
                    n = n0
                    v_run = ptr32(run0)
                    p = ptr32(p0)
                    sh = ptr32(int(sh) - 4)
        col += 4
    return 0
