"""`kvlab choose`: what element types and policies cost and lose, in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput
from kvlab import facts, options, output, paths

PICTURE = "choose.png"


@click.command(
    epilog="""Example:

\b
  kvlab quality --json out/quality.json
  kvlab bench choices --json out/choices.json
  kvlab choose --quality out/quality.json --costs out/choices.json
"""
)
@click.option(
    "--quality",
    "quality_files",
    required=True,
    multiple=True,
    metavar="FILE",
    help="What `kvlab quality --json` wrote, of one model or several; may be repeated.",
)
@click.option("--costs", required=True, metavar="FILE", help="What `kvlab bench choices --json` wrote.")
@click.option(
    "--out",
    type=options.OutFile(),
    default=paths.OUT / PICTURE,
    show_default=f"out/{PICTURE}",
    metavar="FILE",
    help="The picture.",
)
def command(quality_files: tuple[str, ...], costs: str, out: Path) -> None:
    """Draw which element type and which policy to choose: bytes, loss and instructions of each.

    A row for each that both files know, a mark for each model. What holds for your model is what its own
    marks show.
    """
    models = [model for name in quality_files for model in _models(name)]
    counted = _read("--costs", costs)
    if not isinstance(counted.get("codecs"), dict) or "thumb" not in counted["codecs"]:
        raise BadInput(f"--costs {costs}: not what `kvlab bench choices --json` writes")
    if not any(name in of for of in models for name in counted["codecs"]["thumb"]):
        raise BadInput("--quality: no element type that --costs knows; measure with --codecs all")
    files.prepare(out, "--out")
    try:
        from kvlab.plots import choose
    except Exception as error:  # a broken installation of a big library fails in many ways
        raise BadInput(
            f"choose draws with matplotlib, which cannot be imported ({type(error).__name__}: {error}):"
            " install it with `.venv/bin/pip install --force-reinstall matplotlib`"
        ) from error
    with output.waiting("Drawing ..."):
        choose.draw(models, counted, out, "--out")
    click.echo(f"Picture: {paths.shown(out)}")


def _models(name: str) -> list[dict[str, Any]]:
    """The figures of each model of a file of `kvlab quality`."""
    found = _read("--quality", name)
    models = found.get("models", [found])
    if not isinstance(models, list) or not all(isinstance(of, dict) and "passages" in of for of in models):
        raise BadInput(f"--quality {name}: not what `kvlab quality --json` writes")
    return models


def _read(option: str, name: str) -> dict[str, Any]:
    found = facts.read_json(files.existing_file(name, option), f"{option} {name}")
    return found if isinstance(found, dict) else {}
