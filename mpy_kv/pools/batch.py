"""Many blocks of a fixed pool at once. Loaded when first called for, and kept: a lone sequence needs none.

The arrays and what a handle is: see fixed.py.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..transient import load_module

# fields: fixed
_TOP = const(0)
_MASK = const(1)
_STEP = const(2)
_BLOCKS = const(3)
_WASTE = const(4)
_WRAPS = const(6)
_FIRST = const(7)
# end of fields


@micropython.native
def take_blocks(meta, word, n, out):
    """n blocks or none: their handles into out[0:n]. 0, or EMPTY."""
    top = meta[_TOP]
    if top - n < meta[_BLOCKS]:
        return -1
    for k in range(n):
        top -= 1
        i = word[top]
        word[i] = out[k] = -1 - word[i]
    meta[_TOP] = top
    return 0


@micropython.native
def give_blocks(meta, word, handles, n):
    """Free handles[0:n], all or none. 0, or REFUSED - k where handles[k] is refused: also one that is
    there twice."""
    mask = meta[_MASK]
    last = 536870911 - meta[_STEP]
    free = -1 - meta[_STEP]
    top = meta[_TOP]
    wraps = 0
    done = n
    for k in range(n):
        handle = handles[k]
        i = handle & mask
        if word[i] != handle:
            done = k
            break
        # From now on its handle is refused.
        if handle > last:
            if handle > 536870911:
                done = k
                break
            word[i] = free - handle + (536870912 - 2 * meta[_STEP])
            wraps += 1
        else:
            word[i] = free - handle
        word[top + k] = i
    if done < n:
        for k in range(done):
            word[handles[k] & mask] = handles[k]
        return -2 - done
    if wraps:
        # Below 0 while it is open whether the blocks will be in the stack: then half_given sets it right.
        meta[_WRAPS] = -1 - ((meta[_WRAPS] + wraps) & 0x3FFFFFFF)
        meta[_TOP] = top + n
        meta[_WRAPS] = -1 - meta[_WRAPS]
    else:
        meta[_TOP] = top + n
    if meta[_WASTE]:
        for k in range(n):
            i = handles[k] & mask
            meta[_WASTE] -= meta[_FIRST + i]
            meta[_FIRST + i] = 0
    return 0


@micropython.native
def take(meta, word, n, out):
    """take_blocks, undone if an exception stops it."""
    try:
        return take_blocks(meta, word, n, out)
    except BaseException as error:
        load_module("mpy_kv.pools.raise_errors").half_taken(meta, word)
        raise error


@micropython.native
def give(meta, word, handles, n):
    """give_blocks, undone if an exception stops it; its code for an item that is no int."""
    try:
        return give_blocks(meta, word, handles, n)
    except BaseException as error:
        k = load_module("mpy_kv.pools.raise_errors").half_given(meta, word, handles, n)
        if k < 0:
            return k
        raise error


@micropython.native
def check_out(pool, n, out):
    """Refuse unless n is a number of blocks, and any handle can be written to out[0:n] and read back."""
    if type(n) is int and n > 0:
        try:
            x = out[n - 1]
            out[n - 1] = 0x1FFFFFFF
            y = out[n - 1]
            out[n - 1] = x
            if type(y) is int and y == 0x1FFFFFFF:
                return
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            pass
    load_module("mpy_kv.pools.raise_errors").out(pool, n, out)
