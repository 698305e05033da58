"""What a fixed pool says when it refuses a call, and how a batch that was cut short is undone. Off every hot
path.

Transient (mpy_kv/transient.py), for the texts take memory. `pool` is the FixedPool, unchanged here.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, BadHandle, Locked, PoolFull

# fields: fixed
_TOP = const(0)
_MASK = const(1)
_STEP = const(2)
_BLOCKS = const(3)
_WASTE = const(4)
_LOCKS = const(5)
_WRAPS = const(6)
_FIRST = const(7)
# end of fields


def size(pool, size):
    """A size that no block of this pool has."""
    if type(size) is not int or size < 1:
        raise BadArgument("size must be 1..%d bytes, got %r" % (pool.block_bytes, size))
    raise PoolFull(
        "block_bytes %d is too small" % pool.block_bytes,
        size,
        pool.free_bytes(),
        pool.largest_free_bytes(),
        pinned=pool._meta[_LOCKS] * pool.block_bytes,
        unit="bytes",
    )


def align(pool, align):
    raise BadArgument("align must be a power of two, here at most %d; got %r" % (pool.align, align))


def full(pool, size, n=1):
    free = pool.free_bytes()
    what = "all %d blocks are in use" % pool.n_blocks
    if free:
        what = "%d of %d blocks are free, not %d" % (pool._meta[_TOP] - pool.n_blocks, pool.n_blocks, n)
    raise PoolFull(
        what,
        size * n,
        free,
        pool.largest_free_bytes(),
        pinned=pool._meta[_LOCKS] * pool.block_bytes,
        unit="bytes",
    )


def out(pool, n, out):
    raise BadArgument(
        "n must be a whole number from 1 up, and as many handles a list or array('i'); got n %r and %s"
        % (n, type(out).__name__)
    )


def owner(pool, name, value):
    raise BadArgument("%s must be 0..65535, got %r" % (name, value))


def handle(pool, handle):
    """One that is not of a block in use."""
    mask = pool._meta[_MASK]
    if type(handle) is int and 0 <= handle < 1 << 29 and handle & mask < pool.n_blocks:
        w = pool._word[handle & mask]
        if w < 0:
            w = -1 - w
        if (w & (8 * mask + 7)) == (handle & (8 * mask + 7)):
            raise BadHandle("handle %r is stale: its block was freed" % (handle,))
    raise BadHandle("handle %r is not of this pool of %d blocks" % (handle, pool.n_blocks))


def free(pool, one):
    """A handle that cannot be freed."""
    if type(one) is int and 0 <= one < 1 << 29:
        i = one & pool._meta[_MASK]
        if i < pool.n_blocks and pool._word[i] == one | 1 << 29:
            raise Locked("handle %r is locked: unlock it before freeing" % (one,))
    handle(pool, one)


def free_many(pool, handles, k):
    """handles[k] cannot be freed, or was there before."""
    if handles[k] in list(handles)[:k]:
        raise BadHandle("handle %r is there twice" % (handles[k],))
    free(pool, handles[k])


def half_taken(meta, word):
    """Undo take_blocks, whatever stopped it: what is in the stack is free."""
    for top in range(meta[_BLOCKS], meta[_TOP]):
        w = word[word[top]]
        if w >= 0:
            word[word[top]] = -1 - w


def half_given(meta, word, handles, n):
    """Undo give_blocks unless it was done, whatever stopped it. Its code for the first item that is no int,
    or 0.

    What it had begun to free is marked as free and not in the stack.
    """
    mask = meta[_MASK]
    code = back = 0
    for k in range(n):
        handle = handles[k]
        if type(handle) is not int:
            code = -2 - k
            break
        i = handle & mask
        following = handle + meta[_STEP]
        wrapped = following >> 29 != 0
        if wrapped:
            following -= (1 << 29) - 2 * meta[_STEP]
        if i < meta[_BLOCKS] and word[i] == -1 - following:
            if _listed(meta, word, i):
                meta[_FIRST + i] = 0
            else:
                word[i] = handle
                back += wrapped
    if meta[_WRAPS] < 0:
        meta[_WRAPS] = (-1 - meta[_WRAPS] - back) & 0x3FFFFFFF
    meta[_WASTE] = sum(meta[_FIRST:])
    return code


def _listed(meta, word, i):
    for top in range(meta[_BLOCKS], meta[_TOP]):
        if word[top] == i:
            return True
    return False
