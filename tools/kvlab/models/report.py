"""What a conversion kept and what it cost, in plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .image import Image
from .llama2c import Checkpoint, Weights

_KINDS = {
    "embed": "embedding",
    "wq": "query",
    "wk": "key",
    "wv": "value",
    "wo": "attention output",
    "w1": "gate",
    "w3": "up",
    "w2": "down",
    "att_norm": "attention norm",
    "ffn_norm": "feed-forward norm",
    "final_norm": "final norm",
    "classifier": "classifier",
}


def report(checkpoint: Checkpoint, image: Image) -> dict[str, Any]:
    """What the conversion kept and what it cost, in plain numbers."""
    c = image.config
    return {
        "header": checkpoint.header,
        "dim": c.dim,
        "hidden": c.hidden,
        "layers": c.layers,
        "heads": c.heads,
        "kv_heads": c.kv_heads,
        "head_dim": c.head_dim,
        "vocab": c.vocab,
        "seq_len_tokens": c.seq_len,
        "trained_seq_len_tokens": checkpoint.config.seq_len,
        "shared_classifier": c.shared,
        "parameters": checkpoint.parameters,
        "model_id": f"{image.header.model_id:08x}",
        "image_bytes": len(image.data),
        "sections_bytes": image.sections(),
        "quantisation": errors(checkpoint.weights, image.weights(), c.shared),
        "shifts": {name: image.shifts[:, i].tolist() for i, name in enumerate(("k", "v", "q"))},
    }


def errors(before: Weights, after: Weights, shared: bool) -> dict[str, dict[str, float]]:
    """Per kind of tensor: root mean square of weights, of their error, and the largest error."""
    found = {}
    for field, kind in _KINDS.items():
        if field == "classifier" and shared:
            continue
        w = getattr(before, field).astype(np.float64)
        error = getattr(after, field) - w
        rms = float(np.sqrt(np.mean(w * w)))
        lost = float(np.sqrt(np.mean(error * error)))
        found[kind] = {
            "rms": rms,
            "error_rms": lost,
            "error_pct": 100 * lost / rms if rms else 0.0,
            "error_max": float(np.abs(error).max()),
        }
    return found
