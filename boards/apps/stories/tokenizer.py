"""Text to tokens and back, from the tables of the board image (llama2.c's rules).

encode() allocates and is for prompts; decode() runs per token and allocates nothing.
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

from mpy_kv.errors import BadArgument

_NO_RANK = 1 << 20


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

    @micropython.native
    def decode(self, previous, token):
        """Bytes of `token` into `buffer`; returns how many. `previous`: the token before it.

        Raw byte tokens (<0x0A>) become that byte; after BOS a leading space is dropped.
        """
        image = self.image
        s = self._span
        b = self.buffer
        image.read(image.token_offsets_at + 4 * token, s, 8)
        start = s[0] | s[1] << 8 | s[2] << 16
        n = (s[4] | s[5] << 8 | s[6] << 16) - start
        if n <= 0 or n > len(b):
            return 0
        image.read(image.token_blob_at + start, b, n)
        # <0xNN>
        if n == 6 and b[0] == 60 and b[1] == 48 and b[2] == 120 and b[5] == 62:
            high = self._digit(b[3])
            low = self._digit(b[4])
            if high >= 0 and low >= 0:
                b[0] = high << 4 | low
                return 1
        if previous == self.bos and b[0] == 32:
            i = 1
            while i < n:
                b[i - 1] = b[i]
                i += 1
            n -= 1
        return n

    @micropython.native
    def _digit(self, c):
        if 48 <= c <= 57:
            return c - 48
        c |= 32
        if 97 <= c <= 102:
            return c - 87
        return -1

    # Text to tokens

    def encode(self, text, bos=True):
        """Tokens of a str or bytes: characters or bytes first, then the best merge until none is left.

        Raises BadArgument when the vocabulary has no token for a byte it would need."""
        if not isinstance(text, (bytes, bytearray)):
            text = text.encode()
        tokens = []
        if text:
            space = self.find(b" ")
            if space is not None:
                tokens.append(space)
        at = 0
        while at < len(text):
            end = at + 1
            while end < len(text) and end - at < 4 and text[end] & 0xC0 == 0x80:
                end += 1
            piece = bytes(text[at:end])
            token = self.find(piece)
            if token is not None:
                tokens.append(token)
            else:
                tokens += [self._byte(byte) for byte in piece]
            at = end
        pieces = [self._piece(token) for token in tokens]
        # Of each neighbouring pair, the token it merges to and that token's rank; only the pairs
        # beside a merge change.
        merged = [self._merge(pieces, i) for i in range(len(pieces) - 1)]
        while merged:
            best = 0
            for i in range(1, len(merged)):
                if merged[i][0] < merged[best][0]:
                    best = i
            rank, token = merged[best]
            if rank == _NO_RANK:
                break
            tokens[best] = token
            pieces[best] = self._piece(token)
            del tokens[best + 1], pieces[best + 1], merged[best]
            for i in (best - 1, best):
                if 0 <= i < len(merged):
                    merged[i] = self._merge(pieces, i)
        return [self.bos] + tokens if bos else tokens

    def _byte(self, byte):
        token = self.find(b"<0x%02X>" % byte)
        if token is None:
            raise BadArgument(
                "prompt has byte 0x%02x, for which none of the %d tokens stands: use plainer text"
                % (byte, self.image.vocab)
            )
        return token

    def _merge(self, pieces, i):
        token = self.find(pieces[i] + pieces[i + 1])
        return (_NO_RANK, 0) if token is None else (self._u16(self.image.token_ranks_at, token), token)

    def find(self, piece):
        """The token of exactly these bytes, the lowest if there are several; None if there is none."""
        low, high = 0, self.image.vocab
        while low < high:
            middle = (low + high) // 2
            if self._piece(self._u16(self.image.token_order_at, middle)) < piece:
                low = middle + 1
            else:
                high = middle
        if low == self.image.vocab:
            return None
        token = self._u16(self.image.token_order_at, low)
        return token if self._piece(token) == piece else None

    def _u16(self, at, i):
        b = self.image.bytes_at(at + 2 * i, 2)
        return b[0] | b[1] << 8

    def _piece(self, token):
        b = self.image.bytes_at(self.image.token_offsets_at + 4 * token, 8)
        start = b[0] | b[1] << 8 | b[2] << 16
        return self.image.bytes_at(self.image.token_blob_at + start, (b[4] | b[5] << 8 | b[6] << 16) - start)
