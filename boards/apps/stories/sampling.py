"""How likely each token is to be drawn: temperature, top-p and seed as numbers of the kernels.

Transient (mpy_kv/transient.py): they are told once. Integers only, the same on every port.
"""

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

from mpy_kv.errors import BadArgument

# fields: pick
_VOCAB = const(0)
_HEAT = const(2)
_HEAT_EXPONENT = const(3)
_BITS = const(4)
_TOP_P = const(6)
_STATE = const(7)
# end of fields

_LOG2E = 1549082005  # log2(e) * 2^30


def thousandths(name, value, low, high):
    """A number, or its text, in whole thousandths: "0.85" is 850, "1e-2" is 10. Uses no float itself.

    Further digits are cut off, but what is more than 0 is 1 at least."""
    digits, e, exponent = str(value).lower().partition("e")
    whole, _, rest = digits.partition(".")
    digits = whole + rest
    try:
        point = 3 - len(rest) + int(exponent if e else "0")
        if digits.strip("0123456789"):
            raise ValueError
        number = int(digits)
    except ValueError:
        raise BadArgument("%s must be a number such as 0.85, got %r" % (name, value))
    # Powers beyond all digits and bounds change nothing more.
    unit = 10 ** min(max(0 - point, 0), len(digits))
    milli = number // unit * 10 ** min(max(point, 0), 9)
    cut = number % unit
    if not low <= milli <= high or (cut and milli == high):
        raise BadArgument(
            "%s must be %d.%03d..%d.%03d, got %r"
            % (name, low // 1000, low % 1000, high // 1000, high % 1000, value)
        )
    return milli or (1 if cut else 0)


def scramble(seed):
    """A well-mixed, non-zero state of 32 bits: neighbouring seeds tell unrelated stories."""
    x = seed + 0x9E3779B9 & 0xFFFFFFFF
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        x = (x ^ x >> 16) * factor & 0xFFFFFFFF
    x = (x ^ x >> 16) or 1
    return x - (1 << 32) if x >> 31 else x


def fill(a, temperature, top_p, seed):
    """The parameters `a` of softmax and pick, from HEAT on; returns whether the choice is greedy."""
    t = thousandths("temperature", temperature, 0, 100000)
    p = thousandths("top_p", top_p, 0, 1000)
    if not isinstance(seed, int):
        raise BadArgument("seed must be a whole number, got %r" % (seed,))
    if not t:
        return True
    # log2(e) / temperature = mantissa / 2^15 * 2^exponent
    x = _LOG2E * 1000 // t
    exponent = 0
    while x >= 1 << 30:
        x >>= 1
        exponent += 1
    while x < 1 << 29:
        x <<= 1
        exponent -= 1
    bits = 24
    while bits and a[_VOCAB] << bits > 1 << 30:
        bits -= 1
    a[_HEAT] = x >> 15
    a[_HEAT_EXPONENT] = exponent
    a[_BITS] = bits
    a[_TOP_P] = p * 32768 // 1000 or 32768
    a[_STATE] = scramble(seed)
    return False
