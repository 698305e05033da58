"""The training loop: Muon for the matrices of the layers, Adam for the rest.

Muon (Keller Jordan, 2024) is momentum made orthogonal by five Newton-Schulz steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kvlab.models.llama2c import Config

from . import llama
from .llama import Params
from .plan import Plan

MUON_LR = 0.02
ADAM_LR = 0.005
BETAS = (0.9, 0.95)
MOMENTUM = 0.95
DECAY = 0.01  # of matrices a step, times their learning rate
CLIP = 1.0


def fresh(params: Params) -> Params:
    """Optimiser state for parameters: momentum, and for what Adam trains a second moment."""
    state = {f"m.{k}": np.zeros_like(v) for k, v in params.items()}
    state |= {f"v.{k}": np.zeros_like(v) for k, v in params.items() if k not in llama.MATRICES}
    return state


def orthogonal(m: Any) -> Any:
    """Stacked matrices (layers, rows, cols) -> nearly orthogonal ones of the same row space."""
    flip = m.shape[1] > m.shape[2]
    x = m.transpose(0, 2, 1) if flip else m
    x = x / (jnp.linalg.norm(x, axis=(1, 2), keepdims=True) + 1e-7)
    for _ in range(5):
        a = x @ x.transpose(0, 2, 1)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.transpose(0, 2, 1) if flip else x


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def update(c: Config, p: Params, state: Params, tokens: Any, pace: Any, count: Any) -> Any:
    """One step at `pace` times the full learning rate; `count` is 1 for the first."""
    nats, grads = jax.value_and_grad(lambda q: llama.loss(c, q, tokens))(p)
    size = jnp.sqrt(sum(jnp.vdot(g, g) for g in grads.values()))
    shrink = jnp.minimum(1.0, CLIP / (size + 1e-6))
    new, kept = {}, {}
    for name, w in p.items():
        g = grads[name] * shrink
        if name in llama.MATRICES:
            m = kept[f"m.{name}"] = MOMENTUM * state[f"m.{name}"] + g
            rows, cols = w.shape[1:]
            step = orthogonal(g + MOMENTUM * m) * max(1.0, rows / cols) ** 0.5
            new[name] = w * (1 - pace * DECAY * MUON_LR) - pace * MUON_LR * step
        else:
            m = kept[f"m.{name}"] = BETAS[0] * state[f"m.{name}"] + (1 - BETAS[0]) * g
            v = kept[f"v.{name}"] = BETAS[1] * state[f"v.{name}"] + (1 - BETAS[1]) * g * g
            m, v = m / (1 - BETAS[0] ** count), v / (1 - BETAS[1] ** count)
            new[name] = w - pace * ADAM_LR * m / (jnp.sqrt(v) + 1e-8)
    return new, kept, nats


@partial(jax.jit, static_argnums=0)
def judge(c: Config, p: Params, tokens: Any) -> Any:
    return llama.loss(c, p, tokens)


def run(
    c: Config,
    params: Params,
    state: Params,
    plan: Plan,
    first: int,
    batch: Callable[[int, int, int], Any],
    after: Callable[[int, Params, Params, float], Plan],
) -> None:
    """Steps `first` to the plan's last. When one is done, `after(step, params, state, nats)` says
    how the run goes on: the plan, mostly the same."""
    params = {k: jnp.asarray(v) for k, v in params.items()}
    state = {k: jnp.asarray(v) for k, v in state.items()}
    step = first
    while step < plan.steps:
        tokens = batch(step, *plan.shape(step))
        pace = np.float32(plan.pace(step))
        params, state, nats = update(c, params, state, tokens, pace, np.float32(step + 1))
        plan = after(step, params, state, float(nats))
        step += 1
