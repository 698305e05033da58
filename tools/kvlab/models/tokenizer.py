"""llama2.c tokenizer files, and byte pair encoding by llama2.c's rules in plain Python.

This is the reference the board's encoder is held to. The rules:

* a text starts with BOS (1) and, unless it is empty, the token of a single space;
* each UTF-8 character that is a token becomes that token, any other becomes one token a byte: the one
  whose text is `<0x00>` .. `<0xFF>`, wherever it stands; where there is none, the text is refused;
* the neighbours whose joined text is the best-scored token merge, the leftmost of equals first,
  until none are left;
* decoding drops one space right after BOS, and `<0xNN>` becomes the byte.
"""

from __future__ import annotations

import heapq
import math
import os
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commandline import files
from commandline.errors import BadInput

from .llama2c import BOS, EOS

BYTE_BASE = 3  # id of <0x00>
_RAW = re.compile(rb"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class Tokenizer:
    """The vocabulary: bytes and score of each token, by id."""

    name: str  # where it came from (option and file); messages start with it
    max_token_bytes: int
    tokens: tuple[bytes, ...]
    scores: tuple[float, ...]
    path: Path | None = None  # the tokenizer.bin, if it was read from one

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """Token bytes -> id. Of equal tokens the lowest id is found, as on the board."""
        table: dict[bytes, int] = {}
        for i, token in enumerate(self.tokens):
            table.setdefault(token, i)
        return table

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Dense rank of each score: 0 the best; equal scores share one."""
        order = {s: r for r, s in enumerate(sorted(set(self.scores), reverse=True))}
        return tuple(order[s] for s in self.scores)

    @cached_property
    def sorted_ids(self) -> tuple[int, ...]:
        """Ids in ascending order of their bytes, equal ones by id."""
        return tuple(sorted(range(len(self)), key=lambda i: (self.tokens[i], i)))

    def encode(self, text: str | bytes, bos: bool = True, eos: bool = False) -> list[int]:
        """Text -> token ids. Raises BadInput when the vocabulary lacks a byte it would need."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        out = [BOS] if bos else []
        if data:
            out += self._merge(list(self._characters(data)))
        return [*out, EOS] if eos else out

    def _characters(self, data: bytes) -> Iterable[int]:
        if b" " in self.ids:  # the dummy prefix
            yield self.ids[b" "]
        # A character is a byte and at most three continuation bytes (10xxxxxx), valid or not.
        for found in re.finditer(rb"[\x00-\xff][\x80-\xbf]{0,3}", data):
            whole = self.ids.get(found[0])
            if whole is not None:
                yield whole
                continue
            for byte in found[0]:
                token = self.ids.get(b"<0x%02X>" % byte)
                if token is None:
                    raise BadInput(
                        f"{self.name}: none of its {len(self)} tokens stands for byte "
                        f"{byte:#04x} of the text: pass another tokenizer or a plainer text"
                    )
                yield token

    def _merge(self, ids: list[int]) -> list[int]:
        """Merge best first. A heap of (rank, place) over a linked list: O(n log n)."""
        after = [*range(1, len(ids)), -1]
        before = list(range(-1, len(ids) - 1))
        heap: list[tuple[int, int, int, int, int]] = []  # rank, left, right, both ids as offered

        def offer(left: int, right: int) -> None:
            if left < 0 or right < 0:
                return
            joined = self.ids.get(self.tokens[ids[left]] + self.tokens[ids[right]])
            if joined is not None:
                heapq.heappush(heap, (self.ranks[joined], left, right, ids[left], ids[right]))

        for i in range(len(ids) - 1):
            offer(i, i + 1)
        while heap:
            _, left, right, a, b = heapq.heappop(heap)
            if ids[left] != a or ids[right] != b or after[left] != right:
                continue  # one of the two has merged since
            ids[left] = self.ids[self.tokens[a] + self.tokens[b]]
            ids[right] = -1  # dead: matches no offer
            after[left] = after[right]
            if after[left] >= 0:
                before[after[left]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [i for i in ids if i >= 0]

    def piece(self, token: int, previous: int = -1) -> bytes:
        """Bytes that `token` prints, given the token before it."""
        raw = self.tokens[token]
        found = _RAW.fullmatch(raw)
        if found:
            return bytes([int(found[1], 16)])
        return raw[1:] if previous == BOS and raw.startswith(b" ") else raw

    def decode(self, ids: Iterable[int]) -> str:
        """Token ids -> text; BOS and EOS print nothing, broken UTF-8 prints U+FFFD."""
        out, previous = b"", BOS
        for token in ids:
            if token not in (BOS, EOS):
                out += self.piece(token, previous)
            previous = token
        return out.decode(errors="replace")


def read_tokenizer(path: str | Path, vocab: int) -> Tokenizer:
    """Read a tokenizer.bin that must hold exactly `vocab` tokens.

    Raises BadInput when it is missing, damaged, or made for another vocabulary.
    """
    path = Path(path)
    tokenizer = _parse(path)
    if len(tokenizer) != vocab:
        raise BadInput(
            f"{tokenizer.name}: holds {len(tokenizer)} tokens, the model's vocabulary has "
            f"{vocab}: pass the tokenizer it was trained with"
        )
    return tokenizer


def _parse(path: Path) -> Tokenizer:
    try:
        data = path.read_bytes()
    except OSError as e:
        raise BadInput(f"--tokenizer {path}: cannot be read: {e.strerror or e}") from None

    name = f"--tokenizer {path.name}"

    def bad(what: str) -> BadInput:
        return BadInput(f"{name}: not a llama2.c tokenizer: {what}: pass its tokenizer.bin")

    if len(data) < 4:
        raise bad(f"{len(data)} bytes, but its header takes 4")
    longest = struct.unpack_from("<i", data)[0]
    if not 1 <= longest <= 4096:
        raise bad(f"longest token of {longest} bytes, allowed are 1 to 4096")
    tokens: list[bytes] = []
    scores: list[float] = []
    offset = 4
    while offset < len(data):
        left = len(data) - offset
        if left < 8:
            raise bad(f"{left} trailing bytes after token {len(tokens) - 1}")
        score, size = struct.unpack_from("<fi", data, offset)
        if not 0 <= size <= longest:
            raise bad(f"token {len(tokens)} has {size} bytes, the header allows 0 to {longest}")
        if size > left - 8:
            raise bad(f"token {len(tokens)} has {size} bytes, the file only {left - 8} more")
        if math.isnan(score):
            raise bad(f"token {len(tokens)} has no score (NaN)")
        tokens.append(data[offset + 8 : offset + 8 + size])
        scores.append(score)
        offset += 8 + size
    if tokens and not any(tokens):
        raise bad(f"none of its {len(tokens)} tokens has any text")
    return Tokenizer(name, longest, tuple(tokens), tuple(scores), path)


def find_tokenizer(model: str | Path, vocab: int) -> Tokenizer:
    """The tokenizer beside a checkpoint: tokVOCAB.bin, tokenizer.bin, then any tok*.bin that fits.

    Raises BadInput naming what was found when none has the right vocabulary.
    """
    folder = Path(os.path.realpath(model)).parent
    first = [folder / f"tok{vocab}.bin", folder / "tokenizer.bin"]
    rest = [p for p in sorted(folder.glob("tok*.bin")) if p not in first]
    refused = []
    for path in (*first, *rest):
        if not os.path.isfile(path):
            continue
        try:
            found = read_tokenizer(path, vocab)
        except BadInput as e:
            refused.append(str(e))
        else:
            files.reads(path, f"--tokenizer (found beside {Path(model).name})")
            return found
    if refused:
        raise BadInput(refused[0])
    raise BadInput(
        f"no tokenizer beside {Path(model).name} (looked for tok{vocab}.bin, tokenizer.bin and "
        f"tok*.bin in {folder}): put it there, or pass one as --tokenizer where a command has that option"
    )
