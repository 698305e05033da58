"""What is measured on what: the model, and passages of equal length from a text it was not trained on."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from commandline.errors import BadInput
from kvlab.models.corpus import HELDOUT, read_passages
from kvlab.models.image import HALF_SPLIT
from kvlab.models.load import is_image, load_checkpoint, load_image
from kvlab.models.reference import Reference
from kvlab.models.tokenizer import Tokenizer

from .kinds import BLOCK

PASSAGE_TOKENS = 512  # or the model's context
LEAST_TOKENS = BLOCK  # of a passage: with fewer nothing is ever sealed
STORY_TOKENS = 1 << 16  # a story is read whole


@dataclass(frozen=True)
class Model:
    """A float model and what tells it apart."""

    name: str
    reference: Reference
    tokenizer: Tokenizer
    crc32: int  # of its file

    @property
    def context(self) -> int:
        return self.reference.config.seq_len


def load_model(path: Path, tokenizer: Path | None = None) -> Model:
    """A llama2.c checkpoint, or a board image with the weights that it stands for. BadInput."""
    if is_image(path):
        image = load_image(path, tokenizer)
        if image.header.flags & HALF_SPLIT:
            raise BadInput(f"--model {path.name}: rotates in halves; pass a model that rotates in pairs")
        name, config, weights, words = path.name, image.config, image.weights(), image.tokenizer
        crc = zlib.crc32(image.data)
    else:
        checkpoint, words = load_checkpoint(path, tokenizer)
        name, config, weights, crc = path.name, checkpoint.config, checkpoint.weights, checkpoint.crc32
    if config.seq_len < LEAST_TOKENS:
        raise BadInput(
            f"--model {path.name}: was trained for {config.seq_len} tokens, a judgement takes {LEAST_TOKENS}"
            " at least: pass another model"
        )
    return Model(name, Reference(config, weights, np.float32), words, crc)


def passages(path: Path, tokenizer: Tokenizer, length: int, tokens: int) -> list[list[int]]:
    """Passages of `length` tokens, as many as it takes to predict `tokens`, or all there are. BadInput.

    Of a .jsonl the held-out stories: the beginning of each, and one that is too short is followed by the
    next, from its BOS on. Of any other file the running text. A text too short for one is one, shorter.
    """
    if path.suffix == ".jsonl":
        found = read_passages(path, tokenizer, HELDOUT, STORY_TOKENS)
    else:
        found = read_passages(path, tokenizer, HELDOUT, length, limit=tokens // (length - 1) + 2)
    out: list[list[int]] = []
    for ids in joined(found, length):
        out.append(ids)
        if sum(len(each) - 1 for each in out) >= tokens:
            break
    if len(out[0]) < LEAST_TOKENS:
        raise BadInput(
            f"--text {path}: has {len(out[0])} tokens, at least {LEAST_TOKENS} are needed: pass a longer one"
        )
    return out


def joined(stories: Iterable[Sequence[int]], length: int) -> Iterator[list[int]]:
    """See `passages`."""
    held: list[int] = []
    whole = False
    for ids in stories:
        held += ids
        if len(held) >= length:
            whole = True
            yield held[:length]
            held = []
    if held and not whole:
        yield held
