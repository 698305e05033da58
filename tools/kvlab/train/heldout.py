"""Loss on text nobody trained on, per byte, so that models with different tokenizers compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from kvlab.models.corpus import text_bytes
from kvlab.models.llama2c import Checkpoint
from kvlab.models.reference import Reference, cross_entropy
from kvlab.models.tokenizer import Tokenizer


def cut(tokenizer: Tokenizer, text: str, max_tokens: int) -> str:
    """The beginning of a text that BOS and `max_tokens` - 1 tokens of this tokenizer hold."""
    return tokenizer.decode(tokenizer.encode(text)[:max_tokens])


def nats(model: Reference, ids: list[int]) -> float:
    """Total loss of `ids` after the first.

    The model's context is a window over them: the first fills it, each further one repeats its
    second half as context and predicts what follows, its positions counted from 0 again.
    """
    size = model.config.seq_len
    total = float(model.nats(ids[: size + 1]).sum())
    at = size + 1
    while at < len(ids):
        end = min(at + size // 2, len(ids))
        some = ids[max(0, end - size - 1) : end]
        new = end - at
        logits = model.forward(some[:-1])[-new:]
        total += float(cross_entropy(logits, some[-new:]).sum())
        at = end
    return total


def measure(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    done: Callable[[int], None] = lambda _n: None,
) -> dict[str, Any]:
    """Float32 loss over whole texts: nats, tokens, bytes, and their quotients."""
    model = Reference(checkpoint.config, checkpoint.weights, np.float32)
    total, tokens, size = 0.0, 0, 0
    for text in texts:
        ids = tokenizer.encode(text)
        total += nats(model, ids)
        tokens += len(ids) - 1
        size += text_bytes(tokenizer, ids)
        done(1)
    return {
        "nats": total,
        "tokens": tokens,
        "bytes": size,
        "nats_per_token": total / tokens,
        "nats_per_byte": total / size,
    }
