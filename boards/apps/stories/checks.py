"""Whatever could be wrong with a board image, checked when it is opened (docs/SPEC.md has every byte).

Transient (mpy_kv/transient.py): a model is opened once. `image` is an Image, to be checked in the order of
these functions. Raises ImageError saying what is wrong with which numbers.
"""

import struct
from array import array
from binascii import crc32

from mpy_kv.geometry import CODECS
from mpy_kv.transient import load_module
from mpy_kv.port import addressof

from .errors import ImageError

U = load_module("stories.kernels.layout")

HEADER_BYTES = 96
VERSION = 1

_MATRIX, _VECTOR = 0, 1  # kinds


# Attributes of an Image, as header() returns them. shared: the classifier is the embedding; half_split: how
# rotary positions pair; codecs_at: 0 where the image says nothing of the cache.
FIELDS = ("total_bytes", "crc32", "model_id", "dim", "hidden", "layers", "heads", "kv_heads", "head_dim")
FIELDS += ("vocab", "seq_len", "bos", "eos", "eps_q32", "shared", "half_split", "tensors_at", "tensor_count")
FIELDS += ("rope_at", "shifts_at", "tokenizer_at", "tokenizer_bytes", "codecs_at")

# The same, of tokenizer().
TOKENIZER = ("max_token_bytes", "token_offsets_at", "token_ranks_at", "token_order_at", "token_blob_at")


def open_image(image, source, check_crc):
    """As Image: looks at the source, sets the attributes."""
    if hasattr(source, "readinto"):
        image.file = source
        source.seek(0, 2)
        have = source.tell()
    else:
        try:
            image.buffer = memoryview(source)
            have = len(image.buffer)
        except TypeError:
            raise ImageError(
                "model must be a buffer or a file open for reading, got %s" % type(source).__name__
            )
        at = addressof(image.buffer)
        if at & 3:
            raise ImageError(
                "model starts at address %d, not on a word: align it, or pass the open file" % at
            )
    _set(image, FIELDS, header(image, have))
    tensors(image)
    shifts(image)
    image.codec = codec(image)
    _set(image, TOKENIZER, tokenizer(image))
    if check_crc:
        checksum(image)


def _set(image, names, values):
    for name, value in zip(names, values):
        setattr(image, name, value)


def header(image, have):
    """What an image of `have` bytes says it is: FIELDS."""
    if have < HEADER_BYTES:
        raise ImageError("model has %d bytes, a board image at least %d" % (have, HEADER_BYTES))
    data = image.bytes_at(0, HEADER_BYTES)
    if data[:4] != b"MKVM":
        raise ImageError(
            "not a board image: starts with %s, not MKVM; make one with `kvlab convert`" % data[:4].hex()
        )
    version, header_bytes, total_bytes, crc, model_id = struct.unpack_from("<HHIII", data, 4)
    if version != VERSION or header_bytes != HEADER_BYTES:
        raise ImageError(
            "board image of format %d with a header of %d bytes; this program reads format %d with %d"
            % (version, header_bytes, VERSION, HEADER_BYTES)
        )
    if total_bytes > have:
        raise ImageError("model is cut short: %d of %d bytes" % (have, total_bytes))
    dim, hidden, layers, heads, kv_heads, head_dim = struct.unpack_from("<6H", data, 20)
    vocab, seq_len, group, flags, bos, eos, eps_q32 = struct.unpack_from("<IIHHHHI", data, 32)
    (
        tensors_at,
        tensor_count,
        rope_at,
        shifts_at,
        tokenizer_at,
        tokenizer_bytes,
        codecs_at,
    ) = struct.unpack_from("<7I", data, 52)

    for name, value, low, high in (
        ("dim", dim, 1, U.GROUP * U.MAX_GROUPS),
        ("hidden", hidden, 1, U.GROUP * U.MAX_GROUPS),
        ("layers", layers, 1, 1024),
        ("heads", heads, 1, 1024),
        ("kv_heads", kv_heads, 1, 1024),
        ("head_dim", head_dim, 2, 1024),
        ("vocab", vocab, 1, 65535),
        ("seq_len", seq_len, 1, 1 << 20),
        ("eps_q32", eps_q32, 0, (1 << 29) - 1),
        ("bos", bos, 0, vocab - 1),
    ):
        if not low <= value <= high:
            raise ImageError("%s is %d, must be %d..%d" % (name, value, low, high))
    if heads * head_dim > U.GROUP * U.MAX_GROUPS:
        raise ImageError("heads * head_dim is %d, at most %d" % (heads * head_dim, U.GROUP * U.MAX_GROUPS))
    if heads % kv_heads:
        raise ImageError("heads %d is not a multiple of kv_heads %d" % (heads, kv_heads))
    if head_dim & 1:
        raise ImageError("head_dim %d is odd: rotary positions turn pairs" % head_dim)
    if group != U.GROUP:
        raise ImageError("weights in groups of %d, this program reads groups of %d" % (group, U.GROUP))
    for name, at, size in (
        ("tensor table", tensors_at, 24 * tensor_count),
        ("rope table", rope_at, 2 * head_dim),
        ("shifts", shifts_at, 4 * layers),
        ("tokenizer", tokenizer_at, tokenizer_bytes),
    ):
        _check_range(total_bytes, name, at, size)
    if codecs_at:
        _check_range(total_bytes, "element types", codecs_at, layers)
    return (
        (total_bytes, crc, model_id)
        + (dim, hidden, layers, heads, kv_heads, head_dim, vocab, seq_len, bos, eos, eps_q32)
        + (bool(flags & 1), bool(flags & 2), tensors_at, tensor_count, rope_at, shifts_at)
        + (tokenizer_at, tokenizer_bytes, codecs_at)
    )


