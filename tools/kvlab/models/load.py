"""A model however the user has it: a board image, or a checkpoint to convert on the fly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from commandline.errors import BadInput

from .image import MAGIC, Image, convert
from .llama2c import OPTION, Checkpoint, read_checkpoint
from .tokenizer import Tokenizer, find_tokenizer, read_tokenizer


def load_image(
    path: str | Path,
    tokenizer: str | Path | None = None,
    seq_len: int | None = None,
    option: str = OPTION,
    done: Callable[[int], None] | None = None,
) -> Image:
    """Image of the model at `path`. Raises BadInput; messages start with `option`.

    For a checkpoint, `tokenizer` (default: the one beside it) and `seq_len` are those of
    `convert`; an image carries its own, and to name one beside it is refused.
    """
    path = Path(path)
    if is_image(path):
        for name, given in (("--tokenizer", tokenizer), ("--seq-len", seq_len)):
            if given is not None:
                raise BadInput(f"{name} {given}: {option} {path.name} is a board image, which has its own")
        return Image.read(path, option)
    checkpoint, words = load_checkpoint(path, tokenizer, option)
    data = convert(checkpoint, words, seq_len, done=done)
    return Image.parse(data, f"{option} {path.name}")


def load_checkpoint(
    path: str | Path, tokenizer: str | Path | None = None, option: str = OPTION
) -> tuple[Checkpoint, Tokenizer]:
    """A checkpoint with its tokenizer, by default the one beside it. Raises BadInput."""
    checkpoint = read_checkpoint(path, option)
    vocab = checkpoint.config.vocab
    if tokenizer is None:
        return checkpoint, find_tokenizer(path, vocab)
    return checkpoint, read_tokenizer(tokenizer, vocab)


def is_image(path: str | Path) -> bool:
    """Whether the file starts as a board image does; False also when it cannot be read."""
    try:
        with Path(path).open("rb") as f:
            return f.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
