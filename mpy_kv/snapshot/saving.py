"""Writes a snapshot: header, element types, what the form of the cache has, ids, the program's own sections.

Every length is known before the first byte is written. Transient (mpy_kv/transient.py).
"""

from ..errors import BadArgument
from ..transient import load_module

F = load_module("mpy_kv.snapshot.forms")
H = load_module("mpy_kv.snapshot.header")
S = load_module("mpy_kv.snapshot.stream")

TYPE, IDS = b"TYPE", b"IDS "
SECTION_BYTES = 16  # tag, index, length, checksum


def save(cache, write, model, rope, ids, sections, buffer):
    """As mpy_kv.snapshot.save."""
    form = F.of(cache)
    F.check_idle(cache)
    buffer = S.chunk(buffer)
    mine = [(check_tag(tag), _bytes(data)) for tag, data in sections]
    if len(set([tag for tag, _ in mine])) < len(mine):
        raise BadArgument("two sections of one tag")
    form.settle()
    if ids is None and hasattr(form, "ids"):
        ids = form.ids()
    h = H.made(form, model, rope)
    parts = [(tag, index, length_of(form, tag, index, h)) for tag, index in form.parts(h)]
    lengths = [4 * h.layers] + [n for _, _, n in parts] + [len(data) for _, data in mine]
    if ids is not None:
        lengths.append(4 * h.tokens)
    h.total_bytes = H.BYTES + sum(lengths) + SECTION_BYTES * len(lengths)
    w = S.Writer(write, buffer)
    w.move(h.pack(), 0, H.BYTES - 4)
    w.end_section()
    _begin(w, TYPE, 0, 4 * h.layers)
    for one in [cache.attention[layer] for layer in range(h.layers)]:
        w.number(H.element_type(one.geometry))
    w.end_section()
    for tag, index, n in parts:
        _begin(w, tag, index, n)
        form.move(w, tag, index, h)
        w.end_section()
    if ids is not None:
        _begin(w, IDS, 0, 4 * h.tokens)
        for i in range(h.tokens):
            w.number(ids[form.position(i, h)])
        w.end_section()
    for tag, data in mine:
        _begin(w, tag, 0, len(data))
        w.move(data, 0, len(data))
        w.end_section()
    w.flush()
    return w.written


def _begin(w, tag, index, n):
    w.move(tag, 0, 4)
    w.number(index)
    w.number(n)


def length_of(form, tag, index, h):
    """Bytes of a section of the form."""
    count = S.Count()
    form.move(count, tag, index, h)
    return count.n


def _bytes(data):
    if not isinstance(data, (bytes, bytearray)):
        raise BadArgument("a section must be bytes or a bytearray, got %s" % type(data).__name__)
    return data


def check_tag(tag):
    """A tag of the program's own; BadArgument."""
    if not isinstance(tag, bytes) or len(tag) != 4 or not 97 <= tag[0] <= 122:
        raise BadArgument("a section's tag is four bytes, the first a small letter; got %r" % (tag,))
    return tag
