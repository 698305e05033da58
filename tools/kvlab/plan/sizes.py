"""Bytes of one request's cache: mpy_kv's own Geometry, one for each kind of layer a model has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from commandline.errors import BadInput
from kvlab.element_types import TYPES, USUAL
from kvlab.plan.shape import Layer, Model
from mpy_kv import Geometry, geometry_for
from mpy_kv.errors import BadArgument
from mpy_kv.geometry import SINKS
from mpy_kv.int4_blocks.geometry import BLOCK as SEALED_BLOCK

_OPTIONS = {"window": "--window", "sinks": "--sinks", "capacity": "--tokens", "group": "--group"}
# How weights are stored: bits of a weight, and whether WEIGHTS_GROUP of them share a float16 scale.
WEIGHTS = {"int4": (4, True), "int8": (8, True), "float16": (16, False), "float32": (32, False)}
WEIGHTS_GROUP = 32
LATENT_GROUP = 32  # values that share a scale where a latent or an indexer's key is stored as scaled codes


def weight_bits(weights: str) -> float:
    """Bits that a weight takes, its share of the scale included."""
    bits, scaled = WEIGHTS[weights]
    return bits + (16 / WEIGHTS_GROUP if scaled else 0)


@dataclass(frozen=True)
class Layers:
    """Layers of one kind, in one buffer. `kv_bytes`: codes and scales of what is visible of `tokens`."""

    count: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    latent: int  # values kept instead of keys and values
    index: int  # values of an indexer's key
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
    kinds: dict[tuple[Layer, int], int] = {}
    for layer in model.cached:
        own, kind = layer.window, (replace(layer, window=window), sinks)
        if own is not None and own < (tokens if window is None else sinks + window):
            kind = (layer, 0)
        kinds[kind] = kinds.get(kind, 0) + 1
    parts = (_layers(*kind, count, tokens, codec, group) for kind, count in kinds.items())
    return Need(tuple(sorted(parts, key=lambda part: part.visible)))


def sinks_of(window: int | None, sinks: int | None) -> int:
    """How many a window has: those asked for, else geometry.SINKS. Without a window there are none."""
    if window is None:
        return 0
    return SINKS if sinks is None else sinks


def _layers(layer: Layer, sinks: int, count: int, tokens: int, codec: str, group: int | None) -> Layers:
    """`count` layers that keep what `layer` does, and so many sinks before its window."""
    window = layer.window
    visible = tokens if window is None else min(tokens, sinks + window)
    kv_bytes = buffer_bytes = 0
    if not layer.latent:
        shape = {"capacity": tokens} if window is None else {"window": window, "sinks": sinks}
        heads = (count, layer.heads, layer.kv_heads)
        try:
            k = v = geometry_for(codec, *heads, layer.head_dim, **shape, group=group)
            if layer.v_dim != layer.head_dim:
                v = geometry_for(codec, *heads, layer.v_dim, **shape, group=group)
        except BadArgument as error:
            raise BadInput(_as_typed(str(error))) from error
        kv_bytes = _key_bytes(k, visible) + v.kv_bytes(visible) - _key_bytes(v, visible)
        # Of two widths there is no buffer of mpy_kv: K of the one beside V of the other, one scratch.
        scratch = max(g.bytes() - count * g.layer_bytes for g in (k, v))
        buffer_bytes = count * (_key_area(k) + v.layer_bytes - _key_area(v)) + scratch
    # A latent, of which keys are made, and an indexer's keys are stored as keys are.
    bits, scaled = TYPES[codec].k_bits, TYPES[codec].scaled
    size, slots = group or LATENT_GROUP, tokens if window is None else sinks + window + 1
    for n in (layer.latent, layer.index):
        a_token = -(-n * bits // 8) + (2 * -(-n // size) if scaled else 0)
        kv_bytes += count * visible * a_token
        buffer_bytes += count * slots * a_token
    return Layers(
        *(count, layer.kv_heads, layer.head_dim, layer.v_dim, layer.latent, layer.index),
        *(window, sinks, visible, kv_bytes, buffer_bytes),
    )


def _key_bytes(g: Geometry, visible: int) -> int:
    """Of g.kv_bytes(visible) the keys' codes and scales: of most element types half, of some more."""
    sealed = max(0, g.full(visible) - 1) if g.sealed else 0
    fresh = visible - sealed * SEALED_BLOCK
    k_bits = TYPES[USUAL if g.sealed else g.codec].k_bits  # what is not sealed yet is int8
    row = g.kv_heads * g.slices * -(-g.slice_width * k_bits // 8) + 2 * g.groups
    block = SEALED_BLOCK * g.kv_heads * g.slices * -(-g.slice_width // 2) + 4 * g.width + 2 * g.groups
    return int(g.layers * (fresh * row + sealed * block))


def _key_area(g: Geometry) -> int:
    """Of g.layer_bytes what belongs to the keys."""
    return int(g.plane_bytes + (g.at_v_codes4 - g.at_codes4 if g.sealed else 0))


def _as_typed(text: str) -> str:
    """What Geometry says, which begins with the name of an argument, with the option that set it."""
    name, _, rest = text.partition(" ")
    return f"{_OPTIONS[name]} {rest}" if name in _OPTIONS else f"--model: {text}"
