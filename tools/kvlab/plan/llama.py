"""Parameters and image of a llama2.c Llama: what its board image takes, and what a token reads of it."""

from __future__ import annotations

from kvlab.models import image as images
from kvlab.models import llama2c
from kvlab.plan.shape import Model, alike, attention_name

ENTRY_BYTES = 24  # of the tensor table


def of_llama(c: llama2c.Config, name: str, source: str, size: int, warnings: tuple[str, ...] = ()) -> Model:
    table = c.vocab * c.dim
    inner = layer_parameters(c.dim, c.hidden, c.heads, c.kv_heads, c.head_dim) * c.layers + c.dim
    layers = alike(c.layers, c.heads, c.kv_heads, c.head_dim)
    return Model(
        *(name, source, c.layers, c.heads, c.kv_heads, c.head_dim, layers, c.seq_len),
        *(c.dim, c.hidden, c.vocab, attention_name(c.heads, c.kv_heads)),
        parameters=inner + table * (1 if c.shared else 2),
        read_parameters=inner + table,
        image_bytes=size,
        image_read_bytes=image_read_bytes(c),
        sources=(source,),
        warnings=warnings,
    )


def layer_parameters(dim: int, hidden: int, heads: int, kv_heads: int, head_dim: int) -> int:
    """Of the matrices and the two norms of one Llama layer."""
    return 2 * dim * heads * head_dim + 2 * dim * kv_heads * head_dim + 3 * dim * hidden + 2 * dim


def image_bytes(c: llama2c.Config, tokenizer_bytes: int) -> int:
    """Length of the board image of a Llama (SPEC.md, "The board image")."""

    def up(n: int) -> int:
        return -(-n // images.ALIGN) * images.ALIGN

    names = list(images.tensor_names(c))
    at = up(images.HEADER_BYTES)
    for section in (ENTRY_BYTES * len(names), 2 * c.head_dim, 4 * c.layers, tokenizer_bytes):
        at = up(at + section)
    for field, layer in names:
        at = up(at) + _tensor_bytes(c, field, layer)
    return up(at)


def _tensor_bytes(c: llama2c.Config, field: str, layer: int | None) -> int:
    shape = llama2c.shapes(c)[field]
    shape = shape if layer is None else shape[1:]
    if len(shape) == 1:
        return 2 * int(shape[0])
    return int(shape[0]) * images.row_bytes(int(shape[1]))


def image_read_bytes(c: llama2c.Config) -> int:
    """Bytes of the tensors that every token reads: all, of the embedding only the classifier."""
    names = [name for name in images.tensor_names(c) if name[0] not in ("embed", "classifier")]
    return sum(_tensor_bytes(c, *name) for name in names) + _tensor_bytes(c, "embed", None)
