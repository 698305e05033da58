"""Where the instructions of a token go: what the kernels of each part take, with the calls of them.

Runs on the emulated board alone. A kernel is counted where it is called, so that the token and its bits are
those of any other; what no kernel takes is the interpreter's, and the app's between them.
"""

import micropython
from exact import begin, end, overhead

# Part -> kernels, of the cache and of the app.
OF_CACHE = {
    "store K, V": ("encode",),
    "query and scales": ("query", "scales"),
    "QK": ("qk",),
    "softmax": ("score", "weights"),
    "AV": ("av", "emit"),
}
OF_APP = {
    "matrices": ("matvec",),
    "norms, quantising": ("norm", "quant", "widen"),
    "RoPE, SwiGLU, add": ("rope_table", "rotate", "narrow", "swiglu", "add", "embed"),
    "sampling": ("softmax", "pick", "argmax"),
}

_ABSENT = object()


def _counted(f, sums, at):
    """f of one to four arguments, which adds its instructions to sums[at]."""
    go, stop, absent, more = begin, end, _ABSENT, overhead

    @micropython.native
    def call(a, b=_ABSENT, c=_ABSENT, d=_ABSENT):
        if d is not absent:
            start = go()
            found = f(a, b, c, d)
            n = stop(start)
        elif c is not absent:
            start = go()
            found = f(a, b, c)
            n = stop(start)
        elif b is not absent:
            start = go()
            found = f(a, b)
            n = stop(start)
        else:
            start = go()
            found = f(a)
            n = stop(start)
        sums[at] += n - more
        return found

    return call


class _Counted:
    """A kernel set whose functions count themselves, and so are called by name."""

    caller = None

    def __init__(self, kernels, parts, sums):
        self.name = kernels.name
        for part in parts:
            for key in parts[part]:
                setattr(self, key, _counted(getattr(kernels, key), sums, part))


def count(bench, cache_kernels, app_kernels):
    """{part: instructions} of the next token of a tokens.Bench, which stays the next one."""
    sums = {}
    bench.use((_Counted(cache_kernels, OF_CACHE, sums), _Counted(app_kernels, OF_APP, sums)))
    for _ in range(2):  # the first finds the interpreter's cache of lookups cold
        for parts in (OF_CACHE, OF_APP):
            for part in parts:
                sums[part] = 0
        bench.tell_again()
    return sums
