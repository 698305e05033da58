"""Codecs: bytes <-> numbers. The hot path is in kernels/; a codec here reads a stored vector back.

Protocol: NAME, read(buffer, geometry, at_codes, at_scales) -> list of (code, mantissa, exponent) with
value = code * mantissa * 2^exponent, exact.
"""

from . import int8

BY_NAME = {int8.NAME: int8}
