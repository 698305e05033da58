"""Sine, sigmoid and 2^-x tables: arrays of correctly rounded values, 1.2 KB together, never written again.

    SINE     sin(i / 256 * pi/2) * 2^15 for i = 0..256, and the last one again for interpolation
    SIGMOID  2^15 / (1 + e^-(i/16)) for i = 0..256, and the last one again
    EXP2     2^-(i/64) * 2^15 for i = 0..64, and the last one again
"""

from array import array
from binascii import a2b_base64

from mpy_kv.transient import load_module

_values = load_module("stories.kernels.table_values")

SINE = array("H", a2b_base64(_values.SINE))
SIGMOID = array("H", a2b_base64(_values.SIGMOID))
EXP2 = array("H", a2b_base64(_values.EXP2))

del _values
