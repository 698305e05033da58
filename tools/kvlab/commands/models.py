"""`kvlab models`: the models the planner knows by name."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kvlab import output
from kvlab.element_types import NAMES, USUAL
from kvlab.plan import sizes
from kvlab.plan.shape import Model


@click.command(epilog="\b\nExamples:\n  kvlab models \n  kvlab models qwen2.5-7b --json out/model.json")
@click.argument("name", required=False)
@output.json_option
def command(name: str | None, json_path: Path | None) -> None:
    """List the models `kvlab plan` knows by name; with NAME (or a file) its sources too."""
    from kvlab.plan import models

    known = [models.find(name)] if name else list(models.catalogue().values())
    output.table("", [_row(model) for model in known], HEADER)
    if name:
        for source in known[0].sources:
            click.echo(f"- source: {source}")
        for note in (known[0].note, *known[0].warnings):
            if note:
                click.echo(f"- {note}")
    if json_path is not None:
        output.write_json(json_path, {"models": [figures(model) for model in known]})


COLUMNS = ("float16", USUAL)  # the element types that the table has room for
HEADER = (
    "model",
    "layers",
    "attention",
    "heads",
    "window",
    "context",
    f"KV of a token, {COLUMNS[0]}",
    *COLUMNS[1:],
    "parameters",
)


def _row(m: Model) -> tuple[str, ...]:
    local = [window for window in m.windows if window is not None]
    heads = f"{m.heads} on {m.latent} values" if m.latent else f"{m.heads} on {m.kv_heads} of {m.head_dim}"
    layers = str(m.layers) if len(m.cached) == m.layers else f"{len(m.cached)} of {m.layers}"
    return (
        m.id,
        layers,
        m.attention,
        heads,
        f"{local[0]:,} tokens in {len(local)}" if local else "",
        f"{m.seq_len:,} tokens" if m.seq_len else "",
        *(f"{sizes.need(m, 1, codec).kv_bytes:,} B" for codec in COLUMNS),
        f"{m.parameters:,}" if m.parameters else "",
    )


def figures(m: Model) -> dict[str, Any]:
    return {
        **asdict(m),
        "windows": m.windows,
        "values_per_token": m.values_per_token,
        "kv_bytes_per_token": {codec: sizes.need(m, 1, codec).kv_bytes for codec in NAMES},
    }
