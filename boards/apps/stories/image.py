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

from mpy_kv.lend import lend
from mpy_kv.port import addressof

from .errors import ImageError
from .kernels import GROUP

# Order of a layer's tensors.
ATT_NORM, WQ, WK, WV, WO, FFN_NORM, W_GATE, W_DOWN, W_UP = range(9)
LAYER_TENSORS = 9


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
        checks = lend("stories.checks")
        (
            self.total_bytes,
            self.crc32,
            self.model_id,
            self.dim,
            self.hidden,
            self.layers,
            self.heads,
            self.kv_heads,
            self.head_dim,
            self.vocab,
            self.seq_len,
            self.bos,
            self.eos,
            self.eps_q32,
            self.shared,  # the classifier is the embedding
            self.half_split,  # how rotary positions pair
            self.tensors_at,
            self.tensor_count,
            self.rope_at,
            self.shifts_at,
            self.tokenizer_at,
            self.tokenizer_bytes,
            self.codecs_at,  # 0: the image says nothing of the cache
        ) = checks.header(self, have)
        checks.tensors(self)
        checks.shifts(self)
        self.codec = checks.codec(self)  # of the cache: a name, or a list of one a layer
        (
            self.max_token_bytes,
            self.token_offsets_at,
            self.token_ranks_at,
            self.token_order_at,
            self.token_blob_at,
        ) = checks.tokenizer(self)
        if check_crc:
            checks.checksum(self)

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
