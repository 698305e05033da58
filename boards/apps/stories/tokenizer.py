"""Text to tokens and back, from the tables of the board image (llama2.c's rules).

encode() allocates and is for prompts; decode() runs per token and allocates nothing.
"""

from mpy_kv.transient import load_module


class Tokenizer:
    """`buffer` receives the bytes of decode(); `views[n]` is a ready memoryview of its first n bytes."""

    def __init__(self, image):
        self.image = image
        self.bos = image.bos
        self.eos = image.eos
        self._span = bytearray(8)
        self.buffer = bytearray(max(image.max_token_bytes, 6))
        view = memoryview(self.buffer)
        self.views = [view[:n] for n in range(len(self.buffer) + 1)]

    # Tokens to text

    def decode(self, previous, token):
        """Bytes of `token` into `buffer`; returns how many. `previous`: the token before it.

        Raw byte tokens (<0x0A>) become that byte; after BOS a leading space is dropped.
        """
        n = self._copy(self.image.token_offsets_at + 4 * token)
        b = self.buffer
        if n == 6 and self._is_raw():
            b[0] = self._digit(3) << 4 | self._digit(4)
            return 1
        if n and previous == self.bos and b[0] == 32:
            i = 1
            while i < n:
                b[i - 1] = b[i]
                i += 1
            n -= 1
        return n

    def _copy(self, at):
        """The text whose offset lies at `at` of the image, into `buffer`; how long it is, 0 if too long."""
        s = self._span
        self.image.read(at, s, 8)
        start = s[0] | s[1] << 8 | s[2] << 16
        n = (s[4] | s[5] << 8 | s[6] << 16) - start
        if n <= 0 or n > len(self.buffer):
            return 0
        self.image.read(self.image.token_blob_at + start, self.buffer, n)
        return n

    def _is_raw(self):
        """Whether `buffer` holds <0xNN>."""
        b = self.buffer
        return (
            b[0] == 60
            and b[1] == 48
            and b[2] == 120
            and b[5] == 62
            and self._digit(3) >= 0
            and self._digit(4) >= 0
        )

    def _digit(self, i):
        c = self.buffer[i]
        if 48 <= c <= 57:
            return c - 48
        c |= 32
        if 97 <= c <= 102:
            return c - 87
        return -1

    # Text to tokens, transient: a prompt is encoded once

    def encode(self, text, bos=True):
        """Tokens of a str or bytes: characters or bytes first, then the best merge until none is left.

        Raises BadArgument when the vocabulary has no token for a byte it would need."""
        return load_module("stories.encoding").encode(self.image, text, bos)

    def find(self, piece):
        """The token of exactly these bytes, the lowest if there are several; None if there is none."""
        return load_module("stories.encoding").find(self.image, piece)
