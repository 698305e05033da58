"""What is done for each character of a text, on every interpreter: the definition of viper.py.

`w` gives the bytes of an image's tables by index. Nothing here allocates; a frame of more than 11 words
would.
"""

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

_NONE = const(0xFFFF)

# fields: encoding
_E_ORDER = const(0)
_E_RANKS = const(1)
_E_OFFSETS = const(2)
_E_TEXT = const(3)
_E_TOKENS = const(4)
_E_JOIN = const(5)
_E_LEFT = const(6)
_E_RIGHT = const(7)
_E_RANK = const(8)
_E_AT = const(9)
_E_SIZE = const(10)
_E_NEXT = const(11)
_E_MORE = const(12)
_E_LOW = const(13)
_E_HIGH = const(14)
_E_STEP = const(15)
_E_SAME = const(16)
_E_HERE = const(17)
_E_LONG = const(18)
# end of fields


def search(w, text, a):
    """Where in the order of tokens by their text the first one stands that is what is sought, -1 if none is;
    its rank, or _NONE, to a[_E_RANK].

    Sought is a piece of `text`, or what two tokens join to; `text` is then `w`. The order has what begins
    with the left one behind it, mostly very little: steps that double find where it ends.
    """
    a[_E_LOW] = a[_E_STEP] = a[_E_SAME] = 0
    a[_E_HIGH] = a[_E_TOKENS]
    if a[_E_JOIN]:
        a[_E_LOW] = a[_E_LEFT] + 1
        a[_E_STEP] = 1
        _read(w, a, a[_E_RIGHT])
        a[_E_NEXT] = a[_E_HERE]
        a[_E_MORE] = a[_E_LONG]
        _read(w, a, a[_E_LEFT])
        a[_E_AT] = a[_E_HERE]
        a[_E_SIZE] = a[_E_LONG]
    while a[_E_LOW] < a[_E_HIGH]:
        _narrow(w, text, a)
    a[_E_RANK] = _NONE
    if a[_E_SAME] == 0:
        return -1
    a[_E_RANK] = _u16(w, a[_E_RANKS] + 2 * _u16(w, a[_E_ORDER] + 2 * a[_E_LOW]))
    return a[_E_LOW]


def _narrow(w, text, a):
    """One token compared, so that fewer are left between LOW and HIGH."""
    step = a[_E_STEP]
    at = a[_E_LOW] + step - 1
    if step == 0 or at >= a[_E_HIGH]:
        step = 0
        at = (a[_E_LOW] + a[_E_HIGH]) >> 1
    _read(w, a, at)
    order = _compare(w, text, a, a[_E_AT], a[_E_SIZE])
    if order == 0:
        order = _compare(w, text, a, a[_E_NEXT], a[_E_MORE]) or a[_E_LONG]
    if order < 0:
        a[_E_LOW] = at + 1
        a[_E_STEP] = step << 1
    else:
        a[_E_HIGH] = at
        a[_E_STEP] = 0
        a[_E_SAME] = order == 0


def _compare(w, text, a, at, n):
    """What is left of the token that was read against n bytes of `text`: below 0, above, or 0 where it begins
    with them; they are then done with."""
    here = a[_E_HERE]
    if n > a[_E_LONG]:
        n = a[_E_LONG] + 1
    while n:
        n -= 1
        if here == a[_E_HERE] + a[_E_LONG]:
            return -1
        if w[here] != text[at]:
            return w[here] - text[at]
        here += 1
        at += 1
    a[_E_LONG] -= here - a[_E_HERE]
    a[_E_HERE] = here
    return 0


def _read(w, a, place):
    """Where the text of the token at a place begins and how long it is, to HERE and LONG."""
    at = a[_E_OFFSETS] + 4 * _u16(w, a[_E_ORDER] + 2 * place)
    start = w[at] | w[at + 1] << 8 | w[at + 2] << 16
    a[_E_HERE] = a[_E_TEXT] + start
    a[_E_LONG] = (w[at + 4] | w[at + 5] << 8 | w[at + 6] << 16) - start


def _u16(w, at):
    return w[at] | w[at + 1] << 8


def update(best, slots, i, rank):
    """Give slot i another rank, and to the tree above it what follows."""
    best[i] = rank
    base = 0
    while slots > 1:
        left = base + i - (i & 1)
        rank = best[left]
        if i | 1 < slots and best[left + 1] < rank:
            rank = best[left + 1]
        base += slots
        slots = (slots + 1) >> 1
        i >>= 1
        if best[base + i] == rank:
            return
        best[base + i] = rank


def first(best, slots):
    """The first slot of the lowest rank, -1 if none has one."""
    base = level = 0
    n = slots
    while n > 1:
        base += n
        n = (n + 1) >> 1
        level += 1
    rank = best[base]
    if rank == _NONE:
        return -1
    i = 0
    while level:
        level -= 1
        base -= (slots + (1 << level) - 1) >> level
        i <<= 1
        if best[base + i] != rank:
            i += 1
    return i
