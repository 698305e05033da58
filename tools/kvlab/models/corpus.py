"""Texts to measure a model on: lists of token ids, each a passage that starts with BOS.

Two kinds of file:

* `*.jsonl`: one `{"text": ..., "split": ...}` a line, one passage each. A passage is BOS and the
  text's tokens, cut to `max_tokens` in all; the first token is given, the rest are predicted.
  On the 100 held-out stories of `stories.jsonl` that makes 50,283 predictions, of which
  stories260K in float32 makes 1.4853 nats each.
* any other file is one running text, cut into passages of `max_tokens` that follow each other
  (white space at a seam is dropped, as the tokenizer puts a space of its own there).

A loss per byte divides by the bytes of the text predicted: `text_bytes`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from commandline.errors import BadInput

from .llama2c import BOS, Config
from .tokenizer import Tokenizer

HELDOUT = "heldout"
MAX_TOKENS = 512
MIN_TOKENS = 3  # BOS, the tokenizer's own space, and one that moves on in the text


def read_passages(
    path: str | Path,
    tokenizer: Tokenizer,
    split: str = HELDOUT,
    max_tokens: int = MAX_TOKENS,
    limit: int | None = None,
) -> list[list[int]]:
    """The first `limit` passages (default: all) of a file, each of 2 to `max_tokens` tokens.

    Lines of a .jsonl file without a "split" belong to every split. Raises BadInput when the file
    is missing, malformed, or holds nothing to predict.
    """
    path = Path(path)
    if max_tokens < MIN_TOKENS:
        raise ValueError(f"max_tokens is {max_tokens}, the smallest is {MIN_TOKENS}")
    text = read_text(path)
    found: Iterator[list[int]]
    if path.suffix == ".jsonl":
        found = (
            tokenizer.encode(body)[:max_tokens]
            for body, part in stories(path, text)
            if part is None or part == split
        )
    else:
        found = _running(text, tokenizer, max_tokens)
    passages = list(islice((p for p in found if len(p) > 1), limit))
    if not passages:
        where = f' in split "{split}"' if path.suffix == ".jsonl" else ""
        raise BadInput(f"--text {path}: holds no text{where}: pass a file that does")
    return passages


def check_context(c: Config, option: str) -> None:
    """BadInput where a model's context is too short to predict any text in it."""
    if c.seq_len < MIN_TOKENS:
        raise BadInput(
            f"{option}: was trained for {c.seq_len} tokens, too few to predict text (at least {MIN_TOKENS}): "
            "pass another model"
        )


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark, lines ended by "\\n". BadInput."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise BadInput(f"--text {path}: cannot be read: {reason}") from None


def stories(path: Path, text: str) -> Iterator[tuple[str, str | None]]:
    """(text, split or None) of each line of a .jsonl file read from `path`; BadInput names a bad line."""
    # Not splitlines(): to that a U+2028 inside a string is an end of line too.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            story = json.loads(line)
            body, part = story["text"], story.get("split")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            body = part = None
        if not isinstance(body, str):
            raise BadInput(
                f'--text {path}: line {number} is no JSON object with a "text": pass one a line, '
                "or a file with another ending for plain text"
            )
        if not _encodes(body):
            raise BadInput(
                f"--text {path}: line {number} has half a character (a lone surrogate such as \\ud800): "
                "pass text that UTF-8 can hold"
            )
        yield body, part


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _running(text: str, tokenizer: Tokenizer, max_tokens: int) -> Iterator[list[int]]:
    data = text.encode()
    # The merges near the far end of what is encoded do not reach the tokens kept.
    enough = max_tokens + 16
    at, reach = 0, 4 * enough
    while True:
        while data[at : at + 1].isspace():
            at += 1
        if at >= len(data):
            return
        while True:
            found = tokenizer.encode(data[at : at + reach])
            if len(found) > enough or at + reach >= len(data):
                break
            reach *= 2
        ids = found[:max_tokens]
        yield ids
        size = text_bytes(tokenizer, ids)
        if size == 0:
            raise BadInput(
                f"{tokenizer.name}: its tokens for byte {at:,} of the text print nothing: "
                "pass the tokenizer of the model"
            )
        at += size


def text_bytes(tokenizer: Tokenizer, ids: list[int]) -> int:
    """Bytes of text that a passage's tokens after the first stand for."""
    return sum(len(tokenizer.piece(token, before)) for before, token in zip(ids, ids[1:], strict=False))


def predictions(passages: list[list[int]]) -> int:
    """Tokens predicted: all but the first (BOS) of each passage."""
    assert all(p[0] == BOS for p in passages)
    return sum(len(p) - 1 for p in passages)
