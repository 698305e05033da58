"""The shape of a model as the planner sees it, wherever it was read from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """Shape of a model. `windows`: of each layer, None where it sees everything."""

    id: str
    title: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    windows: tuple[int | None, ...]
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
    def values_per_token(self) -> int:
        """Keys and values that all layers keep of one token while nothing is evicted."""
        return self.layers * (self.latent or 2 * self.kv_heads * self.head_dim)


def attention_name(heads: int, kv_heads: int) -> str:
    return "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"
