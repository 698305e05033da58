"""Bytes of one request's cache: mpy_kv's own Geometry, one for each kind of layer a model has."""

from __future__ import annotations

from dataclasses import dataclass

from kvlab.errors import BadInput
from kvlab.plan.shape import Model
from mpy_kv import geometry, geometry_for
from mpy_kv.errors import BadArgument

_OPTIONS = {"window": "--window", "sinks": "--sinks", "capacity": "--tokens", "group": "--group"}
# Element types, see mpy_kv.geometry; int4 in sealed blocks, where what is not sealed yet is int8.
CODECS = {**geometry.CODECS, "int4": (4, 4, True)}
MOST_GROUP = {"sparse": geometry.SPARSE_GROUP, "int4": 32}  # where --group has a limit
WEIGHTS = [codec for codec, (k_bits, v_bits, _) in geometry.CODECS.items() if k_bits == v_bits]
LATENT_GROUP = 32  # values that share a scale where a latent is stored as scaled codes


@dataclass(frozen=True)
class Layers:
    """Layers of one kind, in one buffer. `kv_bytes`: codes and scales of what is visible of `tokens`."""

    count: int
    window: int | None  # recent tokens visible; None: all
    sinks: int
    visible: int
    kv_bytes: int
    buffer_bytes: int


@dataclass(frozen=True)
class Need:
    """The cache of one request."""

    layers: tuple[Layers, ...]

    @property
    def kv_bytes(self) -> int:
        return sum(part.kv_bytes for part in self.layers)

    @property
    def buffers(self) -> tuple[int, ...]:
        """Bytes of each buffer: one for each kind of layer."""
        return tuple(part.buffer_bytes for part in self.layers)

    @property
    def buffer_bytes(self) -> int:
        return sum(self.buffers)

    @property
    def visible(self) -> int:
        """Tokens visible in the layers that see most."""
        return max(part.visible for part in self.layers)

    @property
    def context(self) -> int:
        """Tokens that may become visible at once: what a model's training must cover."""
        return max(part.visible if part.window is None else part.sinks + part.window for part in self.layers)


def need(
    model: Model,
    tokens: int,
    codec: str,
    window: int | None = None,
    sinks: int | None = None,
    group: int | None = None,
) -> Need:
    """The cache of one request of `tokens`. Without `window` nothing is evicted: capacity = tokens. A window
    has as many sinks as Geometry gives it, unless `sinks` are asked for.

    A layer with a window of its own keeps the smaller of the two, and no sinks if that is its own.
    BadInput names the option that is wrong.
    """
    if tokens < 1:
        raise BadInput(f"--tokens {tokens}: must be at least 1")
    if sinks and window is None:
        raise BadInput(f"--sinks {sinks}: sinks need --window; without one nothing is evicted")
    sinks = sinks_of(window, sinks)
    kinds: dict[tuple[int | None, int], int] = {}
    for own in model.windows:
        kind: tuple[int | None, int] = (window, sinks)
        if own is not None and own < (tokens if window is None else sinks + window):
            kind = (own, 0)
        kinds[kind] = kinds.get(kind, 0) + 1
    parts = (_layers(model, count, *kind, tokens, codec, group) for kind, count in kinds.items())
    return Need(tuple(sorted(parts, key=lambda part: part.visible)))


def sinks_of(window: int | None, sinks: int | None) -> int:
    """How many a window has: those asked for, else geometry.SINKS. Without a window there are none."""
    if window is None:
        return 0
    return geometry.SINKS if sinks is None else sinks


def _layers(
    model: Model, count: int, window: int | None, sinks: int, tokens: int, codec: str, group: int | None
) -> Layers:
    visible = tokens if window is None else min(tokens, sinks + window)
    if model.latent:
        bits, _, scaled = CODECS[codec]  # keys are made of it: it is stored as they are
        size = group or LATENT_GROUP
        a_token = model.latent * bits // 8 + (2 * -(-model.latent // size) if scaled else 0)
        slots = tokens if window is None else sinks + window + 1
        return Layers(count, window, sinks, visible, count * visible * a_token, count * slots * a_token)
    shape = {"capacity": tokens} if window is None else {"window": window, "sinks": sinks}
    try:
        heads = (count, model.heads, model.kv_heads, model.head_dim)
        g = geometry_for(codec, *heads, **shape, group=group)
    except BadArgument as error:
        raise BadInput(_as_typed(str(error))) from error
    return Layers(count, window, sinks, visible, g.kv_bytes(visible), g.bytes())


def _as_typed(text: str) -> str:
    """What Geometry says, which begins with the name of an argument, with the option that set it."""
    name, _, rest = text.partition(" ")
    return f"{_OPTIONS[name]} {rest}" if name in _OPTIONS else f"--model: {text}"
