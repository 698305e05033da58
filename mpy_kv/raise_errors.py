"""What KVCache says when it refuses a call: one function a reason, each raises. Off every hot path.

Transient (mpy_kv/transient.py), for the texts take memory. `cache` is the KVCache, unchanged here.
"""

try:
    from micropython import const
except ImportError:
    from .cpython import const

from .errors import BadArgument, CacheFull, OutOfRange, StepError

# fields: mark
_NOTHING = const(0)
_STORED = const(1)
_STAGED = const(2)
_CUT = const(3)
# end of fields


def layer(cache, layer):
    raise BadArgument("layer must be 0..%d, got %r" % (cache.geometry.layers - 1, layer))


def place(cache, which, position):
    if which not in ("k", "v"):
        raise BadArgument("which must be 'k' or 'v', got %r" % (which,))
    raise BadArgument("position must be a whole number, at least 0, got %r" % (position,))


def array(cache, x, name):
    """What Sequence._accept did not take."""
    int16 = cache.attention[0].q_shift is not None
    kind = "int16 ('h'), as kv_shift was given" if int16 else "float32 ('f'); give kv_shift for int16"
    got = type(x).__name__
    try:
        view = memoryview(x)
        size = len(bytes(view[0:1]))
    except (TypeError, ValueError, IndexError, OverflowError, NotImplementedError):
        view, size = None, 0
    if name == "out" and getattr(view, "readonly", False):
        raise BadArgument("out must be writable, got a read-only %s" % got)
    if size:
        got += " of %d-byte items" % size
        if hasattr(view, "format"):
            contiguous = "" if view.c_contiguous else ", not contiguous"
            got += " (format %r, shape %r%s)" % (view.format, view.shape, contiguous)
    raise BadArgument("%s must be a non-empty array of %s; got %s" % (name, kind, got))


def n(cache, n):
    raise BadArgument("n must be a positive whole number of tokens, got %r" % (n,))


def row(cache, i):
    raise BadArgument("i must be a whole number, the step's token counted from 0, got %r" % (i,))


def length(cache, k, v, n):
    width = cache.geometry.width
    raise BadArgument(
        "k and v need kv_heads*head_dim = %d values a token, %d in all; got %d and %d"
        % (width, width * n, k, v)
    )


def rows(cache, q, out, qs, want):
    """want: values of all the step's rows."""
    raise BadArgument(
        "q, out and q_sinks need heads*head_dim = %d values a token, %d in all; got %d, %d and %d"
        % (cache.geometry.heads * cache.geometry.head_dim, want, len(q), len(out), len(qs))
    )


def overlap(cache):
    raise BadArgument("out overlaps k, v, q or q_sinks of the prefill: rows not yet read would be lost")


def value(cache, name, layer, i):
    """name: "q", or what encode() returned of k and v."""
    name = {-1: "k", -2: "v"}.get(name, name)
    g = cache.layer_geometry(layer)
    holder = "a float16 scale" if g.groups else g.codec
    raise OutOfRange(
        "%s of layer %d, token %d: not finite, or beyond what %s can hold"
        % (name, layer, cache.length + i, holder)
    )


def rollback(cache, n):
    raise BadArgument("rollback of %r tokens: must be 0..%d, the length" % (n, cache.length))


def seek(cache, position):
    raise BadArgument(
        "position %r must be a whole number from length %d to 2^29" % (position, cache.length)
    )


def seek_early(cache):
    raise StepError(
        "seek needs a window and all %d sinks stored, length is %d" % (cache.geometry.sinks, cache.length)
    )


def full(cache, n):
    capacity = cache.geometry.capacity
    raise CacheFull(
        "capacity %d reached: raise capacity, roll back, or use a window" % capacity,
        n,
        capacity - cache.length,
    )


def attend(cache, layer, mark, n, pending):
    """pending: tokens of the step; mark: of the layer."""
    if pending == 0 or mark == _NOTHING:
        raise StepError("attend(%d) before append or prefill of that layer" % layer)
    if n != pending:
        raise StepError("attend with n = %r, but the step has n = %d tokens" % (n, pending))
    if mark == _CUT:
        raise StepError("attend(%d) was cut short: prefill that layer again" % layer)
    raise StepError("attend(%d) a second time: a prefill is stored and attended once" % layer)


def commit(cache, layer, mark, n):
    """layer: the first of those that are not ready; mark: of all; n: tokens of the step."""
    ready = len([m for m in mark if m == _STORED or m == _STAGED]) if n else 0
    raise StepError(
        "commit with %d of %d layers stored; layer %d is %s"
        % (
            ready,
            cache.geometry.layers,
            layer,
            "cut short: prefill it again" if n and mark[layer] == _CUT else "missing",
        )
    )
