"""Start-up check of int4: small caches whose blocks have been sealed, overwritten and re-opened.

Compares every byte of the buffer and every output. Most tokens are only stored: plain attention is slow.
"""

from array import array

from . import SealedCache, SealedGeometry

# heads, kv_heads, head_dim, window, sinks, group, int16, tokens before those that attend, tokens then rolled
# back. The first sees a ring of two sealed blocks that has wrapped, and re-opens the newer one; the second
# has two slices, each of a word of nibbles and a half.
SHAPES = ((4, 2, 4, 37, 2, None, True, 66, 5), (1, 1, 24, 31, 0, 12, False, 32, 0))
_ATTENDED = 3


def drive(kernels, shape, codec, noise):
    """(buffer, outputs) for one shape."""
    heads, kv_heads, head_dim, window, sinks, group, int16, before, back = shape
    g = SealedGeometry(1, heads, kv_heads, head_dim, window, sinks, group=group)
    cache = SealedCache(g, kv_shift=[(6, 9)] if int16 else None, kernels=kernels)
    kind = "h" if int16 else "f"
    out = array(kind, [0] * (heads * head_dim))
    outs = []
    for t in range(before + (2 * _ATTENDED if back else _ATTENDED)):
        amplitude = (32767, 900, 3)[t % 3]
        vectors = [
            noise(g.width, t + 1, 0 if t == 4 else amplitude),
            noise(g.width, t + 77, amplitude),
            noise(heads * head_dim, t + 99, 1200),
        ]
        if not int16:
            vectors = [[i / 512 for i in x] for x in vectors]
        k, v, q = [array(kind, x) for x in vectors]
        if t == before + _ATTENDED:
            cache.rollback(back)
        cache.append(0, k, v)
        if t >= before:
            cache.attend(0, q, out)
            outs.append(bytes(out))
        cache.commit()
    return cache.buffer, outs
