"""2^-x and 1/x as integers, in an array of 780 bytes that is never written again."""

from array import array
from binascii import a2b_base64

from ..transient import load_module

FRACTION = 256  # entries: x = i / 256
ONE = 4096  # 2^0 in the table's unit: 12 bits and one value of 13


# Sums of a batch's small weights where they are rounded at all: see weights() in plain.py.
LEAST_SUM = 131
MOST_SUM = 259

# 2^-(i / 256) in units of 1 / ONE, then 2^21 / sum: one array, one argument
TABLES = array("H", a2b_base64(load_module("mpy_kv.kernels.table_values").TABLES))
