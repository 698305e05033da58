"""What is measured on what: the model, and passages of equal length from a text it was not trained on."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kvlab import paths
from kvlab.errors import BadInput
from kvlab.models.corpus import HELDOUT, read_passages
from kvlab.models.image import HALF_SPLIT
from kvlab.models.llama2c import BOS
from kvlab.models.load import is_image, load_checkpoint, load_image
from kvlab.models.reference import Reference, Session
from kvlab.models.tokenizer import Tokenizer

from .kinds import BLOCK

PASSAGE_TOKENS = 512  # or the model's context
LEAST_TOKENS = BLOCK  # of a passage: with fewer nothing is ever sealed
STORY_TOKENS = 1 << 16  # a story is read whole

SHIPPED = paths.SHIPPED.with_suffix(".bin")
SAMPLED = Path(__file__).with_name("sampled.jsonl")
SAMPLED_SEED = 1001  # of its first story; the model was trained with others
SAMPLED_STORIES = 26

_MODEL = "stories260K/stories260K.bin"  # in the data folder
_STORIES = "corpus/stories.jsonl"


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


def default_model() -> Path:
    """stories260K from the data folder, else the checkpoint of the shipped model."""
    return paths.find_data(_MODEL) or SHIPPED


def default_text() -> tuple[Path, str]:
    """The held-out stories of the data folder, else what the shipped model told; and what to call it."""
    found = paths.find_data(_STORIES)
    if found is not None:
        return found, f"held-out stories of {found.name}"
    return SAMPLED, f"sampled from the shipped model, seeds {SAMPLED_SEED} and on ({SAMPLED.name})"


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


def sampled(reference: Reference, tokenizer: Tokenizer, seed: int, length: int) -> str:
    """A text of `length` tokens that the model tells at temperature 1, further stories after its first."""
    ids: list[int] = []
    for token in Session(reference, length).generate(temperature=1.0, seed=seed):
        ids.append(token)
    pieces = [tokenizer.decode(list(part)).strip() for part in _split(ids)]
    return "\n".join(piece for piece in pieces if piece)


def _split(ids: Iterable[int]) -> Iterator[list[int]]:
    part: list[int] = []
    for token in ids:
        if token == BOS:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def write_sampled(path: Path, done: Callable[[int], None] = lambda _n: None) -> None:
    """Make SAMPLED anew: the shipped model in float64, so that every machine draws the same."""
    checkpoint, words = load_checkpoint(SHIPPED)
    reference = Reference(checkpoint.config, checkpoint.weights, np.float64)
    lines = []
    for seed in range(SAMPLED_SEED, SAMPLED_SEED + SAMPLED_STORIES):
        text = sampled(reference, words, seed, PASSAGE_TOKENS)
        lines.append(json.dumps({"text": text, "split": HELDOUT}, ensure_ascii=False) + "\n")
        done(1)
    path.write_text("".join(lines), encoding="utf-8")
