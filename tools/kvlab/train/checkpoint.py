"""Writer of llama2.c legacy checkpoints, and of files that are never half there."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commandline import files
from commandline.errors import BadInput
from kvlab.models.llama2c import ROPE_BASE, Config, Weights

ORDER = ("embed", "att_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3", "final_norm")


def pack(c: Config, weights: Weights) -> bytes:
    """The bytes of a legacy checkpoint, RoPE tables and all: what llama2.c's run.c reads."""
    vocab = c.vocab if c.shared else -c.vocab
    numbers = (c.dim, c.hidden, c.layers, c.heads, c.kv_heads, vocab, c.seq_len)
    out = [struct.pack("<7i", *numbers)]
    out += [_bytes(getattr(weights, name)) for name in ORDER]
    freqs = ROPE_BASE ** (-2.0 * np.arange(c.head_dim // 2) / c.head_dim)
    angle = np.arange(c.seq_len)[:, None] * freqs
    out += [_bytes(np.cos(angle)), _bytes(np.sin(angle))]
    if not c.shared:
        out.append(_bytes(weights.classifier))
    return b"".join(out)


def _bytes(values: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values, "<f4").tobytes()


def replace(path: Path, data: bytes) -> None:
    """Write all of a file or nothing."""
    try:
        files.replace_file(path, data)
    except OSError as e:
        raise BadInput(f"--out {path.parent}: cannot write {path.name}: {e.strerror}") from None
