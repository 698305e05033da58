"""The Llama of `kvlab.models.reference` in jax, made to be trained: batches, one program, float32.

Parameters are a dict of the arrays of `Weights`, in llama2.c's layout; a shared classifier is not
in it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kvlab.models.llama2c import EPS, ROPE_BASE, Config, Weights, shapes

Params = dict[str, Any]

MATRICES = ("wq", "wk", "wv", "wo", "w1", "w2", "w3")


def initial(c: Config, seed: int) -> Params:
    """Fresh parameters: normal, the two projections back into the stream scaled down by depth."""
    rng = np.random.default_rng(seed)
    params: Params = {}
    for name, shape in shapes(c).items():
        if name == "classifier" and c.shared:
            continue
        if name.endswith("norm"):
            params[name] = np.ones(shape, np.float32)
            continue
        scale = 0.02 if name in ("embed", "classifier") else shape[-1] ** -0.5
        if name in ("wo", "w2"):
            scale /= np.sqrt(2 * c.layers)
        params[name] = (scale * rng.standard_normal(shape)).astype(np.float32)
    return params


def from_weights(c: Config, weights: Weights) -> Params:
    """Parameters of a checkpoint."""
    return {k: v for k, v in vars(weights).items() if not (c.shared and k == "classifier")}


def to_weights(c: Config, params: Params) -> Weights:
    """What a checkpoint holds of these parameters."""
    found = {k: np.asarray(v, np.float32) for k, v in params.items()}
    if c.shared:
        found["classifier"] = found["embed"]
    return Weights(**found)


def halves(heads: int, head_dim: int) -> NDArray[np.int64]:
    """Rows of a projection in the order (first of each pair, second of each pair) per head.

    Scores do not change when queries and keys are reordered alike, and halves rotate faster than
    neighbours.
    """
    one = np.concatenate([np.arange(0, head_dim, 2), np.arange(1, head_dim, 2)])
    rows: NDArray[np.int64] = (np.arange(heads)[:, None] * head_dim + one).ravel()
    return rows


def angles(c: Config, count: int) -> tuple[Any, Any]:
    """cos and sin (count, head_dim/2) of RoPE."""
    freqs = ROPE_BASE ** (-2.0 * np.arange(c.head_dim // 2) / c.head_dim)
    angle = np.arange(count)[:, None] * freqs
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def norm(x: Any, gain: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + EPS) * gain


def rotate(x: Any, cos: Any, sin: Any) -> Any:
    """x (..., head_dim) in halves; cos and sin broadcast to (..., head_dim/2)."""
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def projections(c: Config, p: Params, layer: int) -> Any:
    """Queries, keys and values in one matrix (dim, dim + 2 kv_dim), the first two in halves."""
    wq = p["wq"][layer][halves(c.heads, c.head_dim)] * c.head_dim**-0.5
    wk = p["wk"][layer][halves(c.kv_heads, c.head_dim)]
    return jnp.concatenate([wq, wk, p["wv"][layer]]).T


def feed(p: Params, layer: int, x: Any) -> Any:
    """SwiGLU."""
    h = norm(x, p["ffn_norm"][layer])
    both = h @ jnp.concatenate([p["w1"][layer], p["w3"][layer]]).T
    gate, up = jnp.split(both, 2, axis=-1)
    return (jax.nn.silu(gate) * up) @ p["w2"][layer].T


def attention(c: Config, q: Any, k: Any, v: Any, block: int = 32) -> Any:
    """q (B, T, heads * d), k and v (B, T, kv_heads * d) -> (B, T, dim). Causal, in blocks of
    queries, each over the keys up to its end."""
    b, t, _ = q.shape
    d, g = c.head_dim, c.heads // c.kv_heads
    q = q.reshape(b, t, c.kv_heads, g, d).transpose(0, 2, 3, 1, 4)  # (B, kv, g, T, d)
    k = k.reshape(b, t, c.kv_heads, d).transpose(0, 2, 3, 1)  # (B, kv, d, T)
    v = v.reshape(b, t, c.kv_heads, d).transpose(0, 2, 1, 3)  # (B, kv, T, d)
    out = []
    for start in range(0, t, block):
        end = min(start + block, t)
        n = end - start
        some = q[:, :, :, start:end].reshape(b, c.kv_heads, g * n, d)
        s = (some @ k[..., :end]).reshape(b, c.kv_heads, g, n, end)
        unseen = np.arange(end)[None, :] > np.arange(start, end)[:, None]
        s = jnp.where(unseen, -1e9, s)
        s = jnp.exp(s - jax.lax.stop_gradient(s.max(axis=-1, keepdims=True)))
        total = s.sum(axis=-1)
        mixed = s.reshape(b, c.kv_heads, g * n, end) @ v[:, :, :end]
        out.append(mixed.reshape(b, c.kv_heads, g, n, d) / total[..., None])
    whole = jnp.concatenate(out, axis=3)
    return whole.transpose(0, 3, 1, 2, 4).reshape(b, t, c.dim)


def logits(c: Config, p: Params, tokens: Any) -> Any:
    """tokens (B, T) -> logits (B, T, vocab), causal from position 0 of each row."""
    b, t = tokens.shape
    cos, sin = (x[None, :, None, :] for x in angles(c, t))
    x = p["embed"][tokens]
    for layer in range(c.layers):
        qkv = norm(x, p["att_norm"][layer]) @ projections(c, p, layer)
        qk, v = qkv[..., : c.dim + c.kv_dim], qkv[..., c.dim + c.kv_dim :]
        qk = rotate(qk.reshape(b, t, -1, c.head_dim), cos, sin).reshape(b, t, -1)
        x = x + attention(c, qk[..., : c.dim], qk[..., c.dim :], v) @ p["wo"][layer].T
        x = x + feed(p, layer, x)
    classifier = p["embed"] if c.shared else p["classifier"]
    return norm(x, p["final_norm"]) @ classifier.T


def loss(c: Config, p: Params, tokens: Any) -> Any:
    """Mean nats of tokens (B, T + 1) after the first of each row."""
    z = logits(c, p, tokens[:, :-1])
    target = jnp.take_along_axis(z, tokens[:, 1:, None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(z, axis=-1) - target)
