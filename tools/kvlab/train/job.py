"""One training run from files to files. Needs jax only in `train`."""

from __future__ import annotations

import io
import json
import math
import os
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput
from kvlab.models.llama2c import BOS, Config
from kvlab.models.load import load_checkpoint
from kvlab.models.tokenizer import Tokenizer, read_tokenizer

from . import bpe, checkpoint, data, teacher
from .plan import STEADY, Plan
from .shape import DEFAULTS

SAVE_EVERY = 50  # steps
LAST_STEPS = 10**9  # of a plan whose length the clock settles
JUDGED = (64, 128)  # rows and tokens of the held-out estimate
NEED_JAX = "training needs jax: install it with `.venv/bin/pip install -e '.[train]'`"

Array = NDArray[Any]


SHAPE = Config(**DEFAULTS, shared=True)


@dataclass(frozen=True)
class Job:
    """What was asked for. Two jobs that are equal make the same model."""

    texts: tuple[Path, ...]
    out: Path
    name: str
    seed: int
    config: Config
    batch_tokens: int
    text_share: float
    teacher: Path | None
    teacher_tokens: int

    def settings(self) -> dict[str, Any]:
        """What must not change between a run and its resumption."""
        return {
            "seed": self.seed,
            **asdict(self.config),
            "batch_tokens": self.batch_tokens,
            "text_share": self.text_share if self.teacher else 1.0,
            "text_crc32": [zlib.crc32(p.read_bytes()) for p in self.texts],
            "teacher_crc32": zlib.crc32(self.teacher.read_bytes()) if self.teacher else None,
            "teacher_tokens": self.teacher_tokens if self.teacher else 0,
        }

    @property
    def vocab(self) -> int:
        return self.config.vocab

    @property
    def checkpoint(self) -> Path:
        return self.out / f"{self.name}.bin"

    @property
    def image(self) -> Path:
        return self.out / f"{self.name}.mkvm"

    @property
    def card(self) -> Path:
        return self.out / f"{self.name}.md"

    @property
    def tokenizer(self) -> Path:
        return self.out / f"tok{self.vocab}.bin"

    @property
    def state(self) -> Path:
        return self.out / f"{self.name}.state.npz"

    @property
    def told(self) -> Path:
        return self.out / "teacher.jsonl"

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Every file a run may write."""
        return (self.checkpoint, self.image, self.card, self.tokenizer, self.state, self.told)


@dataclass
class Prepared:
    """Everything a run reads, in memory."""

    tokenizer: Tokenizer
    streams: list[Array]
    shares: list[float]
    heldout: list[str]
    figures: dict[str, Any] = field(default_factory=dict)


def prepare(job: Job, told: Callable[[int], None] | None = None) -> Prepared:
    """Learn the vocabulary, let the teacher talk, and turn all text into tokens.

    `told(n)` is called as the teacher adds n tokens. What it said is kept in `job.told` and taken
    from there when the same teacher, seed and amount are asked for again.
    """
    texts = data.read_texts(job.texts)
    tokenizer = bpe.train(texts.train, job.vocab)
    checkpoint.replace(job.tokenizer, bpe.pack(tokenizer))
    tokenizer = read_tokenizer(job.tokenizer, job.vocab)
    streams, shares = [bpe.stream(tokenizer, texts.train, BOS)], [1.0]
    figures: dict[str, Any] = {
        "text_stories": len(texts.train),
        "text_tokens": len(streams[0]),
        "teacher_stories": 0,
        "teacher_stream_tokens": 0,
    }
    if job.teacher:
        stories = tell(job, told)
        streams.append(bpe.stream(tokenizer, stories, BOS))
        shares = [job.text_share, 1 - job.text_share]
        figures["teacher_stories"] = len(stories)
        figures["teacher_stream_tokens"] = len(streams[1])
    return Prepared(tokenizer, streams, shares, texts.heldout, figures)


def tell(job: Job, told: Callable[[int], None] | None) -> list[str]:
    """The teacher's stories, from the last time if nothing has changed since."""
    assert job.teacher is not None
    model, words = load_checkpoint(job.teacher, option="--teacher")
    key = {"crc32": model.crc32, "tokens": job.teacher_tokens, "seed": job.seed}
    try:
        first, *rest = job.told.read_text(encoding="utf-8").strip().split("\n")
        if json.loads(first) == key:
            return [json.loads(line)["text"] for line in rest]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # absent, or no file of ours: told anew
    stories = teacher.stories(model, words, job.teacher_tokens, job.seed, told)
    lines = [json.dumps(key), *(json.dumps({"text": s}) for s in stories)]
    checkpoint.replace(job.told, ("\n".join(lines) + "\n").encode())
    return stories


