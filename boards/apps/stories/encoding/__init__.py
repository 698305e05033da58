"""Text to tokens, from the tables of the board image (llama2.c's rules). Transient (mpy_kv/transient.py);
allocates.

Each character becomes a token, in a slot of its own; then neighbours merge, best rank first, until none do:
n log n steps for n slots. Seven bytes a slot are all that is held beside the text, eight where tokens are
longer than 255 bytes:

    tokens  where the token of a slot stands in the image's order of tokens by their text
    runs    how many slots it covers, in the first and in the last of them
    best    ranks of what each slot's token makes with the next one, and above them a tree: of each two the
            lower one

What runs for each slot is in plain.py, the definition, and in viper.py.
"""

import gc
import sys
from array import array

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

from mpy_kv import port
from mpy_kv.errors import BadArgument
from mpy_kv.transient import kept, load_module

_NONE = const(0xFFFF)  # no rank
_SLOT_BYTES = const(7)

# fields: encoding
_E_ORDER = const(0)
_E_RANKS = const(1)
_E_OFFSETS = const(2)
_E_TEXT = const(3)
_E_TOKENS = const(4)
_E_JOIN = const(5)
_E_LEFT = const(6)
_E_RIGHT = const(7)
_E_RANK = const(8)
_E_AT = const(9)
_E_SIZE = const(10)
_E_MORE = const(12)
_E_FIELDS = const(19)
# end of fields


def prompt(llama, text):
    """As Tokenizer.encode; BadArgument too where the cache of `llama` has no room for so many tokens."""
    tokens = encode(llama.image, text, True)
    most = llama.cache.geometry.capacity
    if most is not None and len(tokens) > most - llama.cache.length:
        raise BadArgument(
            "prompt has %d tokens; the cache has room for %d of %d: shorten it"
            % (len(tokens), most - llama.cache.length, most)
        )
    return tokens


def encode(image, text, bos):
    """As Tokenizer.encode."""
    text = _bytes(text)
    a = array("i", bytes(4 * _E_FIELDS))
    kernels, w = _open(image, a)
    n = slots = nodes = _begin(kernels.search, w, text, a, None)
    while n > 1:
        n = (n + 1) >> 1
        nodes += n
    try:
        tokens = _numbers(slots)
        runs = bytearray(slots) if image.max_token_bytes < 256 else _numbers(slots)
        best = _numbers(nodes)
    except MemoryError:
        tokens = runs = best = w = None
        _refuse("%d bytes takes %d more to become tokens" % (len(text), _SLOT_BYTES * slots))
    _begin(kernels.search, w, text, a, tokens)
    n = _merge(kernels, w, a, tokens, runs, best)
    best = None
    at = 1 if bos else 0
    try:
        ids = [image.bos] * (at + n)
    except MemoryError:
        tokens = runs = w = None
        _refuse("%d bytes has %d tokens, too many for a list" % (len(text), n))
    i = 0
    while i < slots:
        ids[at] = _u16(w, a[_E_ORDER] + 2 * tokens[i])
        at += 1
        i += runs[i]
    return ids


def find(image, piece):
    """As Tokenizer.find."""
    a = array("i", bytes(4 * _E_FIELDS))
    kernels, w = _open(image, a)
    place = _index(kernels.search, w, piece, a, 0, len(piece))
    return None if place < 0 else _u16(w, a[_E_ORDER] + 2 * place)


def _open(image, a):
    """The kernels, and what they index to read the image's tables; where in it these lie goes to `a`.

    Those of a model that is a file are read into memory, if they take no more than a quarter of what is free.
    """
    a[_E_TOKENS] = image.vocab
    a[_E_ORDER] = image.token_order_at
    a[_E_RANKS] = image.token_ranks_at
    a[_E_OFFSETS] = image.token_offsets_at
    a[_E_TEXT] = image.token_blob_at
    w = image.buffer
    if w is None and image.tokenizer_bytes <= free_bytes() // 4:
        try:
            w = bytearray(image.tokenizer_bytes)
            image.read(image.tokenizer_at, w, len(w))
            for i in (_E_ORDER, _E_RANKS, _E_OFFSETS, _E_TEXT):
                a[i] -= image.tokenizer_at
        except MemoryError:
            w = None
    if w is not None and port.EMITTER:
        viper = load_module("stories.encoding.viper")
        if sys.platform == "esp32" and viper.__name__ not in kept:
            kept.append(viper.__name__)  # there the memory of native code is never given back
        return viper, w
    if w is None:
        from .pages import Image

        w = Image(image)
    return load_module("stories.encoding.plain"), w


