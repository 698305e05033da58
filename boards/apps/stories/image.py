"""The board image: a model in one file, read where it lies (docs/SPEC.md has every byte).

Two ways, one interface. Mapped: `source` is a buffer (bytes, a memoryview of rp2.Flash or of a ROMFS
file); the kernels read the weights in place. Not mapped: `source` is a file open for reading; rows are
read into buffers that the caller owns. Opening allocates a few objects; read() allocates nothing.
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

from mpy_kv.transient import load_module

from .errors import ImageError


class Image:
    """Header fields as attributes (dim, hidden, layers, heads, kv_heads, head_dim, vocab, seq_len, ...):
    those of checks.FIELDS and checks.TOKENIZER; codec: of the cache, a name, or a list of one a layer. Its
    tables are read by tensors.py.

    check_crc: read everything once and compare the checksum (the structure is always checked).
    Raises ImageError saying what is wrong with which numbers.
    """

    def __init__(self, source, check_crc=True):
        self.buffer = None  # memoryview of a mapped image
        self.file = None
        load_module("stories.checks").open_image(self, source, check_crc)

    def bytes_at(self, at, size):
        """A copy; allocates, for opening and for encoding text."""
        data = bytearray(size)
        self.read(at, data, size)
        return bytes(data)

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