def pack_state(settings: dict[str, Any], step: int, parts: dict[str, dict[str, Any]]) -> bytes:
    """A run that can go on: settings, steps done, and named groups of arrays."""
    out = io.BytesIO()
    arrays: dict[str, Any] = {f"{g}/{k}": np.asarray(v) for g, p in parts.items() for k, v in p.items()}
    np.savez(out, settings=json.dumps(settings), step=step, **arrays)
    return out.getvalue()


def read_state(path: Path, settings: dict[str, Any]) -> tuple[int, dict[str, dict[str, Array]]]:
    """The reverse of `pack_state`. Raises BadInput when the run had other settings."""
    try:
        with np.load(path) as found:
            stored = json.loads(str(found["settings"]))
            step = int(found["step"])
            parts: dict[str, dict[str, Array]] = {}
            for key in found.files:
                group, slash, name = key.partition("/")
                if slash:
                    parts.setdefault(group, {})[name] = found[key]
    except FileNotFoundError:
        raise BadInput(f"--resume: no run to go on with in {path.parent}") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as e:
        raise BadInput(f"--resume: {path.name} is damaged ({e}): start without --resume") from None
    for key, value in settings.items():
        if stored.get(key) != value:
            raise BadInput(
                f"--resume: the run in {path.parent} had {key} {stored.get(key)}, this one has "
                f"{value}: pass what it was started with, or start without --resume"
            )
    return step, parts


Watch = Callable[[int, int, float, "float | None"], None]


def train(
    job: Job, ready: Prepared, steps: int | None, minutes: float | None, resume: bool, watch: Watch
) -> dict[str, Any]:
    """Train and leave a checkpoint in `job.checkpoint`; what it took.

    Either `steps`, or `minutes` after whose steady part the number of steps is settled.
    `watch(step, steps, nats, heldout)` after each step; heldout is None when nothing is new.
    Raises BadInput when jax is missing.
    """
    try:
        from . import llama, loop
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] not in ("jax", "jaxlib"):
            raise
        raise BadInput(NEED_JAX) from None

    settings = job.settings()
    params, first, spent = llama.initial(job.config, job.seed), 0, 0.0
    state = loop.fresh(params)
    if resume:
        first, parts = read_state(job.state, settings)
        params, state = parts["params"], parts["state"]
        spent = float(parts["clock"]["seconds"])
    batches = data.Batches(ready.streams, ready.shares, job.seed)
    run = _Run(job, settings, ready, steps, minutes, time.monotonic() - spent, watch)
    loop.run(job.config, params, state, run.plan, first, batches, run.after)
    return {
        "steps": run.plan.steps,
        "minutes": run.seconds / 60,
        "cores": os.cpu_count() or 1,
        "jax": version("jax"),
        "numpy": np.__version__,
        "settings": settings,
        "config": asdict(job.config),
    }


class _Run:
    """What happens after each step: the plan may be settled, the run stored, the held-out loss told."""

    def __init__(
        self,
        job: Job,
        settings: dict[str, Any],
        ready: Prepared,
        steps: int | None,
        minutes: float | None,
        began: float,
        watch: Watch,
    ) -> None:
        self.plan = Plan(steps or LAST_STEPS, job.batch_tokens, job.config.seq_len)
        self._job = job
        self._settings = settings
        self._minutes = minutes
        self._began = began
        self._watch = watch
        self._judged = None
        if ready.heldout:
            stream = bpe.stream(ready.tokenizer, ready.heldout, BOS)
            self._judged = data.Batches([stream], [1.0], 99)(0, *JUDGED)

    @property
    def seconds(self) -> float:
        """Spent so far, those before a resumption included."""
        return time.monotonic() - self._began

    def after(self, step: int, params: Any, state: Any, nats: float) -> Plan:
        """The plan to go on with."""
        from . import loop

        done = step + 1
        if not math.isfinite(nats):
            raise BadInput(f"step {done} lost its way (loss {nats}): try another --seed")
        if self._minutes is not None and self.plan.steps == LAST_STEPS:
            steady = self.seconds < STEADY * 60 * self._minutes
            if not steady:
                self.plan = Plan(math.ceil(done / STEADY), self.plan.batch_tokens, self.plan.seq_len)
        heldout = None
        if done % SAVE_EVERY == 0 or done == self.plan.steps:
            self._save(done, params, state)
            if self._judged is not None:
                heldout = float(loop.judge(self._job.config, params, self._judged))
        self._watch(done, self.plan.steps, nats, heldout)
        return self.plan

    def _save(self, done: int, params: Any, state: Any) -> None:
        from . import llama

        job = self._job
        parts = {"params": params, "state": state, "clock": {"seconds": self.seconds}}
        weights = llama.to_weights(job.config, params)
        checkpoint.replace(job.checkpoint, checkpoint.pack(job.config, weights))
        checkpoint.replace(job.state, pack_state(self._settings, done, parts))
