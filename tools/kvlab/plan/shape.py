"""The shape of a model as the planner sees it, wherever it was read from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """A layer that keeps something of every token: keys and values, or a latent that both are made of.

    window: recent tokens it sees, None where it sees everything. v_dim: values of a head's V, which may
    differ from the head_dim of its K. index: values of an indexer's key, kept on top.
    """

    heads: int
    kv_heads: int
    head_dim: int
    v_dim: int
    window: int | None = None
    latent: int = 0
    index: int = 0

    @property
    def values(self) -> int:
        """Values kept of one token."""
        return (self.latent or self.kv_heads * (self.head_dim + self.v_dim)) + self.index

    @property
    def plain(self) -> bool:
        """Whether a buffer of mpy_kv holds it: keys and values of one width, and nothing else."""
        return not self.latent and not self.index and self.v_dim == self.head_dim


def alike(count: int, heads: int, kv_heads: int, head_dim: int) -> tuple[Layer, ...]:
    """Layers of a model that has one kind only, each of which sees everything."""
    return (Layer(heads, kv_heads, head_dim, head_dim),) * count


@dataclass(frozen=True)
class Model:
    """Shape of a model. `cached`: the layers that keep something of every token, of all `layers`.

    `heads`, `kv_heads` and `head_dim` are those that the model states for itself; a layer may differ.
    """

    id: str
    title: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    cached: tuple[Layer, ...]
    seq_len: int | None  # tokens it was trained for
    dim: int
    hidden: int
    vocab: int | None
    attention: str  # MHA, GQA, MQA or MLA
    latent: int = 0  # MLA: values that a layer keeps of a token instead of keys and values
    parameters: int | None = None
    read_parameters: int | None = None  # read for one token: of the embedding only the classifier
    image_bytes: int | None = None  # as a board image
    image_read_bytes: int | None = None  # of it read for one token
    sources: tuple[str, ...] = ()
    note: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The window of each layer that has a cache, None where it sees everything."""
        return tuple(layer.window for layer in self.cached)

    @property
    def values_per_token(self) -> int:
        """Values that all layers keep of one token while nothing is evicted."""
        return sum(layer.values for layer in self.cached)

    @property
    def plain(self) -> bool:
        """Whether every layer keeps the same, keys and values of one width: what the app on a board runs."""
        shapes = {(layer.heads, layer.kv_heads, layer.head_dim) for layer in self.cached}
        return (
            len(self.cached) == self.layers and len(shapes) == 1 and all(layer.plain for layer in self.cached)
        )


def attention_name(heads: int, kv_heads: int) -> str:
    return "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"
