"""Least recently used, as a doubly linked list in two arrays: O(1), allocates nothing.

`nxt` and `prv` have an entry a thing and one more for each list's anchor, which stands before the oldest and
after the newest: a list is a ring, empty where its anchor is its own neighbour. Recency is the order of the
list, not a clock. A thing is in one list at most; that it is in the one meant, the caller knows.
The transitions take ints and arrays only, so that a host may compile this very source.
"""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython


@micropython.native
def clear(nxt, prv, anchor):
    """Make the list empty."""
    nxt[anchor] = anchor
    prv[anchor] = anchor
    return 0


@micropython.native
def add_newest(nxt, prv, anchor, i):
    """Put i, in no list, at the newest end."""
    p = prv[anchor]
    prv[i] = p
    nxt[i] = anchor
    nxt[p] = i
    prv[anchor] = i
    return 0


@micropython.native
def add_oldest(nxt, prv, anchor, i):
    """Put i, in no list, at the oldest end: it goes next."""
    n = nxt[anchor]
    nxt[i] = n
    prv[i] = anchor
    prv[n] = i
    nxt[anchor] = i
    return 0


@micropython.native
def remove(nxt, prv, i):
    """Take i out of its list."""
    p = prv[i]
    n = nxt[i]
    nxt[p] = n
    prv[n] = p
    return 0


@micropython.native
def touch(nxt, prv, anchor, i):
    """Make i, of this list, its newest."""
    p = prv[i]
    n = nxt[i]
    nxt[p] = n
    prv[n] = p
    p = prv[anchor]
    prv[i] = p
    nxt[i] = anchor
    nxt[p] = i
    prv[anchor] = i
    return 0
