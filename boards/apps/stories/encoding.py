"""Text to tokens, from the tables of the board image (llama2.c's rules). Transient (mpy_kv/transient.py);
allocates.
"""

from mpy_kv.errors import BadArgument

_NO_RANK = 1 << 20


def encode(image, text, bos):
    """As Tokenizer.encode."""
    if not isinstance(text, (bytes, bytearray)):
        text = text.encode()
    tokens = []
    if text:
        space = find(image, b" ")
        if space is not None:
            tokens.append(space)
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and end - at < 4 and text[end] & 0xC0 == 0x80:
            end += 1
        piece = bytes(text[at:end])
        token = find(image, piece)
        if token is not None:
            tokens.append(token)
        else:
            tokens += [_byte(image, byte) for byte in piece]
        at = end
    pieces = [_piece(image, token) for token in tokens]
    # Of each neighbouring pair, the token it merges to and that token's rank; only the pairs
    # beside a merge change.
    merged = [_merge(image, pieces, i) for i in range(len(pieces) - 1)]
    while merged:
        best = 0
        for i in range(1, len(merged)):
            if merged[i][0] < merged[best][0]:
                best = i
        rank, token = merged[best]
        if rank == _NO_RANK:
            break
        tokens[best] = token
        pieces[best] = _piece(image, token)
        del tokens[best + 1], pieces[best + 1], merged[best]
        for i in (best - 1, best):
            if 0 <= i < len(merged):
                merged[i] = _merge(image, pieces, i)
    return [image.bos] + tokens if bos else tokens


def _byte(image, byte):
    token = find(image, b"<0x%02X>" % byte)
    if token is None:
        raise BadArgument(
            "prompt has byte 0x%02x, for which none of the %d tokens stands: use plainer text"
            % (byte, image.vocab)
        )
    return token


def _merge(image, pieces, i):
    token = find(image, pieces[i] + pieces[i + 1])
    return (_NO_RANK, 0) if token is None else (_u16(image, image.token_ranks_at, token), token)


def find(image, piece):
    """As Tokenizer.find."""
    low, high = 0, image.vocab
    while low < high:
        middle = (low + high) // 2
        if _piece(image, _u16(image, image.token_order_at, middle)) < piece:
            low = middle + 1
        else:
            high = middle
    if low == image.vocab:
        return None
    token = _u16(image, image.token_order_at, low)
    return token if _piece(image, token) == piece else None


def _u16(image, at, i):
    b = image.bytes_at(at + 2 * i, 2)
    return b[0] | b[1] << 8


def _piece(image, token):
    b = image.bytes_at(image.token_offsets_at + 4 * token, 8)
    start = b[0] | b[1] << 8 | b[2] << 16
    return image.bytes_at(image.token_blob_at + start, (b[4] | b[5] << 8 | b[6] << 16) - start)
