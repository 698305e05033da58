"""Start-up check: a kernel set against the plain twin, on vectors that catch what went wrong elsewhere.

It makes caches, so it stands above them; the families of kernels (kernels/kernel_registry.py) are told its
name and know no more of it. float16 has more of it in selfcheck_float16.py, int4 what it drives in
int4_blocks/selfcheck.py.

Signed bytes read as unsigned, a lost offset, lanes that overflow at same-sign extremes, a borrow not
taken back, ring runs, sinks with a query of their own, several slices, widths that are no multiple of
eight, float32 and int16. Runs the whole of a small cache and compares every byte of its buffer and
output. Allocates a few KB, once.

What the plain twin makes of each vector is the same everywhere, so its checksums stand here, and known()
spares a board nine tenths of the work: plain integers in bytecode. A set whose checksums are others is
compared with the twin, which says where it differs.
"""

import gc
from array import array
from binascii import crc32

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
    # Rows of more than eight words, so that kernels go round, and dots that are shifted.
    (1, 1, 1, 132, 2, 0, None, True),
)
# A window of more tokens is full of weights of like size, and attended at the end.
_WIDE = 24

# answers: python tools/answers.py --write
_ANSWERS = {
    "float16": (0x5EFE2CFE, 0x397609E8, 0x46C92717, 0x3B666998, 0x6AFA7104, 0x9A4A759E, 0x2E2FD744,
    0xC031596D),
    "int8": (0xBB69FCEA, 0x1F77C4A5, 0xB001C8B0, 0x1FE243AC, 0x80322FF4),
    "int8-int4": (0x01F98321, 0x07D23343, 0x129E292F, 0xAC67D6FE, 0x4C9F37BF),
    "int4": (0x05A2A493, 0x7C79AA7F),
    "sparse": (0xC1308F7F, 0x8207B0E7, 0x561DA59A, 0xA01E212F, 0x6A37919D),
}
# end of answers


def next_of(x):
    """(73 x + 5501) mod 2^24, in small ints on a 32-bit board: the uppermost bit goes through as it is."""
    return ((x & 0x7FFFFF) * 73 + 5501 ^ x & 0x800000) & 0xFFFFFF


def noise(count, seed, amplitude):
    """Deterministic small ints, extremes among them."""
    x = seed * 2654435 + 12345 & 0xFFFFFF
    values = [0] * count
    for i in range(count):
        x = next_of(x)
        v = (x >> 6) % (2 * amplitude + 1) - amplitude
        if x & 31 == 1:
            v = amplitude
        elif x & 31 == 2:
            v = 0 - amplitude
        values[i] = v
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
    # First, as this loads what stays.
    text = _not_refused(candidate)
    if text:
        return "the refusal of %s" % text
    if codec == "int4":  # checked late: what it leaves would lie above all that stays
        wrong = _driven(reference, candidate)
    else:
        wrong = littering(_driven, reference, candidate)
    if not wrong and codec == "float16":
        wrong = littering(load_module("mpy_kv.selfcheck_float16").compare, reference, candidate)
    return wrong


def known(candidate):
    """Whether the set makes of every vector what the plain twin is known to make. If not, compare()."""
    codec = candidate.codec
    if codec not in _ANSWERS or _not_refused(candidate):
        return False
    if codec == "float16" and load_module("mpy_kv.selfcheck_float16").not_refused(candidate):
        return False
    return _answered(candidate) if codec == "int4" else littering(_answered, candidate)


def _answered(candidate):
    """Up to the first that is another: what follows could be beyond what kernels take."""
    for found, answer in zip(checksums(candidate), _ANSWERS[candidate.codec]):
        if found != answer:
            return False
    return True


def checksums(kernels):
    """Yields one of each vector's buffer and outputs."""
    codec = kernels.codec
    shapes, drive = _driving(codec)
    for shape in shapes:
        yield _checksum(*drive(kernels, shape, codec, noise))
    if codec == "float16":
        more = load_module("mpy_kv.selfcheck_float16")
        for shift in more.SHIFTS:
            yield _checksum(*more.ends(kernels, shift))


def _checksum(buffer, outputs):
    found = crc32(buffer)
    for out in outputs:
        found = crc32(out, found)
    return found & 0xFFFFFFFF


def _not_refused(kernels):
    """Which number is taken that must not be, as text; or ""."""
    for text in ("inf", "-inf", "nan"):
        if takes(kernels, float(text), kernels.codec):
            return text
    return ""


def _driving(codec):
    """The shapes of an element type, and what runs one."""
    if codec != "int4":
        return _SHAPES, _drive
    own = load_module("mpy_kv.int4_blocks.selfcheck")
    return own.SHAPES, own.drive


def _driven(reference, candidate):
    """Where the sets first differ after one of the shapes, or ""."""
    shapes, drive = _driving(candidate.codec)
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