def _check_range(total_bytes, name, at, size):
    if at & 15 or at < HEADER_BYTES or at + size > total_bytes:
        raise ImageError(
            "%s at %d, %d bytes: not inside the image of %d bytes, or not on a multiple of 16"
            % (name, at, size, total_bytes)
        )


def tensors(image):
    """The table lists what the header's shapes ask for, each tensor inside the image."""
    table = load_module("stories.tensors")
    q, kv = image.heads * image.head_dim, image.kv_heads * image.head_dim
    d, h = image.dim, image.hidden
    layer = ((1, d), (q, d), (kv, d), (kv, d), (d, q), (1, d), (h, d), (d, h), (h, d))
    shapes = [(image.vocab, d)] + list(layer) * image.layers + [(1, d)]
    if not image.shared:
        shapes.append((image.vocab, d))
    if image.tensor_count != len(shapes):
        raise ImageError("%d tensors, %d expected" % (image.tensor_count, len(shapes)))
    for i, (rows, columns) in enumerate(shapes):
        offset, has_rows, has_columns, row_bytes, exponent, kind, has_groups = table.entry(image, i)
        _check_range(image.total_bytes, "tensor %d" % i, offset, has_rows * row_bytes)
        # The final norm follows the last layer as one more ATT_NORM; the classifier ends the table.
        vector = 0 < i < 2 + table.LAYER_TENSORS * image.layers and (
            (i - 1) % table.LAYER_TENSORS in (table.ATT_NORM, table.FFN_NORM)
        )
        groups = 0 if vector else (columns + U.GROUP - 1) // U.GROUP
        least = 2 * columns if vector else (U.GROUP + 2) * groups
        if (
            (has_rows, has_columns, has_groups) != (rows, columns, groups)
            or kind != (_VECTOR if vector else _MATRIX)
            or row_bytes < least
            or row_bytes & 3
            or not -64 <= exponent <= 64
        ):
            raise ImageError(
                "tensor %d is %d x %d of kind %d, %d groups, %d bytes a row, exponent %d; "
                "expected %d x %d of kind %d, %d groups, at least %d bytes"
                % (
                    (i, has_rows, has_columns, kind, has_groups, row_bytes, exponent)
                    + (rows, columns, _VECTOR if vector else _MATRIX, groups, least)
                )
            )


def shifts(image):
    """Shifts are those that a cache takes."""
    for layer, of_layer in enumerate(load_module("stories.tensors").shifts(image)):
        for i, shift in enumerate(of_layer):
            if not -31 <= shift <= 31:
                raise ImageError("%s_shift of layer %d is %d, must be -31..31" % ("kvq"[i], layer, shift))


