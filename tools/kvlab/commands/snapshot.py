"""`kvlab snapshot`: what is in a saved sequence, and whether it is sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commandline import files
from kvlab import options, output, snapshots

SAFETENSORS = "safetensors"


@click.group()
def command() -> None:
    """Look at a sequence that `kvlab stories --save` or mpy_kv.snapshot has written."""


@command.command(
    name="show",
    epilog="""Examples:

\b
  kvlab snapshot show out/story.mkvs
  kvlab snapshot show out/story.mkvs --to safetensors \\
      --out out/story.safetensors
""",
)
@click.argument("file")
@click.option(
    "--to",
    "form",
    type=click.Choice([SAFETENSORS]),
    help="Also write keys and values of the visible tokens as float32, in this form (extra `safetensors`).",
)
@click.option(
    "--out",
    type=files.OutFile(),
    metavar="FILE",
    help="Where --to writes [default: the file's name, ending .safetensors].",
)
@output.json_option
def show(file: str, form: str | None, out: Path | None, json_path: Path | None) -> None:
    """Tell what a snapshot holds: geometry, tokens, policy, model, sections.

    Exit status: 0 told, 1 it is damaged or of another version, 2 bad input.
    """
    path = options.existing_file(file, "FILE")
    if form is None:
        options.no_effect("needs --to", "out")
    else:
        snapshots.need_safetensors()
        out = files.prepare(path.with_suffix(f".{form}") if out is None else out, "--out")
    found = snapshots.read(path)
    figures = found.figures()
    output.table("", _rows(figures))
    if out is not None:
        files.write(out, snapshots.as_safetensors(found, file), "--out")
        click.echo(f"Wrote {out}.")
    if json_path is not None:
        output.write_json(json_path, {"file": file, **figures})


@command.command(name="check", epilog="\b\nExample:\n  kvlab snapshot check out/story.mkvs")
@click.argument("file")
@output.json_option
def check(file: str, json_path: Path | None) -> None:
    """Read a snapshot to its end and load it: lengths, checksums, counts, every code and scale.

    Exit status: 0 sound, 1 it is not, 2 bad input.
    """
    found = snapshots.read(options.existing_file(file, "FILE"))
    cache, _ = snapshots.loaded(found, file)
    broken = cache.check()
    h = found.header
    click.echo(f"{file}: sound; {h.length:,} tokens, {h.tokens:,} visible, {output.size(len(found.data))}")
    if json_path is not None:
        figures = {"file": file, "broken": broken, "length": h.length, "tokens": h.tokens}
        output.write_json(json_path, {**figures, "total_bytes": len(found.data)})


def _rows(f: dict[str, Any]) -> list[tuple[str, str]]:
    kept = f"{f['window']:,} tokens and {f['sinks']:,} sinks" if f["window"] else ""
    types = list(dict.fromkeys(f["codec"]))
    groups = list(dict.fromkeys(group for group in f["group"] if group))
    rows = [
        ("snapshot", f"version {f['version']}, {output.size(f['total_bytes'])}"),
        ("model", f"{f['model']}, rotation {f['rope']}"),
        (
            "shape",
            f"{f['layers']:,} layers, {f['heads']:,} heads on {f['kv_heads']:,} of {f['head_dim']:,} values",
        ),
        ("kind", f["kind"]),
        ("window" if f["window"] else "capacity", kept or f"{f['capacity']:,} tokens"),
        (
            "element type" if len(types) == 1 else "element types",
            ", ".join(types if len(types) == 1 else f["codec"])
            + (f"; {', '.join(map(str, groups))} values share a scale" if groups else ""),
        ),
        (
            "tokens",
            f"{f['length']:,}; {f['tokens']:,} visible, {f['evicted_tokens']:,} evicted",
        ),
    ]
    if f["policy"]:
        rows.append(("policy", f"{f['policy']}; the newest {f['recent']:,} never leave"))
    layers = [s for s in f["sections"] if s["tag"] == "KV  "]
    rows.append(("keys and values", output.size(sum(s["bytes"] for s in layers))))
    others = [s for s in f["sections"] if s["tag"] not in ("KV  ", "TYPE")]
    if others:
        rows.append(("other sections", ", ".join(f"{s['tag'].strip()} {s['bytes']:,} B" for s in others)))
    return rows
