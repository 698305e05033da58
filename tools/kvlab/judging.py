"""Models and the texts they are judged on: the figures of `kvlab quality`, model by model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commandline import files
from commandline.errors import BadInput, FellShort
from kvlab import output, paths, shipped
from kvlab.element_types import EXACT
from kvlab.models.image import with_codecs
from kvlab.models.load import load_image
from kvlab.quality import cache, measure, policies
from kvlab.quality import text as texts
from kvlab.quality.codecs import Refused
from kvlab.quality.defaults import BUDGETS, TOKENS
from kvlab.quality.harness import Harness


@dataclass(frozen=True)
class Pair:
    """A model's file, and the text it is judged on with what to call that."""

    model: Path
    text: Path
    label: str


def pairs(model: str | None = None, text: str | None = None) -> list[Pair]:
    """Who is judged on what.

    `model`: the name of a shipped model, or a file; None: every shipped one, and stories260K where the data
    folder has it. `text`: a file. Without one a shipped model is judged on what another told, any other on
    the held-out stories of the data folder, or where there are none on what the first shipped one told.
    BadInput.
    """
    names = list(shipped.NAMES) if model is None else [model]
    sources = [(shipped.find(name, "--model", ".bin"), shipped.named(name)) for name in names]
    if model is None and (found := paths.find_data(paths.STORIES260K)) is not None:
        sources.append((found, None))
    given = files.existing_file(text, "--text") if text is not None else None
    return [Pair(path, *((given, given.name) if given else _text_for(name))) for path, name in sources]


def _text_for(name: str | None) -> tuple[Path, str]:
    """For a shipped model, or None for any other; and what to call it."""
    found = paths.find_data(paths.STORIES) if name is None else None
    if found is not None:
        return found, f"held-out stories of {found.name}"
    teller = shipped.judge(name) if name else shipped.NAMES[0]
    return shipped.told(teller), f"{shipped.told(teller).name}, seed {shipped.SEED}"


@dataclass(frozen=True)
class Asked:
    """What is measured of each model."""

    codecs: list[str]
    policies: list[str]
    budgets: str | None = None
    policy_codec: str = EXACT
    tokens: int = TOKENS
    context: int = texts.PASSAGE_TOKENS
    gate_kld: float | None = None
    target: Path | None = None
    fresh: bool = False


def judge(pair: Pair, asked: Asked, words: Path | None = None) -> tuple[dict[str, Any], Harness]:
    """The figures of one model on its text. FellShort where a codec cannot store what it computes."""
    with output.waiting("Reading ..."):
        subject = texts.load_model(pair.model, words)
        length = min(texts.PASSAGE_TOKENS, subject.context)
        passages = texts.passages(pair.text, subject.tokenizer, length, asked.tokens)
        image = None
        if asked.target is not None:
            image = load_image(pair.model, words)
            files.prepare(asked.target, "--image")
    limits = _budgets(asked.budgets, len(passages[0]), asked.policies)
    results = cache.Results(cache.folder(), subject.crc32, asked.fresh)
    harness = Harness(subject.reference, passages, results)
    figures: dict[str, Any] = {
        "model": subject.name,
        "text": pair.label,
        "passages": len(passages),
        "passage_tokens": len(passages[0]),
        "tokens": sum(len(ids) - 1 for ids in passages),
        "budgets": limits,
        "context_tokens": asked.context,
    }
    try:
        figures |= measure.codecs_and_policies(
            harness, asked.codecs, asked.policies, limits, asked.policy_codec, asked.context
        )
        if asked.gate_kld is not None:
            figures["gate"] = measure.gated(harness, asked.gate_kld, asked.context)
    except Refused as error:
        raise FellShort(
            f"{subject.name} has numbers that a codec cannot store: {error}: leave the codec out of --codecs"
        ) from error
    if asked.target is not None and image is not None and figures["gate"]["layers"] is not None:
        files.write(asked.target, with_codecs(image, figures["gate"]["layers"]), "--image")
        figures["gate"]["image"] = str(asked.target)
    return figures, harness


def _budgets(given: str | None, length: int, chosen: Sequence[str]) -> list[int]:
    """Rising; each below the passages' length, or nothing would be evicted, and above the sinks."""
    text = given or ",".join(map(str, BUDGETS))
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise BadInput(f"--budgets {text}: write whole numbers such as 128,64") from None
    sinks = (policies.POLICIES[name].sinks for name in chosen if name in policies.POLICIES)
    least = 2 + max(sinks, default=0)
    fits = [budget for budget in found if least <= budget < length]
    if given is not None and len(fits) < len(found):
        raise BadInput(f"--budgets {text}: must be {least} to {length - 1}: passages have {length} tokens")
    return fits
