"""`kvlab docs`: are the figures of the documentation what is measured?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commandline.errors import BadInput, FellShort
from kvlab import output, paths
from kvlab.docs import registry, run


@click.command(
    epilog="""Examples:

\b
  kvlab docs --check
  kvlab docs --check --all
  kvlab docs --check fits
  kvlab docs --write products calls
  kvlab docs --write measured
  kvlab docs --list
"""
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--check", is_flag=True, help="Compare; exit status 1 where one differs.")
@click.option("--write", is_flag=True, help="Renew those that differ.")
@click.option("--list", "listing", is_flag=True, help="Name them, and what makes each.")
@click.option(
    "--all", "everything", is_flag=True, help="Also what takes minutes; without it seconds' work alone."
)
@output.json_option
def command(
    names: tuple[str, ...], check: bool, write: bool, listing: bool, everything: bool, json_path: Path | None
) -> None:
    """Check or renew the figures of README.md, docs/ and boards/*/README.md, or those of NAME alone.

    A figure stands between <!-- NAME --> and <!-- end -->, in a line or as a block of lines, and may do so
    on any page; NAME may also be a picture, a family of figures or a group of those. All else on a page is
    left as it is. What needs a download or a tool that is not here is skipped and named. A check of --all
    that finds no difference leaves its date between the markers of docs_checked.
    Exit status: 0 as told, 1 a figure differs, 2 bad input.
    """
    asked = [option for option, on in (("check", check), ("write", write), ("list", listing)) if on]
    if not asked:
        raise BadInput("name one of --check, --write and --list")
    what, *more = asked
    if more:
        raise BadInput(f"--{what}: not with --{more[0]}; leave one of them out")
    if names and everything:
        raise BadInput("--all: not with names; leave one of them out")
    if what == "list":
        if everything or names:
            raise BadInput("--list: takes no names and no --all")
        figures = _list()
    else:
        work = run.check if what == "check" else run.write
        with output.progress("Measuring", len(run.chosen(names, everything)[0])) as done:
            result = work(names, everything=everything, done=done)
        figures = _show(what, result)
    if json_path is not None:
        output.write_json(json_path, figures)
    if figures.get("differences"):
        few = ", ".join(dict.fromkeys(one["name"] for one in figures["differences"]))
        raise FellShort(f"{few}: not as told; `kvlab docs --write NAME` renews a figure")


def _show(what: str, result: run.Checked) -> dict[str, Any]:
    for difference in result.differences:
        click.echo(str(difference))
    for name, why in result.skipped.items():
        click.echo(f"skipped: {name}: {why}")
    if result.later:
        click.echo(f"not run without --all: {', '.join(result.later)}")
    changed = [paths.shown(page) for page in dict.fromkeys(result.changed)]
    if what == "check":
        click.echo(f"{result.figures} figures checked, {len(result.differences)} differ")
    else:
        click.echo(f"{result.figures} figures made; changed: {', '.join(changed) or 'nothing'}")
    return {
        "figures": result.figures,
        "differences": [vars(difference) for difference in result.differences],
        "skipped": result.skipped,
        "later": result.later,
        "changed": changed,
    }


def _list() -> dict[str, Any]:
    """Every figure, grouped by who makes it."""
    pages = run.told()
    run.stored()
    listed = []
    for producer in registry.all_producers():
        rows = []
        for name, tolerance in producer.figures.items():
            where = [figure.where for figure in pages.get(name, ())]
            rows.append((name, str(tolerance), ", ".join(where)))
            one = {"name": name, "tolerance": str(tolerance), "where": where}
            listed.append({**one, "producer": producer.name})
        why = producer.missing()
        title = f"{producer.name}, {producer.cost.value}: {producer.command}"
        output.table(title + (f" ({why})" if why else ""), rows, ("figure", "tolerance", "where"))
    return {
        "figures": listed,
        "producers": [
            {"name": p.name, "command": p.command, "cost": p.cost.name.lower(), "missing": p.missing()}
            for p in registry.all_producers()
        ],
    }
