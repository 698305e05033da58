"""The shape of a model that is to be trained: what is taken where nothing is said, and what cannot be."""

from __future__ import annotations

from commandline.errors import BadInput

# stories260K's. By the names of `kvlab.models.llama2c.Config`.
DEFAULTS = {"layers": 5, "dim": 64, "hidden": 172, "heads": 8, "kv_heads": 4, "vocab": 512, "seq_len": 512}


def check(dim: int, heads: int, kv_heads: int) -> None:
    """BadInput where heads do not divide the width, or channels cannot be rotated in pairs."""
    if dim % heads:
        raise BadInput(f"--heads {heads}: does not divide --dim {dim}; pass a number of heads that does")
    if heads % kv_heads:
        raise BadInput(f"--kv-heads {kv_heads}: does not divide --heads {heads}; pass a number that does")
    if dim // heads % 2:
        raise BadInput(
            f"--heads {heads}: leaves {dim // heads} channels of --dim {dim} to a head, an odd number, which "
            "cannot be rotated in pairs; pass another number of heads"
        )
