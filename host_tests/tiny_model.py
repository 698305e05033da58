"""Tiny random Llamas as llama2.c files, for tests that must run without any real model.

It writes the files by hand, with nothing of kvlab in it, so that readers are tested against it and
not against themselves. The same arguments give the same bytes on every machine: the numbers are
sums of uniform doubles of numpy's frozen RandomState, scaled by correctly rounded operations.

    checkpoint, tokenizer = write_tiny(tmp_path, dim=32, heads=4, kv_heads=2)
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np

ATTENTION, FEED_FORWARD = ["wq", "wk", "wv", "wo"], ["w1", "w2", "w3"]
LEGACY_ORDER = ["embed", "att_norm", *ATTENTION, "ffn_norm", *FEED_FORWARD, "final_norm"]
LEGACY_ORDER += ["rope", "classifier"]
V1_ORDER = ["att_norm", "ffn_norm", "final_norm", "embed", *ATTENTION, *FEED_FORWARD, "classifier"]
SPECIALS = [b"<unk>", b"\n<s>\n", b"\n</s>\n"]
CHARACTERS = [c.encode() for c in " etaoinshrdlu.\n,'TLS!?bcfgjkmpqvwxyz\u00e9\u20ac"]


def write_tiny(
    path_dir,
    dim=32,
    hidden=48,
    layers=2,
    heads=4,
    kv_heads=2,
    vocab=320,
    seq_len=64,
    shared=True,
    seed=0,
    header="legacy",
):
    """Write tiny.bin and tokVOCAB.bin into `path_dir`; returns (checkpoint_path, tokenizer_path).

    `header` is "legacy" or "v1". Any vocab >= 4 works; from 259 on the byte tokens are in it, from
    about 320 on merges too.
    """
    folder = Path(path_dir)
    folder.mkdir(parents=True, exist_ok=True)
    w = tiny_weights(dim, hidden, layers, heads, kv_heads, vocab, shared=shared, seed=seed)
    w["rope"] = rope_tables(seq_len, dim // heads)
    if shared:
        w["classifier"] = np.zeros(0)
    numbers = [dim, hidden, layers, heads, kv_heads, vocab, seq_len]
    if header == "legacy":
        if not shared:
            numbers[5] = -vocab
        head, order = struct.pack("<7i", *numbers), LEGACY_ORDER
    elif header == "v1":
        head = struct.pack("<Ii7iB", 0x616B3432, 1, *numbers, shared).ljust(256, b"\0")
        order = V1_ORDER
    else:
        raise ValueError(f'header {header!r} is neither "legacy" nor "v1"')
    checkpoint = folder / "tiny.bin"
    checkpoint.write_bytes(head + b"".join(w[key].astype("<f4").tobytes() for key in order))
    tokenizer = folder / f"tok{vocab}.bin"
    tokenizer.write_bytes(tokenizer_bytes(tiny_tokens(vocab, seed)))
    return checkpoint, tokenizer


def tiny_weights(dim, hidden, layers, heads, kv_heads, vocab, shared=True, seed=0):
    """The float32 arrays by name, shaped as kvlab.models.llama2c.Weights."""
    kv_dim = dim // heads * kv_heads
    rng = np.random.RandomState(seed)

    def draw(*shape, std):
        # The sum of three uniforms: mean 0, standard deviation `std`, bell-shaped, exact.
        bell = sum(rng.random_sample(shape) for _ in range(3)) - 1.5
        return (bell * 2 * std).astype(np.float32)

    def matrix(rows, cols):
        return draw(layers, rows, cols, std=1 / math.sqrt(cols))

    w = {
        "embed": draw(vocab, dim, std=2 / math.sqrt(dim)),
        "att_norm": 1 + draw(layers, dim, std=0.1),
        "wq": matrix(dim, dim),
        "wk": matrix(kv_dim, dim),
        "wv": matrix(kv_dim, dim),
        "wo": matrix(dim, dim),
        "ffn_norm": 1 + draw(layers, dim, std=0.1),
        "w1": matrix(hidden, dim),
        "w2": matrix(dim, hidden),
        "w3": matrix(hidden, dim),
        "final_norm": 1 + draw(dim, std=0.1),
    }
    w["classifier"] = w["embed"] if shared else draw(vocab, dim, std=2 / math.sqrt(dim))
    return w


def rope_tables(seq_len, head_dim):
    """The cos and sin tables that only the legacy format carries: (2, seq_len, head_dim/2)."""
    freqs = 10000.0 ** (-2 * np.arange(head_dim // 2) / head_dim)
    angle = np.outer(np.arange(seq_len), freqs)
    return np.stack([np.cos(angle), np.sin(angle)])


def tiny_tokens(vocab, seed=0):
    """[(score, bytes)] by id: specials, the 256 bytes if they fit, characters, random merges.

    Merges come in pairs of equal score, so that the order among equals matters.
    """
    if vocab < 4:
        raise ValueError(f"a vocabulary of {vocab} has no token that prints")
    tokens = [(0.0, t) for t in SPECIALS]
    if vocab >= 3 + 256 + 1:
        tokens += [(0.0, b"<0x%02X>" % i) for i in range(256)]
    room = vocab - len(tokens)
    characters = CHARACTERS[:room]
    tokens += [(-1000.0 - i, c) for i, c in enumerate(characters)]
    known = list(characters)
    rng = np.random.RandomState(seed)
    while len(tokens) < vocab:
        a, b = rng.randint(0, len(known), 2)
        joined = known[a] + known[b]
        if joined not in known and len(joined) <= 8:
            tokens.append((-float(len(known) // 2), joined))
            known.append(joined)
    return tokens


def tokenizer_bytes(tokens):
    """[(score, bytes)] as a llama2.c tokenizer.bin."""
    records = (struct.pack("<fi", score, len(t)) + t for score, t in tokens)
    return struct.pack("<i", max(len(t) for _, t in tokens)) + b"".join(records)
