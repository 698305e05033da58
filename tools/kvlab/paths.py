"""Where things are. Follows from the place of this file: the package is installed editable."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOARDS = ROOT / "boards"
APPS = BOARDS / "apps"
SHIPPED = BOARDS / "models" / "stories.mkvm"  # the model that comes with the repository
OUT = ROOT / "out"

DATA_ENV = "KVLAB_DATA"

# Files of the data folder.
STORIES260K = "stories260K/stories260K.bin"
STORIES = "corpus/stories.jsonl"


def data_dir() -> Path | None:
    """The folder of optional data: `$KVLAB_DATA`, else `../shared/data` beside the repository."""
    given = os.environ.get(DATA_ENV)
    folder = Path(given) if given else ROOT.parent / "shared" / "data"
    return folder if os.path.isdir(folder) else None


def find_data(relative: str) -> Path | None:
    """A file of the data folder, or None when the folder or the file is absent."""
    folder = data_dir()
    if folder is None:
        return None
    path = folder / relative
    return path if os.path.isfile(path) else None


def shown(path: Path) -> str:
    """A path for people: relative to the current directory when it lies below it. A link has its own name,
    not that of what it leads to."""
    if path.name in ("", ".."):
        real = Path(os.path.realpath(path))
    else:
        real = Path(os.path.realpath(path.parent)) / path.name
    try:
        return str(real.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
