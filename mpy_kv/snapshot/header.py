"""What a snapshot says of itself: the 80 bytes at its start, and whether a cache may have what follows.

Transient (mpy_kv/transient.py). Nothing here allocates what a field asks for.
"""

import struct

from ..errors import BadArgument
from ..geometry import CODECS
from . import BadSnapshot

MAGIC = b"MKVS"
VERSION = 1
BYTES = 80
_FORMAT = "<4sHHIIHHHHIIIBBHIIIII16s"  # and the checksum
_POLICY_BYTES = 16

# What of a sequence is stored, and how.
POSITIONS, BLOCKS, CHOSEN = 0, 1, 2
FORMS = ("tokens by position", "sealed blocks of int4", "tokens that a policy chose")
FIELDS = ("layers", "heads", "kv_heads", "head_dim", "window", "sinks", "capacity")

_FLOAT32 = 255  # its byte: a board image, which names types by others, has none for it
_END = 1 << 29  # of positions
_MOST = 1 << 30


class Header:
    """Numbers below 2^32, policy as text; of window and capacity the one that is not is 0."""

    def __init__(self, *values):
        (
            self.total_bytes,
            self.model,
            self.layers,
            self.heads,
            self.kv_heads,
            self.head_dim,
            self.window,
            self.sinks,
            self.capacity,
            self.form,
            self.rope,
            self.length,
            self.first,
            self.evicted,
            self.tokens,
            self.recent,
            self.policy,
        ) = values

    def pack(self):
        """All but the checksum."""
        return struct.pack(
            _FORMAT,
            MAGIC,
            VERSION,
            BYTES,
            self.total_bytes,
            self.model,
            self.layers,
            self.heads,
            self.kv_heads,
            self.head_dim,
            self.window,
            self.sinks,
            self.capacity,
            self.form,
            self.rope,
            0,
            self.length,
            self.first,
            self.evicted,
            self.tokens,
            self.recent,
            (self.policy.encode() + bytes(_POLICY_BYTES))[:_POLICY_BYTES],
        )


def made(form, model, rope):
    """The Header of what a form (forms.py) has of a cache; total_bytes to be told."""
    for name, value, end in (("model", model, 1 << 32), ("rope", rope, 256)):
        if not isinstance(value, int) or not 0 <= value < end:
            raise BadArgument("%s must be a whole number below %d, got %r" % (name, end, value))
    g = form.cache.geometry
    shape = [g.layers, g.heads, g.kv_heads, g.head_dim]
    shape += [g.window, g.sinks, 0] if g.capacity is None else [0, 0, g.capacity]
    return Header(0, model, *(shape + [form.number, rope] + form.state()))


def read(reader):
    """The Header at the start of a stream; reader.left is then what it says."""
    start = bytearray(BYTES - 4)
    for i in range(len(MAGIC)):
        reader.move(start, i, 1)
        if start[i] != MAGIC[i]:
            raise BadSnapshot("no snapshot: it begins with other bytes")
    reader.move(start, 4, 4)
    version, size = struct.unpack("<HH", start[4:8])
    if version != VERSION:
        raise BadSnapshot("version %d; this program reads version %d" % (version, VERSION))
    if size != BYTES:
        raise BadSnapshot("damaged: a header of %d bytes" % size)
    reader.move(start, 8, BYTES - 12)
    reader.end_section("the header")
    found = struct.unpack(_FORMAT, bytes(start))
    h = Header(*(found[3:14] + found[15:20] + (None,)))
    try:
        h.policy = found[20].rstrip(b"\0").decode()
    except (ValueError, UnicodeError):
        h.policy = None
    if h.policy is None or found[14] or h.form >= len(FORMS) or h.total_bytes < BYTES:
        raise BadSnapshot("damaged: numbers in the header that no program writes")
    reader.left = h.total_bytes - BYTES
    return h


def refuse(name, mine, its):
    raise BadSnapshot("%s is %s here and %s in the snapshot" % (name, mine, its))


def compare(h, mine):
    """Whether a cache of which `mine` is the Header can have what `h` tells of. BadSnapshot names a field."""
    for name in FIELDS:
        a, b = getattr(mine, name), getattr(h, name)
        if name == "capacity" and a and b:
            if h.length > a:
                raise BadSnapshot("capacity is %d here, the snapshot has %d tokens" % (a, h.length))
        elif a != b:
            refuse(name, _said(name, a), _said(name, b))
    if h.form != mine.form:
        refuse("kind of cache", FORMS[mine.form], FORMS[h.form])
    for name in ("policy", "recent", "rope"):
        if getattr(h, name) != getattr(mine, name):
            refuse(name, getattr(mine, name), getattr(h, name))
    if h.model != mine.model:
        refuse("model", "%08x" % mine.model, "%08x" % h.model)


def _said(name, value):
    """Of window and capacity the one that is not is 0."""
    return value or ("none" if name in ("window", "capacity") else 0)


def check(h, g):
    """Whether the counts agree with one another and with the geometry."""
    sinks = min(g.sinks, h.length)
    good = h.length < _END and h.evicted < _MOST
    if h.form == CHOSEN:
        good = good and h.first == 0 and sinks <= h.tokens <= min(g.max_visible, h.length)
    else:
        good = good and sinks <= h.first <= h.length and h.tokens == sinks + h.length - h.first
        good = good and h.length - h.first <= g.window
    if not good:
        raise BadSnapshot("damaged: counts of tokens that no program writes")


def element_type(g):
    """The number by which a snapshot names the element type of a layer and its group."""
    byte = CODECS[g.codec][3]
    return (_FLOAT32 if byte is None else byte) | (g.group if g.groups else 0) << 8


def type_of(number):
    """(name, group or None) of such a number; BadSnapshot."""
    for name in CODECS:
        byte = CODECS[name][3]
        if number & 255 == (_FLOAT32 if byte is None else byte):
            return name, (number >> 8) or None
    raise BadSnapshot("damaged: element type %d is none" % (number & 255))
