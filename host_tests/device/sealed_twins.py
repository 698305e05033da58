"""Every call of a native kernel of int4 beside the same call of plain, as kernel_twins.py of the others.

usage: sealed_twins.py KERNELS [SHAPE,...]    SHAPE: one of SHAPES by number (default: all)
Prints the number of calls compared; exits with 1 at the first difference.
Shapes have sealed rows of one to four words, with and without padding, groups of less and more than a head,
several slices, sinks, windows that begin at every row of a block and end anywhere in a batch; each ring of
blocks wraps, blocks are re-opened. Values as in kernel_twins.py, and scales from the least to the greatest.
"""

import sys

from kernel_twins import AMPLITUDES, Noise, Twins, vector
from mpy_kv import kernels
from mpy_kv.int4_blocks import SealedCache, SealedGeometry

# heads, kv_heads, head_dim, window, sinks, group, tokens
SHAPES = [(4, 2, 8, 37, 2, None, 90), (1, 1, 12, 32, 0, 6, 84), (2, 2, 5, 20, 1, None, 68)]
SHAPES += [(1, 1, 64, 33, 0, 32, 70), (1, 1, 24, 18, 3, None, 60), (1, 1, 3, 16, 0, 1, 52)]
SHAPES += [(1, 1, 4, 15, 0, None, 52)]


def load(name):
    """The set of that name, not checked before: this is the check."""
    family = kernels.of("int4")
    return family._set_of(name, family._thumb() if name == "thumb" else family._viper())


def run(twins, shape, int16):
    twins.shape = shape
    heads, kv_heads, head_dim, window, sinks, group, tokens = shape
    g = SealedGeometry(1, heads, kv_heads, head_dim, window, sinks, group=group)
    # int16 values are multiples of 2^14 or of 2^-9, so that float16's both ends are reached.
    cache = SealedCache(g, kv_shift=[(6, 9)] if int16 else None, kernels=twins)
    noise = Noise()
    q_row = heads * head_dim
    for t in range(tokens):
        amplitude = AMPLITUDES[t % len(AMPLITUDES)] if t < tokens - 20 else 1000
        rows = [noise.row(count, amplitude) for count in (g.width, g.width, q_row, q_row)]
        if t % 7 == 3:
            rows[t % 4] = [0] * len(rows[t % 4])
        elif t % 7 == 5:
            rows[t % 4] = [amplitude] * len(rows[t % 4])
        elif t % 7 == 6:
            rows[t % 4] = [0 - amplitude] * len(rows[t % 4])
        if not int16 and t < 34:
            # A block of the least, one of the greatest that keys and values can be.
            factor = 2.0**-20 if t < 17 else 127 * 65504 * 512 / 32767
            rows[:2] = [[x * factor for x in row] for row in rows[:2]]
        k, v, q, qs = [vector(row, int16, t & 1) for row in rows]
        cache.append(0, k, v)
        if t % 5 == 0 or t > tokens - 6:
            cache.attend(0, q, vector([0] * q_row, int16, t & 1), qs if sinks else None)
        cache.commit()
        if t == tokens - 7:
            cache.rollback(19)


if __name__ == "__main__":
    the_twins = Twins(load(sys.argv[1]))
    chosen = [SHAPES[int(n)] for n in sys.argv[2].split(",")] if len(sys.argv) > 2 else SHAPES
    for a_shape in chosen:
        run(the_twins, a_shape, False)
        run(the_twins, a_shape, True)
    print(the_twins.compared)
