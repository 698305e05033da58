"""What the fixed-point device costs in quality, on real text: nats per token and top-1 agreement.

The device's logits come from the stories app itself, run on the MicroPython unix port with the
fastest kernels that pass their self-check; keys and values "as stored" from the device's own
encoder. The float side is models.reference; the two share no code.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput, FellShort
from kvlab.bench.stored import DeviceCodec
from kvlab.models.corpus import check_context, read_passages
from kvlab.models.image import convert
from kvlab.models.load import load_checkpoint
from kvlab.models.reference import Reference, cross_entropy
from unix_port import port, processes

Array = NDArray[Any]
Passage = Sequence[int]

RESET = -1  # of the stories app's dump


def device_logits(
    image: bytes, passages: Sequence[Passage], window: int, policy: str | None = None
) -> list[Array]:
    """The device's logits (T-1, vocab) of each passage, which starts from an empty cache.

    A token sees `window` tokens, itself included: the newest, or those that `policy` keeps.
    """
    ids: list[int] = []
    for passage in passages:
        ids += [RESET, *passage[:-1]]
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        place = Path(folder)
        (place / "model").write_bytes(image)
        (place / "ids").write_bytes(np.array(ids, "<i4").tobytes())
        run = "import sys; from stories import app; app.main(sys.argv[1:])"
        options = ["--model", "model", "--window", str(window), "--sinks", "0"]
        if policy is not None:
            options += ["--policy", policy]
        done = port.run(
            ["-c", run, *options, "--dump", "ids", "logits"],
            heap_bytes=len(image) * 2 + (32 << 20),
            cwd=place,
        )
        if done.status != 0:
            raise FellShort(f"bench loss: the device's run failed: {done.stderr.strip()}")
        if not (place / "logits").is_file():
            raise port.no_micropython(done.stderr or done.stdout)
        raw = (place / "logits").read_bytes()
    if raw[:4] != b"MKVL":
        raise FellShort("bench loss: the device wrote no logits")
    _, vocab, point, _ = struct.unpack_from("<4sIII", raw)
    rows = np.frombuffer(raw, "<i4", offset=16).reshape(-1, vocab)
    ends = np.cumsum([len(p) - 1 for p in passages])
    return [part / 2.0**point for part in np.split(rows, ends[:-1])]


@dataclass(frozen=True)
class Kept:
    """Token policies to try on the device, each keeping so many tokens."""

    policies: Sequence[str] = ()
    budget: int = 0


EVERYTHING = Kept()

GROUPS = (32, 8)  # of int8 keys and values, where a model's heads can have them


@dataclass(frozen=True)
class Prepared:
    """A model in float32 and as a board's image, the passages to judge it on, and the groups it can have."""

    model: Reference
    image: bytes
    passages: Sequence[Passage]
    groups: Sequence[int]


def prepared(
    path: Path,
    text: Path,
    tokenizer: Path | None = None,
    limit: int | None = None,
    kept: Kept = EVERYTHING,
    converting: Callable[[int], None] = lambda _n: None,
) -> Prepared:
    """Of the checkpoint at `path` and the first `limit` passages of `text`. BadInput, before anything is
    converted."""
    checkpoint, words = load_checkpoint(path, tokenizer, option="--model")
    c = checkpoint.config
    check_context(c, f"--model {path.name}")
    if kept.budget > c.seq_len:
        raise BadInput(f"--budget {kept.budget}: {path.name} was trained for {c.seq_len} tokens: lower it")
    groups = [g for g in GROUPS if (c.kv_heads * c.head_dim) % g == 0 and _share(g, c.head_dim)]
    passages = read_passages(text, words, max_tokens=c.seq_len, limit=limit)
    image = convert(checkpoint, words, done=converting)
    return Prepared(Reference(c, checkpoint.weights, np.float32), image, passages, groups)


def _share(group: int, head_dim: int) -> bool:
    """Whether groups are whole heads or parts of one."""
    return head_dim % group == 0 or group % head_dim == 0


class Tally:
    """Sums over predicted tokens."""

    def __init__(self) -> None:
        self.tokens = 0
        self.float_nats = 0.0
        self.device_nats = 0.0
        self.agree = 0
        self.stored_nats: dict[int, float] = {}
        self.policy_nats: dict[str, float] = {}


def _judge(
    ready: Prepared, passages: Sequence[Passage], window: int, kept: Kept, done: Callable[[int], None]
) -> Tally:
    """One worker's share."""
    tally = Tally()
    model, image, groups = ready.model, ready.image, ready.groups
    c = model.config
    with ExitStack() as running:
        codecs = {g: running.enter_context(DeviceCodec(c.kv_heads, c.head_dim, g)) for g in groups}
        for passage, device in zip(passages, device_logits(image, passages, window), strict=True):
            processes.check_going_on()
            logits = model.forward(passage[:-1])
            tally.tokens += len(device)
            tally.float_nats += cross_entropy(logits, passage[1:]).sum()
            tally.device_nats += cross_entropy(device, passage[1:]).sum()
            tally.agree += int((device.argmax(-1) == logits.argmax(-1)).sum())
            for g, codec in codecs.items():
                nats = model.nats(passage, kv_transform=codec.transform).sum()
                tally.stored_nats[g] = tally.stored_nats.get(g, 0.0) + nats
            done(1)
    for policy in kept.policies:
        processes.check_going_on()
        found = device_logits(image, passages, kept.budget, policy)
        tally.policy_nats[policy] = sum(
            cross_entropy(device, passage[1:]).sum() for passage, device in zip(passages, found, strict=True)
        )
        done(len(passages))
    return tally


def measure(
    ready: Prepared, kept: Kept = EVERYTHING, done: Callable[[int], None] = lambda _n: None
) -> dict[str, Any]:
    """The figures of `kvlab bench loss`.

    int8_gN_ppl_pct: change of perplexity when only keys and values are stored as int8 in groups
    of N and all else stays float32. device_change_pct: change of the loss in nats, whole pipeline.
    policies: of each, the device's loss and its change of perplexity against the device that keeps all.
    """
    passages = ready.passages
    longest = max(len(p) - 1 for p in passages)
    workers = min(os.cpu_count() or 1, len(passages))
    shares = [passages[i::workers] for i in range(workers)]
    tallies = []
    with ThreadPoolExecutor(workers) as pool:
        with processes.signals_held():
            jobs = [pool.submit(_judge, ready, share, longest, kept, done) for share in shares]
        for job in processes.as_completed(jobs):
            tallies.append(job.result())
    tokens = sum(t.tokens for t in tallies)
    float_nats = sum(t.float_nats for t in tallies) / tokens
    device_nats = sum(t.device_nats for t in tallies) / tokens
    figures: dict[str, Any] = {
        "passages": len(passages),
        "tokens": tokens,
        "float32_nats": float_nats,
        "device_nats": device_nats,
        "device_change_pct": 100 * (device_nats / float_nats - 1),
        "top1_pct": 100 * sum(t.agree for t in tallies) / tokens,
    }
    for g in ready.groups:
        nats = sum(t.stored_nats[g] for t in tallies) / tokens
        figures[f"int8_g{g}_ppl_pct"] = 100 * float(np.expm1(nats - float_nats))
    if kept.policies:
        figures["budget"] = kept.budget
        figures["policies"] = {}
    for policy in kept.policies:
        nats = sum(t.policy_nats[policy] for t in tallies) / tokens
        change = 100 * float(np.expm1(nats - device_nats))
        figures["policies"][policy] = {"nats": nats, "perplexity_change_pct": change}
    return figures
