"""2^-x and 1/x, from integers only, so that every interpreter holds the same bits.

Made once at import: 780 bytes, never written again.
"""

from array import array

FRACTION = 256  # entries: x = i / 256
ONE = 4096  # 2^0 in the table's unit: 12 bits and one value of 13


# Sums of a batch's small weights where they are rounded at all: see weights() in plain.py.
LEAST_SUM = 131
MOST_SUM = 259


def _tables():
    step = 1070838486  # round(2^30 * 2^(-1/256)); the recurrence drifts by < 2^-20 over 256 steps
    table = array("H", bytes(2 * (FRACTION + MOST_SUM + 1 - LEAST_SUM)))
    x = 1 << 30
    for i in range(FRACTION):
        table[i] = (x + (1 << 17)) >> 18
        x = (x * step + (1 << 29)) >> 30
    for s in range(LEAST_SUM, MOST_SUM + 1):
        table[FRACTION + s - LEAST_SUM] = ((1 << 22) // s + 1) >> 1
    return table


TABLES = _tables()  # 2^-(i / 256) in units of 1 / ONE, then 2^21 / sum: one array, one argument

del _tables
