"""2^-x, from integers only, so that every interpreter holds the same bits.

Made once at import: 512 bytes, never written again.
"""

from array import array

FRACTION = 256  # entries: x = i / 256
ONE = 4096  # 2^0 in the table's unit: 12 bits and one value of 13


def _exp2_table():
    step = 1070838486  # round(2^30 * 2^(-1/256)); the recurrence drifts by < 2^-20 over 256 steps
    table = array("H", bytes(2 * FRACTION))
    x = 1 << 30
    for i in range(FRACTION):
        table[i] = (x + (1 << 17)) >> 18
        x = (x * step + (1 << 29)) >> 30
    return table


EXP2 = _exp2_table()


def log_scale(head_dim):
    """log2(e) / sqrt(head_dim) as (mantissa of 15 bits, e): mantissa * 2^-e."""
    # isqrt of head_dim * 2^60, by Newton from above: enough bits that every head_dim rounds right
    n = head_dim << 60
    root = 1 << ((n.bit_length() if hasattr(n, "bit_length") else _bits(n)) // 2 + 1)
    while True:
        better = (root + n // root) >> 1
        if better >= root:
            break
        root = better
    x = (1549082005 << 50) // root  # log2(e) * 2^30, over root = sqrt(head_dim) * 2^30
    e = 50
    while x >= 1 << 16:
        x >>= 1
        e -= 1
    x = (x + 1) >> 1
    e -= 1
    if x == 1 << 15:
        x >>= 1
        e -= 1
    return x, e


def _bits(n):
    bits = 0
    while n:
        n >>= 1
        bits += 1
    return bits
