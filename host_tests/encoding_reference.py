"""The encoder as llama2.c has it, quadratic and short: what the board's and the host's are held to."""

from __future__ import annotations

from collections.abc import Sequence


class NoToken(Exception):
    """The byte for which no token stands."""


def encode(tokens: Sequence[tuple[float, bytes]], text: str | bytes) -> list[int]:
    """Ids, without BOS. tokens: (score, bytes) by id."""
    data = text if isinstance(text, bytes) else text.encode()
    ids: dict[bytes, int] = {}
    for i, (_, piece) in enumerate(tokens):
        ids.setdefault(piece, i)
    found = [ids[b" "]] if data and b" " in ids else []
    at = 0
    while at < len(data):
        end = at + 1
        while end < min(len(data), at + 4) and data[end] & 0xC0 == 0x80:
            end += 1
        if data[at:end] in ids:
            found.append(ids[data[at:end]])
        else:
            for byte in data[at:end]:
                if b"<0x%02X>" % byte not in ids:
                    raise NoToken(byte)
                found.append(ids[b"<0x%02X>" % byte])
        at = end
    while True:
        best = None
        for i in range(len(found) - 1):
            joined = ids.get(tokens[found[i]][1] + tokens[found[i + 1]][1])
            if joined is not None and (best is None or tokens[joined][0] > tokens[best[1]][0]):
                best = i, joined
        if best is None:
            return found
        found[best[0] : best[0] + 2] = [best[1]]