def free_bytes():
    return gc.mem_free() if hasattr(gc, "mem_free") else 1 << 30


def _bytes(text):
    """What indexes as bytes: MicroPython keeps a str as UTF-8, to be read without a copy."""
    if isinstance(text, (bytes, bytearray)):
        return text
    try:
        return memoryview(text)
    except TypeError:
        return text.encode()


def _numbers(n):
    """array('H') of n numbers, without another object of that size; what they are is left open."""
    made = array("H", range(min(n, 1 << 16)))
    while len(made) < n:
        made.extend(array("H", range(min(n - len(made), 4096))))
    return made


def _refuse(why):
    gc.collect()
    raise BadArgument("prompt of %s, and %d bytes are free: shorten it" % (why, free_bytes()))


def _index(search, w, text, a, at, size):
    """The place of the token of that piece of text, -1 if there is none."""
    a[_E_JOIN] = a[_E_MORE] = 0
    a[_E_AT] = at
    a[_E_SIZE] = size
    return search(w, text, a)


def _u16(w, at):
    return w[at] | w[at + 1] << 8


def _begin(search, w, text, a, tokens):
    """How many slots the text begins as; what they hold goes to `tokens`, unless that is None."""
    end = len(text)
    if end == 0:
        return 0
    place = _index(search, w, b" ", a, 0, 1)
    n = 0 if place < 0 else 1
    if n and tokens:
        tokens[0] = place
    at = 0
    while at < end:
        # A character: a byte and at most three continuation bytes.
        size = 1
        while at + size < end and size < 4 and text[at + size] & 0xC0 == 0x80:
            size += 1
        # To count them, one of one byte need not be known.
        place = _index(search, w, text, a, at, size) if tokens or size > 1 else 0
        if place >= 0:
            if tokens:
                tokens[n] = place
            n += 1
        else:
            if tokens:
                for i in range(size):
                    tokens[n + i] = _byte(search, w, a, text[at + i])
            n += size
        at += size
    return n


def _byte(search, w, a, byte):
    place = _index(search, w, b"<0x%02X>" % byte, a, 0, 6)
    if place < 0:
        raise BadArgument(
            "prompt has byte 0x%02x, for which none of the %d tokens stands: use plainer text"
            % (byte, a[_E_TOKENS])
        )
    return place


def _merge(kernels, w, a, tokens, runs, best):
    """Merge neighbours until none do; returns how many tokens are left."""
    search = kernels.search
    update = kernels.update
    n = slots = len(tokens)
    if n == 0:
        return 0
    for i in range(len(best)):
        best[i] = _NONE
    a[_E_JOIN] = 1
    runs[0] = 1
    for i in range(1, slots):
        runs[i] = 1
        a[_E_LEFT] = tokens[i - 1]
        a[_E_RIGHT] = tokens[i]
        search(w, w, a)
        update(best, slots, i - 1, a[_E_RANK])
    while True:
        i = kernels.first(best, slots)
        if i < 0:
            return n
        n -= 1
        end = i + runs[i]
        a[_E_LEFT] = tokens[i]
        a[_E_RIGHT] = tokens[end]
        tokens[i] = search(w, w, a)
        update(best, slots, end, _NONE)
        end += runs[end]
        runs[i] = runs[end - 1] = end - i
        # Only the pairs on both sides have changed.
        a[_E_RANK] = _NONE
        if end < slots:
            a[_E_LEFT] = tokens[i]
            a[_E_RIGHT] = tokens[end]
            search(w, w, a)
        update(best, slots, i, a[_E_RANK])
        if i:
            a[_E_RIGHT] = tokens[i]
            i -= runs[i - 1]
            a[_E_LEFT] = tokens[i]
            search(w, w, a)
            update(best, slots, i, a[_E_RANK])
