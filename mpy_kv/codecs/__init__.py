"""Codecs: bytes <-> numbers. The hot path is in kernels/; a codec here reads a stored vector back.

Protocol, which being "k" or "v", at_codes and at_scales the offsets of head 0 and group 0 at a token's slot:
  read(buffer, geometry, which, at_codes, at_scales) -> list of (code, mantissa, exponent), the values
      code * mantissa * 2^exponent, exact
  broken(buffer, geometry, which, at_codes, at_scales) -> how many codes and scales there no encoder writes
Reading allocates: it is for tests, snapshots and tools; storing is kernels.encode.
"""



def named(name):
    """The codec of an element type, by its name in geometry.CODECS."""
    return __import__(__name__ + "." + name.replace("-", "_"), None, None, ("x",))
