"""Doubly linked lists in two arrays, the least recent first: O(1), allocates nothing.

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
def touch(nxt, prv, anchor, i):
    """Take i out of its list and put it at the newest end of the list of `anchor`, its own or another; an
    entry as anchor: just before it."""
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
