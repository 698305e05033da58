"""The kernels of the flash log: native where there is native code, else plain.py. See there."""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..port import EMITTER, ints, load_native

# fields: scan, scan slot
_CRC_TABLE = const(20)
_SLOTS_AT = const(37)
_SLOT_WORDS = const(10)
# end of fields

if EMITTER:
    _names = load_native(__file__[: __file__.rfind("/") + 1] + "viper.py", "mpy_kv.flash_log")
else:
    from . import plain

    _names = plain.__dict__

crc = _names["crc"]
begin = _names["begin"]
close = _names["close"]
agrees = _names["agrees"]
_move = _names["move"]
fill = _names["fill"]
word = _names["word"]
half = _names["half"]
put_word = _names["put_word"]
put_half = _names["put_half"]
widen = _names["widen"]
narrow = _names["narrow"]
least_worn = _names["least_worn"]
foot = _names["foot"]
take = _names["take"]
enter = _names["enter"]
next_in = _names["next_in"]

_how = ints([], 3)


@micropython.native
def copy(to, source, to_at, at, n):
    """n bytes of `source` from `at` on, to `to_at` in `to`."""
    how = _how
    how[0] = to_at
    how[1] = at
    how[2] = n
    _move(to, source, how)


def new_state():
    """What a CRC goes on in: the register, and where there is native code its table."""
    return array("i", _table()) if EMITTER else [0]


def new_scan(slots):
    """What foot(), take() and enter() read and write: see plain.py."""
    scan = ints([], _SLOTS_AT + _SLOT_WORDS * slots)
    if EMITTER:
        table = new_state()
        for i in range(16):
            scan[_CRC_TABLE + i] = table[i + 1]
    return scan


def _table():
    """A register of 0, then the CRC-32 of each 4 bits: as bytes, since not all words are small ints on a
    board."""
    made = bytearray(68)
    for i in range(16):
        low, high = i, 0
        for _ in range(4):
            odd = low & 1
            low = low >> 1 | (high & 1) << 15
            high >>= 1
            if odd:  # the polynomial, reversed: 0xedb88320
                low ^= 0x8320
                high ^= 0xEDB8
        made[4 * i + 4] = low & 255
        made[4 * i + 5] = low >> 8
        made[4 * i + 6] = high & 255
        made[4 * i + 7] = high >> 8
    return made
