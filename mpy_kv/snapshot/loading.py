"""Reads a snapshot: into an empty cache, or only its checksums.

Whatever a length in it says, nothing of that size is made: sections of the format are as long as the
cache's own geometry and the counts have them, else refused. Transient (mpy_kv/transient.py).
"""

from ..errors import BadArgument
from ..transient import load_module
from . import BadSnapshot

F = load_module("mpy_kv.snapshot.forms")
H = load_module("mpy_kv.snapshot.header")
S = load_module("mpy_kv.snapshot.stream")
W = load_module("mpy_kv.snapshot.saving")


def check(readinto, seen, buffer):
    """As mpy_kv.snapshot.check."""
    r = S.Reader(readinto, S.chunk(buffer), H.BYTES)
    return walk(r, H.read(r), seen)


def walk(r, h, seen):
    """All sections behind the header."""
    first = True
    while r.rest():
        tag, index, n = _head(r)
        if first and (tag != W.TYPE or n != 4 * h.layers):
            raise BadSnapshot("damaged: no element types")
        first = False
        r.skip(n)
        r.end_section(_named(tag, index))
        if seen is not None:
            seen(tag, index, n)
    if first:
        raise BadSnapshot("damaged: no element types")
    return h


def _head(r):
    """(tag, index, length) of the next section, whose rest is there."""
    if r.rest() < W.SECTION_BYTES:
        raise BadSnapshot("damaged: %d bytes behind the last section" % r.rest())
    tag = bytearray(4)
    r.move(tag, 0, 4)
    index, n = r.number(), r.number()
    if n > r.rest() - 4:
        raise BadSnapshot("damaged: %s has %d bytes, %d are left" % (_named(tag, index), n, r.rest() - 4))
    return bytes(tag), index, n


def _named(tag, index):
    text = "".join([chr(c) if 32 < c < 127 else "" for c in tag])
    return "section %s %d" % (text, index)


def load(cache, readinto, model, rope, ids, sections, buffer):
    """As mpy_kv.snapshot.load."""
    form = F.of(cache)
    F.check_empty(cache)
    r = S.Reader(readinto, S.chunk(buffer), H.BYTES)
    for tag in sections or ():
        W.check_tag(tag)
    h = compared(r, form, model, rope)
    _types(r, cache, h)
    own = []  # ids that a request is to know its tokens by
    try:
        form.admit(h)
        for tag, index in form.parts(h):
            _section(r, form, tag, index, h)
        _rest(r, form, h, ids, own, sections)
        if own:
            form.check_ids(own)
        bad = form.broken(h)
        if bad:
            raise BadSnapshot("damaged: %d codes or scales that no encoder writes" % bad)
        form.publish(h)
    except BaseException:
        form.abandon()
        raise
    if own:
        form.know(h, own)
    return h.tokens


def compared(r, form, model, rope):
    """The Header of what follows, if the cache of that form may have it."""
    h = H.read(r)
    H.compare(h, H.made(form, model, rope))
    H.check(h, form.cache.geometry)
    return h


def _expect(r, tag, index, length):
    got, at, n = _head(r)
    if got != tag or at != index:
        raise BadSnapshot("damaged: %s where %s should be" % (_named(got, at), _named(tag, index)))
    if n != length:
        raise BadSnapshot("damaged: %s has %d bytes, not %d" % (_named(tag, index), n, length))


def _types(r, cache, h):
    """Whether the element types of the layers are the cache's."""
    _expect(r, W.TYPE, 0, 4 * h.layers)
    differs = None
    for layer in range(h.layers):
        number = r.number()
        mine = H.element_type(cache.attention[layer].geometry)
        if differs is None and number != mine:
            differs = (layer, mine, number)
    r.end_section(_named(W.TYPE, 0))  # before what it says is believed
    if differs:
        layer, mine, number = differs
        mine, its = H.type_of(mine), H.type_of(number)
        if mine[0] != its[0]:
            H.refuse("codec of layer %d" % layer, mine[0], its[0])
        H.refuse("group of layer %d" % layer, mine[1], its[1])


def _section(r, form, tag, index, h):
    _expect(r, tag, index, W.length_of(form, tag, index, h))
    form.move(r, tag, index, h)
    r.end_section(_named(tag, index))
    if tag != b"KV  ":
        form.admit_numbers(h)


def _rest(r, form, h, ids, own, sections):
    """Ids, and what is the program's: what it wants, all of it, the others skipped."""
    wanted = dict(sections or {})
    found = []
    while r.rest():
        tag, index, n = _head(r)
        if tag == W.IDS and not found:
            if index or n != 4 * h.tokens:
                raise BadSnapshot("damaged: %s has %d bytes, not %d" % (_named(tag, index), n, 4 * h.tokens))
            _ids(r, form, h, ids, own)
        elif not 97 <= tag[0] <= 122 or tag in found:
            raise BadSnapshot("damaged: %s where none should be" % _named(tag, index))
        elif tag in wanted:
            _take(r, tag, n, wanted.pop(tag))
        else:
            r.skip(n)
        r.end_section(_named(tag, index))
        found.append(tag)
    if wanted:
        raise BadSnapshot("has no %s" % ", ".join([_named(tag, 0) for tag in sorted(wanted)]))


def _take(r, tag, n, into):
    """A section into the program's own bytes."""
    if not isinstance(into, (bytearray, memoryview)):
        into = into(n)
    if len(into) != n:
        raise BadSnapshot("%s has %d bytes, not the %d asked for" % (_named(tag, 0), n, len(into)))
    r.move(into, 0, n)


def _ids(r, form, h, ids, own):
    knows = hasattr(form, "know") and h.tokens == h.length  # else it is found by none of them
    for i in range(h.tokens):
        x = r.number()
        if knows:
            own.append(x)
        if ids is not None:
            ids[form.position(i, h)] = x


def wants(sections):
    """A dict of sections to be loaded, or none; BadArgument."""
    if sections is not None and not isinstance(sections, dict):
        raise BadArgument("sections must be a dict by tag, got %s" % type(sections).__name__)
    return sections
