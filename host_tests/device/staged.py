"""Arrays that shrink, or that lie over each other, while a prefill is staged; and int16 views.

usage: staged.py KERNELS    prints {case: None or what is wrong} as JSON; the same list under CPython
"""

import json
import sys
from array import array

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import BadArgument
from mpy_kv.sequence import addressof

N = 3  # tokens of a prefill
KV, Q = 8, 16  # values of a row

# (argument, where `out` begins after it, what must come of it): see views()
VIEWS = (
    ("k", 0, "refused"),
    ("k", N * KV - 1, "refused"),
    ("k", N * KV, "right"),
    ("v", 1 - N * Q, "refused"),
    ("v", 0 - N * Q, "right"),
    ("q", 0, "right"),
    ("q", -Q, "right"),
    ("q", 1, "refused"),
    ("q", N * Q - 1, "refused"),
    ("q", N * Q, "right"),
    ("qs", 0, "right"),
    ("qs", Q, "refused"),
)


def floats(count, seed):
    return array("f", [(i * 7 + seed * 5) % 19 - 9 for i in range(count)])


def cache_of(kernel_set):
    """Two layers, a wrapped window, 9 tokens."""
    cache = KVCache(Geometry(2, 4, 2, 4, window=6, sinks=2), kernels=kernel_set)
    for t in range(9):
        for layer in (0, 1):
            cache.append(layer, floats(KV, t), floats(KV, t + 1))
        cache.commit()
    return cache


def state(cache):
    return [cache.length, cache.visible(), cache.check(), cache.stats(), bytes(cache.buffer)]


def refused(call, text):
    """None, or what is wrong with how `call` is refused."""
    try:
        call()
    except BadArgument as error:
        return None if text in str(error) else str(error)
    return "taken"


def finish(cache, attended):
    """A sound prefill of the step: the bytes and the outputs."""
    seen = []
    for layer in (0, 1):
        cache.prefill(layer, floats(N * KV, layer), floats(N * KV, layer + 2), N)
        if attended:
            out = floats(N * Q, 0)
            cache.attend(layer, floats(N * Q, 4), out, floats(N * Q, 5), N)
            seen += list(out)
    cache.commit()
    return seen, cache.visible(), [cache.read(1, "v", p) for p in cache.visible()]


def shrunk(kernel_set, attended, which):
    """One of the arrays of layer 1 loses a value, and then all but one row."""
    for left in (N * KV - 1, KV):
        cache = cache_of(kernel_set)
        arrays = [floats(N * KV, 1), floats(N * KV, 2)]
        cache.prefill(0, floats(N * KV, 3), floats(N * KV, 4), N)
        cache.prefill(1, arrays[0], arrays[1], N)
        arrays[which][:] = arrays[which][:left]
        before = state(cache)
        said = "%d in all" % (N * KV)
        if attended:
            wrong = refused(lambda: cache.attend(1, floats(N * Q, 1), floats(N * Q, 1), None, N), said)
        else:
            wrong = refused(cache.commit, said)
        if wrong is None and state(cache) != before:
            wrong = "the state has changed"
        if wrong is None and finish(cache, attended) != finish(cache_of(kernel_set), attended):
            wrong = "another prefill gives something else"
        if wrong:
            return wrong
    return None


def staged_as_out(kernel_set, which):
    """`out` is the very array that was staged."""
    cache = cache_of(kernel_set)
    arrays = [floats(N * Q, 1), floats(N * Q, 2)]
    cache.prefill(0, arrays[0], arrays[1], N)
    before = state(cache), bytes(arrays[which])
    wrong = refused(lambda: cache.attend(0, floats(N * Q, 3), arrays[which], None, N), "out overlaps")
    if wrong is None and (state(cache), bytes(arrays[which])) != before:
        wrong = "something has changed"
    return wrong


def staged_elsewhere(kernel_set, which, n):
    """`out` is an array staged for the other layer; once that is stored it may be."""
    cache = cache_of(kernel_set)
    arrays = [floats(n * Q, 1), floats(n * Q, 2)]
    cache.prefill(1, arrays[0], arrays[1], n)
    if n == 1:
        cache.append(0, floats(KV, 3), floats(KV, 4))
    else:
        cache.prefill(0, floats(n * KV, 3), floats(n * KV, 4), n)
    before = state(cache), bytes(arrays[which])
    wrong = refused(lambda: cache.attend(0, floats(n * Q, 3), arrays[which], None, n), "out overlaps")
    if wrong is None and (state(cache), bytes(arrays[which])) != before:
        wrong = "something has changed"
    cache.attend(1, floats(n * Q, 3), floats(n * Q, 0), None, n)
    cache.attend(0, floats(n * Q, 3), arrays[which], None, n)
    cache.commit()
    return wrong


def views(kernel_set, name, at, view=memoryview, other=None):
    """What comes of an `out` that begins `at` values after argument `name`, both parts of view(array);
    other: makes the argument of its part."""
    size = N * (KV if name in "kv" else Q)
    memory = view(floats(4 * N * Q, 1))
    start = 2 * N * Q
    given = {"k": floats(N * KV, 1), "v": floats(N * KV, 2), "q": floats(N * Q, 3), "qs": floats(N * Q, 4)}
    alone = bytes(memory)
    # What it must give: the same values, nothing in common.
    given[name][:] = array("f", [memory[start + i] for i in range(size)])
    want = floats(N * Q, 0)
    cache = cache_of(kernel_set)
    cache.prefill(0, given["k"], given["v"], N)
    cache.attend(0, given["q"], want, given["qs"], N)

    given[name] = memory[start : start + size]
    if other:
        given[name] = other(given[name])
    out = memory[start + at : start + at + N * Q]
    cache = cache_of(kernel_set)
    cache.prefill(0, given["k"], given["v"], N)
    before = state(cache)
    try:
        cache.attend(0, given["q"], out, given["qs"], N)
    except BadArgument as error:
        if "out overlaps" not in str(error):
            return str(error)
        return "refused" if state(cache) == before and bytes(memory) == alone else "something has changed"
    return "right" if bytes(out) == bytes(want) else "wrong"


def int16_views(kernel_set):
    """Views of int16 are taken, give what arrays give, and are left as they were."""
    found = []
    for wrap in (lambda x: x, memoryview):
        cache = KVCache(Geometry(1, 4, 2, 4, window=6, sinks=0), kv_shift=8, kernels=kernel_set)
        counts = ((90, 8), (50, 16), (1, 16))
        k, q, out = [wrap(array("h", [s * i - 300 for i in range(n)])) for s, n in counts]
        cache.append(0, k, k)
        cache.attend(0, q, out)
        cache.commit()
        found.append([list(k), list(q), list(out), bytes(cache.buffer[: cache.geometry.layer_bytes])])
    return None if found[0] == found[1] else "%r" % (found,)


def complaints(kernel_set):
    found = {"int16 views": int16_views(kernel_set)}
    for which in (0, 1):
        for attended in (True, False):
            name = "%s shrinks before %s" % ("kv"[which], "attend" if attended else "commit")
            found[name] = shrunk(kernel_set, attended, which)
        found["out is %s" % "kv"[which]] = staged_as_out(kernel_set, which)
        for n in (1, N):
            name = "out is %s of the other layer, %d tokens" % ("kv"[which], n)
            found[name] = staged_elsewhere(kernel_set, which, n)
    if addressof(bytearray(1)):
        for name, at, want in VIEWS:
            got = views(kernel_set, name, at)
            found["out at %s + %d" % (name, at)] = None if got == want else got
    return found


if __name__ == "__main__":
    print(json.dumps(complaints(kernels.get(sys.argv[1]))))
