"""Models as the planner finds them: published facts, the shipped image, any image, checkpoint, config."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

from commandline import files
from commandline.errors import BadInput, did_you_mean
from kvlab import facts, paths, shipped
from kvlab.models import image as images
from kvlab.models import llama2c
from kvlab.models.load import is_image
from kvlab.models.tokenizer import find_tokenizer
from kvlab.plan.configs import from_config
from kvlab.plan.llama import image_bytes, of_llama
from kvlab.plan.shape import Model

__all__ = ["Model", "catalogue", "find", "from_config", "from_file", "published"]

TOKEN_BYTES = 12  # a token in an image's tokenizer section, where there is none to measure: 8 and its text


@cache
def published() -> dict[str, Model]:
    """The models of facts/models.json by id."""
    data = json.loads(facts.MODELS.read_text(encoding="utf-8"))
    return {name: from_config(config, name, f"{facts.MODELS.name}: {name}") for name, config in data.items()}


def catalogue() -> dict[str, Model]:
    """Every model that has a name: the shipped ones, if they are here, and the published ones."""
    known = {}
    for name in shipped.NAMES:
        path = shipped.image(name)
        if os.path.isfile(path):
            where = os.path.relpath(path, paths.ROOT)
            model = from_file(path, name)
            known[name] = replace(model, title=f"a shipped model ({where})", sources=(where,))
    return {**known, **published()}


def find(text: str) -> Model:
    """A model by its name, or the file of that path. BadInput lists what there is."""
    known = catalogue()
    if text.lower() in known:
        if text.lower() in shipped.NAMES:
            files.reads(shipped.image(text.lower()), "--model")
        return known[text.lower()]
    path = Path(text)
    if os.path.exists(path) and text:
        return from_file(files.existing_file(path, "--model"))
    hint = did_you_mean(text.lower(), known)
    raise BadInput(f"--model {text}: no such model and no such file{hint}; `kvlab models` lists the models")


def from_file(path: Path, name: str | None = None) -> Model:
    """A model from a board image, a llama2.c checkpoint or a config.json."""
    if path.suffix == ".json":
        config = facts.read_json(path, f"--model {path}")
        return from_config(config, name or path.stem, f"--model {path.name}")
    if is_image(path):
        image = images.Image.read(path)
        c, size = image.config, len(image.data)
        tokenizer = image.header.tokenizer_bytes
        warnings: tuple[str, ...] = ()
        if image.codecs is not None:
            named = ", ".join(image.codecs)
            warnings = (f"its image names element types by layer ({named}): a plan is of one, see --codec",)
    else:
        try:
            with path.open("rb") as f:
                c = llama2c.parse_header(f.read(llama2c.VERSIONED_BYTES), f"--model {path.name}")[1]
        except OSError as error:
            raise BadInput(f"--model {path}: cannot be read: {error.strerror or error}") from error
        try:
            tokenizer, warnings = images.tokenizer_bytes(find_tokenizer(path, c.vocab)), ()
        except files.Overlap:
            raise
        except BadInput:
            tokenizer = TOKEN_BYTES * c.vocab
            warnings = (f"no tokenizer beside {path.name}: taken as {TOKEN_BYTES} bytes a token",)
        size = image_bytes(c, tokenizer)
    return of_llama(c, name or path.stem.lower(), str(path.name), size, warnings)
