#!/usr/bin/env python3
"""Command line of structure: `python tools/lint_structure.py`."""

from __future__ import annotations

import click

from structure import check, graph, layers, lengths, registries


@click.command(epilog="Exit status: 0 nothing found, 1 findings.")
@click.option("--layers", "order", is_flag=True, help="Print the order of packages instead, lowest first.")
@click.option("--of", "module", metavar="MODULE", help="Print what a module imports instead, and its layer.")
def main(order: bool, module: str | None) -> None:
    """Refuse imports that lead up or in a circle, element types that are listed twice, functions that are too
    long."""
    if order:
        for name, members in layers.LAYERS:
            click.echo(f"{name}: {', '.join(members)}")
        return
    if module is not None:
        if module not in graph.modules():
            raise click.UsageError(f"--of {module}: no such module")
        for target in sorted({arrow.target for arrow in graph.arrows()[0] if arrow.source == module}):
            layer = layers.layer_of(target)
            click.echo(f"{target} ({'of no layer' if layer is None else layers.LAYERS[layer][0]})")
        return
    found = [*check.findings(), *registries.findings(), *lengths.findings()]
    for line in found:
        click.echo(line)
    if found:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