def codec(image):
    """Element type of the cache: a name, or where layers differ a list of one each; int8 if none is named."""
    if image.codecs_at == 0:
        return "int8"
    known = {of[3]: name for name, of in CODECS.items()}  # by the byte; None is of a type that has none
    names = []
    for layer, each in enumerate(image.bytes_at(image.codecs_at, image.layers)):
        if each not in known:
            raise ImageError(
                "element type %d of layer %d: this program knows 0..%d" % (each, layer, len(known) - 2)
            )
        names.append(known[each])
    if names.count(names[0]) == len(names):
        return names[0]
    if "int4" in names:
        raise ImageError("element type int4 in some layers: it takes all or none")
    return names


def tokenizer(image):
    """(bytes of the longest token, where offsets, ranks, order and text lie): every offset and entry of the
    tables is one that the program may follow."""
    if image.tokenizer_bytes < 16:
        raise ImageError("tokenizer of %d bytes: its counts alone take 16" % image.tokenizer_bytes)
    at, end = image.tokenizer_at, image.tokenizer_at + image.tokenizer_bytes
    vocab, longest, blob_bytes, _ = struct.unpack("<4I", image.bytes_at(at, 16))
    if vocab != image.vocab:
        raise ImageError("tokenizer of %d tokens for a model of %d" % (vocab, image.vocab))
    pad = -2 * vocab % 4
    offsets_at = at + 16
    ranks_at = offsets_at + 4 * vocab + 4
    order_at = ranks_at + 2 * vocab + pad
    blob_at = order_at + 2 * vocab + pad
    if (
        not 1 <= longest <= 1024
        or blob_bytes >> 24  # Tokenizer reads three bytes of an offset
        or blob_at + blob_bytes > end
    ):
        raise ImageError(
            "tokenizer of %d bytes: %d bytes of text, longest token %d, do not fit"
            % (image.tokenizer_bytes, blob_bytes, longest)
        )
    least = most = 0
    for i, offset in enumerate(_numbers(image, offsets_at, vocab + 1, "I", 4)):
        if i == vocab:
            least = blob_bytes
        if not least <= offset <= most:
            raise ImageError("tokenizer: offset %d is %d, must be %d..%d" % (i, offset, least, most))
        least = offset
        most = min(offset + longest, blob_bytes)
    # One bit a token, freed again; the model's logits will take 32.
    seen = bytearray((vocab + 7) // 8)
    for i, token in enumerate(_numbers(image, order_at, vocab, "H", 2)):
        if token >= vocab or seen[token >> 3] >> (token & 7) & 1:
            raise ImageError(
                "tokenizer: entry %d of the order is %d; each of 0..%d must be there once"
                % (i, token, vocab - 1)
            )
        seen[token >> 3] |= 1 << (token & 7)
    return longest, offsets_at, ranks_at, order_at, blob_at


def _numbers(image, at, count, kind, size):
    """The numbers of an array's `kind`, little-endian, `size` bytes each, from offset `at` on."""
    chunk = bytearray(64 * size)
    while count:
        n = min(count, 64)
        image.read(at, chunk, n * size)
        for x in array(kind, chunk)[:n]:
            yield x
        at += n * size
        count -= n


def checksum(image):
    """Read everything once."""
    crc = _crc(image)
    if crc != image.crc32:
        raise ImageError(
            "checksum %08x, the header says %08x: the model is damaged, copy it again" % (crc, image.crc32)
        )


def _crc(image):
    if image.buffer is not None:
        return crc32(image.buffer[16 : image.total_bytes]) & 0xFFFFFFFF
    image.file.seek(16)
    left = image.total_bytes - 16
    chunk = bytearray(512)
    crc = 0
    while left:
        n = image.file.readinto(chunk)
        if not n:
            raise ImageError("the file ends %d bytes early" % left)
        n = min(n, left)
        crc = crc32(chunk if n == len(chunk) else memoryview(chunk)[:n], crc)
        left -= n
    return crc & 0xFFFFFFFF
