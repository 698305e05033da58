"""An independent Llama in numpy floats: what everything that runs on a board is measured against.

It shares nothing with the device's code: no fixed point, no ring, no kernels. Two ways through
the same weights:

* `forward` takes a whole text at once (teacher forcing, causal mask), with hooks that replace the
  keys and values of each layer before attention, and an optional window with sinks;
* `Session` takes one token at a time with a KV cache, and generates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .llama2c import BOS, EPS, ROPE_BASE, Config, Weights

Array = NDArray[Any]
# (layer, k, v) -> (k, v); both (T, kv_heads, head_dim), keys already rotated
KVTransform = Callable[[int, Array, Array], tuple[Array, Array]]
# (layer, q, k, v): what one layer computed, for calibration; q is (T, heads, head_dim)
Watch = Callable[[int, Array, Array, Array], None]

_BLOCK = 128  # queries attended at once: scores stay in the processor's cache, and none are
# computed for keys after the block


class Reference:
    """A model in floats. `dtype` is numpy.float32 or numpy.float64."""

    def __init__(self, config: Config, weights: Weights, dtype: DTypeLike = np.float32) -> None:
        self.config = config
        self.dtype = np.dtype(dtype)
        w = {k: np.asarray(v, self.dtype) for k, v in vars(weights).items()}
        if config.shared:
            w["classifier"] = w["embed"]
        self.w = Weights(**w)
        pairs = np.arange(config.head_dim // 2)
        self.freqs = ROPE_BASE ** (-2.0 * pairs / config.head_dim)  # radians per position

    def norm(self, x: Array, gain: Array) -> Array:
        """RMSNorm over the last axis."""
        out: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS) * gain
        return out

    def rotate(self, x: Array, positions: Array) -> Array:
        """RoPE of x (T, heads, head_dim) at positions (T,), pairs interleaved: (2i, 2i+1)."""
        angle = np.asarray(positions, np.float64)[:, None, None] * self.freqs  # (T, 1, head_dim/2)
        cos, sin = np.cos(angle).astype(self.dtype), np.sin(angle).astype(self.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2] = even * cos - odd * sin
        out[..., 1::2] = even * sin + odd * cos
        return out

    def project(self, layer: int, x: Array) -> tuple[Array, Array, Array]:
        """x (T, dim) -> raw q (T, heads, head_dim), k and v (T, kv_heads, head_dim), unrotated."""
        c, w = self.config, self.w
        h = self.norm(x, w.att_norm[layer])
        q = (h @ w.wq[layer].T).reshape(-1, c.heads, c.head_dim)
        k = (h @ w.wk[layer].T).reshape(-1, c.kv_heads, c.head_dim)
        v = (h @ w.wv[layer].T).reshape(-1, c.kv_heads, c.head_dim)
        return q, k, v

    def scores(self, q: Array, k: Array) -> Array:
        """q (T, heads, head_dim), k (S, kv_heads, head_dim) -> scaled scores (heads, T, S)."""
        c = self.config
        q = q / self.dtype.type(np.sqrt(c.head_dim))
        # Head h reads KV head h // (heads / kv_heads): the heads of one KV head are neighbours.
        grouped = q.transpose(1, 0, 2).reshape(c.kv_heads, -1, c.head_dim)
        out: Array = grouped @ np.ascontiguousarray(k.transpose(1, 2, 0))
        return out.reshape(c.heads, len(q), len(k))

    def mix(self, scores: Array, v: Array) -> Array:
        """Softmax of scores (heads, T, S), -inf where unseen, over v (S, kv_heads, head_dim).

        Returns what attention hands to the output projection: (T, dim).
        """
        c = self.config
        p = scores - scores.max(axis=-1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=-1, keepdims=True)
        grouped = p.reshape(c.kv_heads, -1, len(v)) @ np.ascontiguousarray(v.transpose(1, 0, 2))
        out: Array = grouped.reshape(c.heads, -1, c.head_dim).transpose(1, 0, 2).reshape(-1, c.dim)
        return out

    def finish(self, layer: int, x: Array, attended: Array) -> Array:
        """Output projection and SwiGLU of one layer: x, attended (T, dim) -> x (T, dim)."""
        w = self.w
        x = x + attended @ w.wo[layer].T
        h = self.norm(x, w.ffn_norm[layer])
        gate = h @ w.w1[layer].T
        # 1 / (1 + exp(-g)) without overflow for any g
        gate = gate * (np.tanh(gate / 2) + 1) / 2 * (h @ w.w3[layer].T)
        out: Array = x + gate @ w.w2[layer].T
        return out

    def logits(self, x: Array) -> Array:
        """x (T, dim) -> logits (T, vocab)."""
        out: Array = self.norm(x, self.w.final_norm) @ self.w.classifier.T
        return out

    def forward(
        self,
        ids: Iterable[int],
        kv_transform: KVTransform | None = None,
        window: int | None = None,
        sinks: int = 0,
        positions: Iterable[int] | None = None,
        watch: Watch | None = None,
    ) -> Array:
        """Logits (T, vocab) after each of `ids`, each token seeing itself and those before it.

        With `window`, token i sees the tokens i-window+1..i and the first `sinks` ones; those are
        scored by the query rotated at min(position, sinks + window - 1), as StreamingLLM does.
        `positions` are the absolute RoPE positions, by default 0..T-1.
        """
        tokens = np.fromiter(ids, np.int64)
        count = len(tokens)
        at = np.arange(count) if positions is None else np.fromiter(positions, np.int64)
        if len(at) != count:
            raise ValueError(f"{len(at)} positions for {count} tokens")
        if window is not None and window < 1:
            raise ValueError(f"window {window} shows a token nothing; the smallest is 1")
        i, j = np.arange(count)[:, None], np.arange(count)[None, :]
        hidden = j > i
        if window is not None:
            hidden |= (j <= i - window) & (j >= sinks)
        x = self.w.embed[tokens]
        for layer in range(self.config.layers):
            q, k, v = self.project(layer, x)
            raw_q, q, k = q, self.rotate(q, at), self.rotate(k, at)
            if watch is not None:
                watch(layer, q, k, v)
            if kv_transform is not None:
                k, v = kv_transform(layer, k, v)
            near = None
            if window is not None and sinks:
                near = self.rotate(raw_q, np.minimum(at, sinks + window - 1))
            attended = np.empty_like(x)
            for start in range(0, count, _BLOCK):
                some, end = slice(start, start + _BLOCK), min(start + _BLOCK, count)
                s = self.scores(q[some], k[:end])
                if near is not None:
                    s[:, :, :sinks] = self.scores(near[some], k[: min(sinks, end)])
                np.copyto(s, -np.inf, where=hidden[some, :end])
                attended[some] = self.mix(s, v[:end])
            x = self.finish(layer, x, attended)
        return self.logits(x)

    def nats(self, ids: Iterable[int], **options: Any) -> Array:
        """Loss (T-1,) in nats of each of `ids` after the first; options are those of `forward`."""
        ids = list(ids)
        return cross_entropy(self.forward(ids[:-1], **options), ids[1:])


def cross_entropy(logits: Array, targets: Iterable[int]) -> Array:
    """-log softmax(logits)[target] in nats, per row of logits (T, vocab), in float64."""
    z = np.asarray(logits, np.float64)
    top = z.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(z - top).sum(axis=-1)) + top[:, 0]
    out: Array = log_sum - z[np.arange(len(z)), np.fromiter(targets, np.int64)]
    return out


class Session:
    """One sequence, token by token, its keys and values kept in full."""

    def __init__(self, model: Reference, capacity: int, watch: Watch | None = None) -> None:
        c = model.config
        self.model = model
        self.capacity = capacity
        self.watch = watch
        self.length = 0
        shape = (c.layers, capacity, c.kv_heads, c.head_dim)
        self.k = np.zeros(shape, model.dtype)
        self.v = np.zeros(shape, model.dtype)

    def step(self, token: int) -> Array:
        """Take one token in; returns the logits (vocab,) of the next."""
        if self.length == self.capacity:
            raise ValueError(f"session is full: capacity {self.capacity} tokens")
        m, p = self.model, self.length
        at = np.array([p])
        x = m.w.embed[[token]]
        for layer in range(m.config.layers):
            q, k, v = m.project(layer, x)
            q, k = m.rotate(q, at), m.rotate(k, at)
            if self.watch is not None:
                self.watch(layer, q, k, v)
            self.k[layer, p], self.v[layer, p] = k[0], v[0]
            s = m.scores(q, self.k[layer, : p + 1])
            x = m.finish(layer, x, m.mix(s, self.v[layer, : p + 1]))
        self.length = p + 1
        out: Array = m.logits(x)[0]
        return out

    def generate(
        self, prompt: Iterable[int] = (BOS,), temperature: float = 0.0, seed: int = 0
    ) -> Iterator[int]:
        """Tokens after `prompt` until the session is full; temperature 0 is greedy."""
        rng = np.random.default_rng(seed)
        logits = None
        for token in prompt:
            logits = self.step(token)
        if logits is None:
            raise ValueError("a prompt needs at least one token")
        while True:
            token = sample(logits, temperature, rng)
            yield token
            if self.length == self.capacity:
                return
            logits = self.step(token)


def sample(logits: Array, temperature: float, rng: np.random.Generator) -> int:
    """One token id from logits (vocab,): the largest at temperature 0, else by chance."""
    if temperature <= 0:
        return int(np.argmax(logits))
    z = np.asarray(logits, np.float64) / temperature
    p = np.cumsum(np.exp(z - z.max()))
    return min(int(np.searchsorted(p, rng.random() * p[-1], side="right")), len(p) - 1)
