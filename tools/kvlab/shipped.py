"""The models that come with the repository, by name, and the stories that each of them told."""

from __future__ import annotations

import os
from pathlib import Path

from commandline import files
from commandline.errors import BadInput
from kvlab import paths

FOLDER = paths.SHIPPED.parent

# Of each a checkpoint and a board image; the first is what commands take where none is named.
NAMES = ("stories", "stories-gqa16", "stories-mha")
TELLERS = NAMES[:2]  # of these stories too, on which the others are judged

SEED = 1001  # of the stories; what the models learned from had others


def image(name: str) -> Path:
    return FOLDER / f"{name}.mkvm"


def checkpoint(name: str) -> Path:
    return FOLDER / f"{name}.bin"


def told(name: str) -> Path:
    """The stories of one of TELLERS, as `kvlab sample --model NAME` wrote them."""
    return FOLDER / "texts" / f"told-by-{name}.jsonl"


def judge(name: str) -> str:
    """Whose stories a model is judged on: never its own."""
    return TELLERS[1] if name == TELLERS[0] else TELLERS[0]


def named(text: str) -> str | None:
    """The name of the shipped model that `text` means, by its name or as the path of its file; else None."""
    if text.lower() in NAMES:
        return text.lower()
    path = os.path.realpath(text)
    return next((name for name in NAMES if path in (str(image(name)), str(checkpoint(name)))), None)


def find(text: str, option: str, kind: str = ".mkvm") -> Path:
    """The image (or of `kind` .bin the checkpoint) of a name, or the file of that path. BadInput."""
    path = FOLDER / f"{text.lower()}{kind}" if text.lower() in NAMES else Path(text)
    if text and path.name == text and not path.suffix and not os.path.lexists(path):
        raise BadInput(f"{option} {text}: no such model and no such file; {', '.join(NAMES)} ship")
    return files.existing_file(path, option)
