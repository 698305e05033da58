"""A byte-fallback BPE vocabulary in llama2.c's form, learned from text.

Ids: 0 `<unk>`, 1 `<s>`, 2 `</s>`, 3..258 the bytes `<0x00>`..`<0xFF>`, then the merges in the
order they were learned (scores 0, -1, -2, ...), last the single characters, the most frequent
first, scored below every merge. Merges never cross from one word into the next, where a word is
what `words` makes of a text: then whole texts may be encoded word by word.

Learned here and by no library, because the tokenizer that ships must come out again, byte for byte (a test
holds it to that). `tokenizers` 0.23 learns the same 196 merges of the same words, but of equally frequent
ones takes the pair of smaller ids first, so that five ranks differ; `sentencepiece` 0.2 has other words and
other pieces. A rank that differs is another id, of which the shipped models know nothing.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput
from kvlab.models.tokenizer import BYTE_BASE, Tokenizer

SPECIAL = (b"<unk>", b"<s>", b"</s>")
LEAST = BYTE_BASE + 256 + 1  # bytes, specials, and the space that starts every text
RARE = 20000  # a character seen less than once in so many is left to the byte tokens

# One optional space and a run of one kind; line ends and the spaces left over each alone.
_WORD = re.compile(r" ?[^\W\d_]+| ?\d| ?[^\w\s]+| ?_+|\s|.", re.DOTALL)


def words(text: str) -> list[str]:
    """A text in pieces that merges stay within; joined they are the text."""
    return _WORD.findall(text)


def train(texts: Iterable[str], vocab: int) -> Tokenizer:
    """Learn a vocabulary. The same texts always give the same one.

    Of equally frequent pairs the one that sorts first by its bytes is merged. Raises BadInput
    when `vocab` is too small, or the texts too poor to fill it.
    """
    counts = Counter(w for text in texts for w in words(" " + text))
    letters: Counter[str] = Counter()
    for word, n in counts.items():
        for letter in word:
            letters[letter] += n
    total = sum(letters.values())
    kept = [x for x, n in letters.items() if n * RARE >= total or x == " "]
    kept.sort(key=lambda x: (-letters[x], x))
    merges = vocab - len(SPECIAL) - 256 - len(kept)
    if merges < 0:
        raise BadInput(
            f"--vocab {vocab}: {len(kept)} characters of the text, 256 bytes and {len(SPECIAL)} "
            f"special tokens need {vocab - merges}"
        )
    characters = [x.encode() for x in kept]
    learned: list[bytes] = []
    # Each word as pieces; characters that are no token split it for good.
    spelled = {w: _spell(w, set(kept)) for w in counts}
    pairs: Counter[bytes] = Counter()
    where: dict[bytes, set[str]] = {}

    def count(word: str, sign: int) -> None:
        n = counts[word] * sign
        for run in spelled[word]:
            for a, b in zip(run, run[1:], strict=False):
                pairs[a + b] += n
                where.setdefault(a + b, set()).add(word)

    for word in counts:
        count(word, 1)
    ranks: dict[bytes, int] = {}
    while len(learned) < merges:
        found = min(((-n, joined) for joined, n in pairs.items() if n > 0), default=None)
        if found is None:
            raise BadInput(
                f"--vocab {vocab}: the text is too small, nothing is left to merge after "
                f"{vocab - merges + len(learned)} tokens: pass more text or a smaller number"
            )
        joined = found[1]
        ranks[joined] = len(learned)
        learned.append(joined)
        for word in where.pop(joined):
            count(word, -1)
            start = _spell(word, set(kept))
            spelled[word] = [_merge(run, ranks) for run in start]
            count(word, 1)
        del pairs[joined]
    tokens = (*SPECIAL, *(b"<0x%02X>" % i for i in range(256)), *learned, *characters)
    scores = [0.0] * (BYTE_BASE + 256) + [-float(i) for i in range(vocab - BYTE_BASE - 256)]
    return Tokenizer("trained", max(map(len, tokens)), tokens, tuple(scores))


def _spell(word: str, known: set[str]) -> list[list[bytes]]:
    """Runs of characters that have a token."""
    runs: list[list[bytes]] = [[]]
    for letter in word:
        if letter in known:
            runs[-1].append(letter.encode())
        elif runs[-1]:
            runs.append([])
    return runs


def _merge(run: list[bytes], ranks: dict[bytes, int]) -> list[bytes]:
    """As `Tokenizer.encode` merges: the best joined neighbours first, the leftmost of equals."""
    run = list(run)
    while True:
        offers = [
            (ranks[a + b], i) for i, (a, b) in enumerate(zip(run, run[1:], strict=False)) if a + b in ranks
        ]
        if not offers:
            return run
        at = min(offers)[1]
        run[at : at + 2] = [run[at] + run[at + 1]]


class Encoder:
    """Texts -> ids exactly as `tokenizer.encode` gives them, each word only once.

    For a tokenizer that `train` made: no merge of it crosses words.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.known: dict[str, list[int]] = {}
        # Encoded behind a line end, a word's own spaces are the only ones.
        self.lead = len(tokenizer.encode(b"\n", bos=False))

    def __call__(self, text: str) -> list[int]:
        out: list[int] = []
        for word in words(" " + text) if text else []:
            ids = self.known.get(word)
            if ids is None:
                ids = self.tokenizer.encode("\n" + word, bos=False)[self.lead :]
                self.known[word] = ids
            out += ids
        return out


def stream(tokenizer: Tokenizer, texts: Iterable[str], bos: int) -> NDArray[np.uint16]:
    """All texts, BOS before each and after the last."""
    encode = Encoder(tokenizer)
    parts: list[NDArray[np.uint16]] = []
    for text in texts:
        parts.append(np.array([bos, *encode(text)], np.uint16))
    return np.concatenate([*parts, np.array([bos], np.uint16)])


def pack(tokenizer: Tokenizer) -> bytes:
    """The bytes of a tokenizer.bin."""
    out = [struct.pack("<i", tokenizer.max_token_bytes)]
    for token, score in zip(tokenizer.tokens, tokenizer.scores, strict=True):
        out.append(struct.pack("<fi", score, len(token)) + token)
    return b"".join(out)


def write(path: Path, tokenizer: Tokenizer) -> None:
    """Write a tokenizer.bin that `read_tokenizer` and llama2.c read."""
    path.write_bytes(pack(tokenizer))
