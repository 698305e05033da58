"""Start-up check: a kernel set against the plain twin, on vectors that catch what went wrong elsewhere.

It makes caches, so it stands above them; the families of kernels (kernels/kernel_registry.py) are told its
name and know no more of it. float16 has more of it in selfcheck_float16.py, int4 what it drives in
int4_blocks/selfcheck.py.

Signed bytes read as unsigned, a lost offset, lanes that overflow at same-sign extremes, a borrow not
taken back, ring runs, sinks with a query of their own, several slices, widths that are no multiple of
eight, float32 and int16. Runs the whole of a small cache and compares every byte of its buffer and
output. Allocates a few KB, once.
"""

import gc
from array import array

from .cache import KVCache
from .errors import OutOfRange
from .factory import cache_for, geometry_for
from .geometry import CODECS, Geometry
from .transient import load_module

# Bytes of garbage that a check may leave before it is collected. With more of it what the collector takes for
# in use, by a stale word on the stack, would lie where a program's largest object has to go.
_LITTER = 32768

# layers, heads, kv_heads, head_dim, window, sinks, group, int16
_SHAPES = (
    (1, 4, 2, 8, 11, 2, None, True),
    (1, 2, 1, 12, 9, 0, 4, False),
    (1, 2, 2, 6, 3, 1, None, False),
    (1, 1, 1, 1, 25, 0, None, False),
)
# A window of more tokens is full of weights of like size, and attended at the end.
_WIDE = 24


def noise(count, seed, amplitude):
    """Deterministic small ints, extremes among them."""
    x = seed * 2654435 + 12345 & 0xFFFFFF
    values = []
    for i in range(count):
        x = (x * 73 + 5501) & 0xFFFFFF
        v = (x >> 6) % (2 * amplitude + 1) - amplitude
        if x & 31 == 1:
            v = amplitude
        elif x & 31 == 2:
            v = 0 - amplitude
        values.append(v)
    return values


def littering(check, *arguments):
    """check(*arguments), which leaves garbage alone: a program that has it collected often, so that what
    stays lies together, is spared that meanwhile."""
    usual = gc.threshold() if hasattr(gc, "mem_free") else -1  # CPython's is another
    if not 0 <= usual < _LITTER:
        return check(*arguments)
    gc.collect()
    gc.threshold(_LITTER)
    try:
        return check(*arguments)
    finally:
        gc.threshold(usual)
        gc.collect()


def _drive(kernels, shape, codec, noise):
    """(buffer, outputs) after a ring has wrapped, for one shape."""
    layers, heads, kv_heads, head_dim, window, sinks, group, int16 = shape
    if not CODECS[codec][2]:
        group = None  # without scales there are no groups
    g = Geometry(layers, heads, kv_heads, head_dim, window, sinks, codec=codec, group=group)
    cache = KVCache(g, kv_shift=[(6, 9)] if int16 else None, kernels=kernels)
    out = array("h" if int16 else "f", [0] * (heads * head_dim))
    outs = []
    for t in range(window + sinks + 4):
        amplitude = 900 if window > _WIDE else (32767, 900, 3)[t % 3]
        vectors = [
            noise(g.width, t + 1, 0 if t == 4 else amplitude),
            noise(g.width, t + 77, amplitude),
            noise(heads * head_dim, t + 99, 1200),
            noise(heads * head_dim, t + 99, 1100),
        ]
        if int16:
            k, v, q, qs = [array("h", x) for x in vectors]
        else:
            k, v, q, qs = [array("f", [i / 512 for i in x]) for x in vectors]
        cache.append(0, k, v)
        if t > window + 1 or window < _WIDE:
            cache.attend(0, q, out, qs if sinks else None)
        cache.commit()
        outs.append(bytes(out))
    return cache.buffer, outs


def takes(kernels, value, codec):
    """Which of key, value and query with such a number are taken; all must be refused."""
    cache = cache_for(geometry_for(codec, 1, 1, 1, 4, window=1, sinks=0), kernels=kernels)
    good = array("f", [1, 2, 3, 4])
    bad = array("f", [1, value, 3, 4])
    taken = []
    for name, k, v in (("key", bad, good), ("value", good, bad)):
        try:
            cache.append(0, k, v)
            taken.append(name)
        except OutOfRange:
            pass
    cache.append(0, good, good)
    try:
        cache.attend(0, bad, array("f", [0] * 4))
        taken.append("query")
    except OutOfRange:
        pass
    return taken


def compare(reference, candidate):
    """"" if the sets agree, else where they first differ."""
    codec = candidate.codec
    shapes, drive = _SHAPES, _drive
    if codec == "int4":
        own = load_module("mpy_kv.int4_blocks.selfcheck")
        shapes, drive = own.SHAPES, own.drive
    # First, as this loads what stays.
    for text in ("inf", "-inf", "nan"):
        if takes(candidate, float(text), codec):
            return "the refusal of %s" % text
    if codec == "int4":  # checked late: what it leaves would lie above all that stays
        wrong = _driven(reference, candidate, shapes, drive)
    else:
        wrong = littering(_driven, reference, candidate, shapes, drive)
    if not wrong and codec == "float16":
        wrong = littering(load_module("mpy_kv.selfcheck_float16").compare, reference, candidate)
    return wrong


def _driven(reference, candidate, shapes, drive):
    """Where the sets first differ after one of the shapes, or ""."""
    for n, shape in enumerate(shapes):
        want, want_out = drive(reference, shape, candidate.codec, noise)
        got, got_out = drive(candidate, shape, candidate.codec, noise)
        if want != got:
            at = 0
            while want[at] == got[at]:
                at += 1
            return "byte %d of the buffer, check %d" % (at, n)
        if want_out != got_out:
            return "attention output, check %d" % n
    return ""
