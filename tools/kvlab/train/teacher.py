"""Text told by a model, many stories at once: what a small corpus is stretched with, and judged on."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput
from kvlab.models.llama2c import BOS, Checkpoint
from kvlab.models.reference import Reference
from kvlab.models.tokenizer import Tokenizer

ROWS = 256  # stories a batch tells at once
FRUITLESS = 8  # batches without one story that is long enough, and no more are tried

Array = NDArray[Any]


def stories(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    count: int,
    seed: int,
    done: Callable[[int], None] | None = None,
    rows: int = ROWS,
) -> list[str]:
    """At least `count` tokens of text at temperature 1, one string a story.

    Each row of a batch starts from BOS and fills the teacher's context; where it says BOS a story
    ends and the next begins. The last of a row, which the context cuts, is kept as it is.
    The same seed gives the same text, however many threads there are.
    """
    c = checkpoint.config
    model = Reference(c, checkpoint.weights, np.float32)
    batches = -(-count // (rows * c.seq_len))

    def tell(batch: int) -> Array:
        return _batch(model, rows, np.random.default_rng((seed, batch)), done)

    found: list[str] = []
    with ThreadPoolExecutor(min(os.cpu_count() or 1, batches)) as pool:
        for told in pool.map(tell, range(batches)):
            for row in told:
                found += split(row.tolist(), tokenizer)
    return found


def long_stories(
    model: Reference,
    tokenizer: Tokenizer,
    count: int,
    least: int,
    seed: int,
    done: Callable[[int], None] = lambda _n: None,
    rows: int = ROWS,
) -> list[str]:
    """`count` stories at temperature 1, each from BOS to the end of the model's context, or to the next BOS
    where the story has `least` tokens by then, BOS counted, also when its text is encoded again.

    `done(1)` for each. A model in float64 draws the same on every machine. BadInput where hardly any story
    is so long.
    """
    found: list[str] = []
    batch = fruitless = 0
    while len(found) < count:
        before = len(found)
        for row in _batch(model, rows, np.random.default_rng((seed, batch)), None).tolist():
            end = row.index(BOS) if BOS in row else len(row)
            text = tokenizer.decode(row[:end]).strip()
            if end + 1 >= least and len(tokenizer.encode(text)) >= least and len(found) < count:
                found.append(text)
                done(1)
        batch += 1
        fruitless = 0 if len(found) > before else fruitless + 1
        if fruitless == FRUITLESS:
            raise BadInput(f"--least {least}: of {FRUITLESS * rows:,} stories none is so long; pass less")
    return found


def _batch(
    model: Reference, rows: int, rng: np.random.Generator, done: Callable[[int], None] | None
) -> Array:
    """(rows, seq_len) tokens after BOS."""
    c, w = model.config, model.w
    group = c.heads // c.kv_heads
    angle = np.arange(c.seq_len)[:, None] * model.freqs
    cos, sin = np.cos(angle).astype(model.dtype), np.sin(angle).astype(model.dtype)
    keys = np.zeros((c.layers, rows, c.kv_heads, c.head_dim, c.seq_len), model.dtype)
    values = np.zeros((c.layers, rows, c.kv_heads, c.seq_len, c.head_dim), model.dtype)
    projections = [np.concatenate([w.wq[i] * c.head_dim**-0.5, w.wk[i], w.wv[i]]).T for i in range(c.layers)]
    told = np.empty((rows, c.seq_len), np.int32)
    tokens = np.full(rows, BOS)
    for at in range(c.seq_len):
        x = w.embed[tokens]
        for layer in range(c.layers):
            qkv = (model.norm(x, w.att_norm[layer]) @ projections[layer]).astype(model.dtype)
            qk = qkv[:, : c.dim + c.kv_dim].reshape(rows, -1, c.head_dim)
            even, odd = qk[..., 0::2].copy(), qk[..., 1::2].copy()
            qk[..., 0::2] = even * cos[at] - odd * sin[at]
            qk[..., 1::2] = even * sin[at] + odd * cos[at]
            keys[layer, :, :, :, at] = qk[:, c.heads :]
            values[layer, :, :, at] = qkv[:, c.dim + c.kv_dim :].reshape(rows, c.kv_heads, -1)
            q = qk[:, : c.heads].reshape(rows, c.kv_heads, group, c.head_dim)
            s = q @ keys[layer, ..., : at + 1]
            s -= s.max(axis=-1, keepdims=True)
            np.exp(s, out=s)
            total = s.sum(axis=-1, keepdims=True)
            mixed = (s @ values[layer, :, :, : at + 1]) / total
            x = model.finish(layer, x, mixed.reshape(rows, c.dim))
        tokens = draw(model.logits(x), rng)
        told[:, at] = tokens
        if done is not None:
            done(rows)
    return told


def draw(logits: Array, rng: np.random.Generator) -> Array:
    """One token id per row of logits (rows, vocab), by chance at temperature 1."""
    z = logits.astype(np.float64)
    p = np.cumsum(np.exp(z - z.max(axis=-1, keepdims=True)), axis=-1)
    aim = rng.random((len(p), 1)) * p[:, -1:]
    out: Array = np.minimum((p <= aim).sum(axis=-1), p.shape[1] - 1)
    return out


def split(ids: list[int], tokenizer: Tokenizer) -> list[str]:
    """One row of sampled ids -> its stories, cut at BOS; empty ones are dropped."""
    out, at = [], 0
    for end in [*(i for i, token in enumerate(ids) if token == BOS), len(ids)]:
        text = tokenizer.decode(ids[at:end]).strip()
        if text:
            out.append(text)
        at = end + 1
    return out
