"""What a run trains on: texts from files, streams of tokens, batches cut from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput
from kvlab.models.corpus import HELDOUT, read_text, stories
from kvlab.models.llama2c import BOS

TRAIN = "train"
PLAIN_HELDOUT = 50  # one paragraph of so many is held out of plain text

Array = NDArray[Any]


@dataclass(frozen=True)
class Texts:
    """Stories or paragraphs, those to learn from and those never learned from."""

    train: list[str]
    heldout: list[str]


def read_texts(paths: Sequence[Path]) -> Texts:
    """Read files. Raises BadInput when one is missing or malformed, or nothing is there to learn.

    A .jsonl file holds one {"text": ..., "split": ...} a line: "train" or no split is learned
    from, "heldout" is not, other splits are left out. Any other file is plain text: passages end
    at empty lines, and every 50th is held out.
    """
    train: list[str] = []
    heldout: list[str] = []
    for path in paths:
        text = read_text(path)
        if path.suffix == ".jsonl":
            _jsonl(path, text, train, heldout)
        else:
            passages = [p.strip() for p in text.replace("\r\n", "\n").split("\n\n")]
            for i, passage in enumerate(filter(None, passages)):
                (heldout if i % PLAIN_HELDOUT == PLAIN_HELDOUT - 1 else train).append(passage)
    if not train:
        raise BadInput("--text: holds nothing to learn from: pass a file with text")
    return Texts(train, heldout)


def _jsonl(path: Path, text: str, train: list[str], heldout: list[str]) -> None:
    for body, part in stories(path, text):
        if body and part in (None, TRAIN):
            train.append(body)
        elif body and part == HELDOUT:
            heldout.append(body)


class Batches:
    """Batches of rows cut from streams (as `bpe.stream` makes them), the same for the same seed.

    Half the rows start at a story's BOS, the others anywhere. `shares` is how often each stream
    is chosen.
    """

    def __init__(self, streams: Sequence[Array], shares: Sequence[float], seed: int) -> None:
        self.streams = streams
        self.shares = np.array(shares, np.float64) / sum(shares)
        self.seed = seed
        self.starts = [np.flatnonzero(s[:-1] == BOS) for s in streams]

    def __call__(self, step: int, rows: int, length: int) -> Array:
        """Batch number `step`: (rows, length + 1) tokens. A stream's end is followed by its
        beginning."""
        rng = np.random.default_rng((self.seed, step))
        out = np.empty((rows, length + 1), np.int32)
        for row in range(rows):
            which = int(rng.choice(len(self.streams), p=self.shares))
            stream, starts = self.streams[which], self.starts[which]
            if row % 2 == 0:
                at = int(starts[rng.integers(len(starts))])
            else:
                at = int(rng.integers(len(stream)))
            out[row] = np.take(stream, np.arange(at, at + length + 1), mode="wrap")
        return out
