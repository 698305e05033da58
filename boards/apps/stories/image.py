"""The board image: a model in one file, read where it lies (docs/SPEC.md has every byte).

Two ways, one interface. Mapped: `source` is a buffer (bytes, a memoryview of rp2.Flash or of a ROMFS
file); the kernels read the weights in place. Not mapped: `source` is a file open for reading; rows are
read into buffers that the caller owns. Opening allocates a few objects; read() allocates nothing.
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

import struct
from array import array
from binascii import crc32

from mpy_kv.port import addressof

from .errors import ImageError
from .kernels import GROUP, MAX_GROUPS

HEADER_BYTES = 96
VERSION = 1

# Order of a layer's tensors.
ATT_NORM, WQ, WK, WV, WO, FFN_NORM, W_GATE, W_DOWN, W_UP = range(9)
LAYER_TENSORS = 9

_MATRIX, _VECTOR = 0, 1


class Tensor:
    """One entry of the tensor table. Row = codes (padded columns), scales, padding to a word."""

    def __init__(self, entry):
        (
            self.offset,
            self.rows,
            self.columns,
            self.row_bytes,
            self.exponent,
            self.kind,
            self.groups,
        ) = struct.unpack_from("<IIIIiHH", entry)
        self.skip_bytes = self.row_bytes - self.groups * GROUP  # from the codes' end to the next row


class Image:
    """Header fields as attributes (dim, hidden, layers, heads, kv_heads, head_dim, vocab, seq_len, ...).

    check_crc: read everything once and compare the checksum (the structure is always checked).
    Raises ImageError saying what is wrong with which numbers.
    """

    def __init__(self, source, check_crc=True):
        self.buffer = None  # memoryview of a mapped image
        self.file = None
        if hasattr(source, "readinto"):
            self.file = source
            source.seek(0, 2)
            have = source.tell()
        else:
            try:
                self.buffer = memoryview(source)
                have = len(self.buffer)
            except TypeError:
                raise ImageError(
                    "model must be a buffer or a file open for reading, got %s" % type(source).__name__
                )
            if addressof(self.buffer) & 3:
                raise ImageError(
                    "model starts at address %d, not on a word: align it, or pass the open file"
                    % addressof(self.buffer)
                )
        if have < HEADER_BYTES:
            raise ImageError("model has %d bytes, a board image at least %d" % (have, HEADER_BYTES))
        self._parse(self.bytes_at(0, HEADER_BYTES), have)
        self._check_tensors()
        self._check_tokenizer()
        if check_crc:
            crc = self._crc()
            if crc != self.crc32:
                raise ImageError(
                    "checksum %08x, the header says %08x: the model is damaged, copy it again"
                    % (crc, self.crc32)
                )

    def _parse(self, header, have):
        if header[:4] != b"MKVM":
            raise ImageError(
                "not a board image: starts with %s, not MKVM; make one with `kvlab convert`"
                % header[:4].hex()
            )
        version, header_bytes, self.total_bytes, self.crc32, self.model_id = struct.unpack_from(
            "<HHIII", header, 4
        )
        if version != VERSION or header_bytes != HEADER_BYTES:
            raise ImageError(
                "board image of format %d with a header of %d bytes; this program reads format %d with %d"
                % (version, header_bytes, VERSION, HEADER_BYTES)
            )
        if self.total_bytes > have:
            raise ImageError("model is cut short: %d of %d bytes" % (have, self.total_bytes))
        self.dim, self.hidden, self.layers, self.heads, self.kv_heads, self.head_dim = struct.unpack_from(
            "<6H", header, 20
        )
        self.vocab, self.seq_len, group, flags, self.bos, self.eos, self.eps_q32 = struct.unpack_from(
            "<IIHHHHI", header, 32
        )
        (
            self.tensors_at,
            self.tensor_count,
            self.rope_at,
            self.shifts_at,
            self.tokenizer_at,
            self.tokenizer_bytes,
        ) = struct.unpack_from("<6I", header, 52)
        self.shared = bool(flags & 1)
        self.half_split = bool(flags & 2)

        for name, low, high in (
            ("dim", 1, GROUP * MAX_GROUPS),
            ("hidden", 1, GROUP * MAX_GROUPS),
            ("layers", 1, 1024),
            ("heads", 1, 1024),
            ("kv_heads", 1, 1024),
            ("head_dim", 2, 1024),
            ("vocab", 1, 65535),
            ("seq_len", 1, 1 << 20),
            ("eps_q32", 0, (1 << 29) - 1),
            ("bos", 0, self.vocab - 1),
        ):
            if not low <= getattr(self, name) <= high:
                raise ImageError("%s is %d, must be %d..%d" % (name, getattr(self, name), low, high))
        if self.heads * self.head_dim > GROUP * MAX_GROUPS:
            raise ImageError(
                "heads * head_dim is %d, at most %d" % (self.heads * self.head_dim, GROUP * MAX_GROUPS)
            )
        if self.heads % self.kv_heads:
            raise ImageError("heads %d is not a multiple of kv_heads %d" % (self.heads, self.kv_heads))
        if self.head_dim & 1:
            raise ImageError("head_dim %d is odd: rotary positions turn pairs" % self.head_dim)
        if group != GROUP:
            raise ImageError("weights in groups of %d, this program reads groups of %d" % (group, GROUP))
        for name, at, size in (
            ("tensor table", self.tensors_at, 24 * self.tensor_count),
            ("rope table", self.rope_at, 2 * self.head_dim),
            ("shifts", self.shifts_at, 4 * self.layers),
            ("tokenizer", self.tokenizer_at, self.tokenizer_bytes),
        ):
            self._check_range(name, at, size)

    def _check_range(self, name, at, size):
        if at & 15 or at < HEADER_BYTES or at + size > self.total_bytes:
            raise ImageError(
                "%s at %d, %d bytes: not inside the image of %d bytes, or not on a multiple of 16"
                % (name, at, size, self.total_bytes)
            )

    def _check_tensors(self):
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        d, h = self.dim, self.hidden
        layer = ((1, d), (q, d), (kv, d), (kv, d), (d, q), (1, d), (h, d), (d, h), (h, d))
        shapes = [(self.vocab, d)] + list(layer) * self.layers + [(1, d)]
        if not self.shared:
            shapes.append((self.vocab, d))
        if self.tensor_count != len(shapes):
            raise ImageError("%d tensors, %d expected" % (self.tensor_count, len(shapes)))
        for i, (rows, columns) in enumerate(shapes):
            t = self.tensor(i)
            self._check_range("tensor %d" % i, t.offset, t.rows * t.row_bytes)
            # The final norm follows the last layer as one more ATT_NORM; the classifier ends the table.
            vector = 0 < i < 2 + LAYER_TENSORS * self.layers and (
                (i - 1) % LAYER_TENSORS in (ATT_NORM, FFN_NORM)
            )
            groups = 0 if vector else (columns + GROUP - 1) // GROUP
            least = 2 * columns if vector else (GROUP + 2) * groups
            if (
                (t.rows, t.columns, t.groups) != (rows, columns, groups)
                or t.kind != (_VECTOR if vector else _MATRIX)
                or t.row_bytes < least
                or t.row_bytes & 3
                or not -64 <= t.exponent <= 64
            ):
                raise ImageError(
                    "tensor %d is %d x %d of kind %d, %d groups, %d bytes a row, exponent %d; "
                    "expected %d x %d of kind %d, %d groups, at least %d bytes"
                    % (
                        (i, t.rows, t.columns, t.kind, t.groups, t.row_bytes, t.exponent)
                        + (rows, columns, _VECTOR if vector else _MATRIX, groups, least)
                    )
                )

    def _check_tokenizer(self):
        at, end = self.tokenizer_at, self.tokenizer_at + self.tokenizer_bytes
        vocab, self.max_token_bytes, blob_bytes, _ = struct.unpack("<4I", self.bytes_at(at, 16))
        if vocab != self.vocab:
            raise ImageError("tokenizer of %d tokens for a model of %d" % (vocab, self.vocab))
        pad = -2 * vocab % 4
        self.token_offsets_at = at + 16
        self.token_ranks_at = self.token_offsets_at + 4 * vocab + 4
        self.token_order_at = self.token_ranks_at + 2 * vocab + pad
        self.token_blob_at = self.token_order_at + 2 * vocab + pad
        if (
            not 1 <= self.max_token_bytes <= 1024
            or blob_bytes >> 24  # Tokenizer reads three bytes of an offset
            or self.token_blob_at + blob_bytes > end
        ):
            raise ImageError(
                "tokenizer of %d bytes: %d bytes of text, longest token %d, do not fit"
                % (self.tokenizer_bytes, blob_bytes, self.max_token_bytes)
            )
        least = most = 0
        for i, offset in enumerate(self._numbers(self.token_offsets_at, vocab + 1, 4)):
            if i == vocab:
                least = blob_bytes
            if not least <= offset <= most:
                raise ImageError("tokenizer: offset %d is %d, must be %d..%d" % (i, offset, least, most))
            least = offset
            most = min(offset + self.max_token_bytes, blob_bytes)
        # One bit a token, freed again; the model's logits will take 32.
        seen = bytearray((vocab + 7) // 8)
        for i, token in enumerate(self._numbers(self.token_order_at, vocab, 2)):
            if token >= vocab or seen[token >> 3] >> (token & 7) & 1:
                raise ImageError(
                    "tokenizer: entry %d of the order is %d; each of 0..%d must be there once"
                    % (i, token, vocab - 1)
                )
            seen[token >> 3] |= 1 << (token & 7)

    def _numbers(self, at, count, size):
        """The little-endian numbers of 2 or 4 bytes from offset `at`, one after the other."""
        chunk = bytearray(64 * size)
        for i in range(count):
            j = i % 64 * size
            if j == 0:
                self.read(at + i * size, chunk, min(len(chunk), (count - i) * size))
            x = chunk[j] | chunk[j + 1] << 8
            if size == 4:
                x |= chunk[j + 2] << 16 | chunk[j + 3] << 24
            yield x

    def _crc(self):
        if self.buffer is not None:
            return crc32(self.buffer[16 : self.total_bytes]) & 0xFFFFFFFF
        self.file.seek(16)
        left = self.total_bytes - 16
        chunk = bytearray(512)
        crc = 0
        while left:
            n = self.file.readinto(chunk)
            if not n:
                raise ImageError("the file ends %d bytes early" % left)
            n = min(n, left)
            crc = crc32(chunk if n == len(chunk) else memoryview(chunk)[:n], crc)
            left -= n
        return crc & 0xFFFFFFFF

    def bytes_at(self, at, size):
        """A copy; allocates, for opening and for encoding text."""
        data = bytearray(size)
        self.read(at, data, size)
        return bytes(data)

    def tensor(self, i):
        """Entry i of the tensor table: 0 embedding, 1 + 9 * layer + ATT_NORM.., final norm, classifier."""
        return Tensor(self.bytes_at(self.tensors_at + 24 * i, 24))

    def layer_tensor(self, layer, which):
        return self.tensor(1 + LAYER_TENSORS * layer + which)

    def final_norm(self):
        return self.tensor(1 + LAYER_TENSORS * self.layers)

    def classifier(self):
        return self.tensor(0 if self.shared else 2 + LAYER_TENSORS * self.layers)

    def rope_increments(self):
        """array('i') of head_dim / 2 phase increments, turns * 2^32 per position, mod 2^32."""
        return array("i", self.bytes_at(self.rope_at, 2 * self.head_dim))

    def shifts(self):
        """(k_shift, v_shift, q_shift) per layer."""
        data = self.bytes_at(self.shifts_at, 4 * self.layers)
        return [struct.unpack_from("bbb", data, 4 * i) for i in range(self.layers)]

    @micropython.native
    def read(self, at, buf, size):
        """Copy `size` bytes at offset `at` to the start of `buf` (bytearray or byte memoryview).

        From a file, len(buf) bytes are asked for. Raises ImageError at the end of the file."""
        if self.file is None:
            source = self.buffer
            i = 0
            while i < size:
                buf[i] = source[at + i]
                i += 1
            return
        self.file.seek(at)
        if self.file.readinto(buf) < size:
            self._refuse_read(at, size)

    def _refuse_read(self, at, size):
        raise ImageError("the file ends inside the %d bytes at %d" % (size, at))
