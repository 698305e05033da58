"""`kvlab package`: parts of mpy_kv, compiled, for mip to install."""

from __future__ import annotations

from pathlib import Path

import click

from commandline.errors import BadInput, did_you_mean
from kvlab import output, paths
from kvlab.parts import ask
from kvlab.parts.table import BASE, PARTS


def _core(_context: click.Context, _option: click.Parameter, name: str) -> str:
    """BadInput for what is no core."""
    from kvlab.deploy.packaged import CORES

    if name not in CORES:
        hint = did_you_mean(name, CORES) or f"; cores: {', '.join(CORES)}"
        raise BadInput(f"--core {name}: no such core{hint}")
    return name


def _parts(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """BadInput for what is no part."""
    for name in names:
        if name not in (*PARTS, ask.ALL):
            hint = did_you_mean(name, PARTS) or f"; parts: {', '.join(PARTS)}"
            raise BadInput(f"--part {name}: no such part{hint}")
    return tuple(PARTS) if ask.ALL in names else tuple(dict.fromkeys(names))


@click.command(
    epilog="""Examples:

\b
  kvlab package --core armv6m -o out/pico
  kvlab package --core xtensawin --part paged --part int4 -o out/esp32
  mpremote mip install ./out/pico/package.json

\b
On a board with a network, once the folder is on a server:
  import mip; mip.install("http://SERVER/pico/int8.json")
"""
)
@click.option(
    "--core",
    metavar="CORE",
    required=True,
    callback=_core,
    help="The board's instruction set: armv6m (RP2040), armv7emsp (RP2350), xtensawin (ESP32, ESP32-S3),"
    " rv32imc (ESP32-C3), armv7m, armv7em, or x64 (the unix port).",
)
@click.option(
    "--part",
    "parts",
    metavar="NAME",
    multiple=True,
    default=BASE,
    show_default=True,
    callback=_parts,
    help=f"A part of mpy_kv, of {', '.join(PARTS)}; may be repeated. all: each of them.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    required=True,
    help="The folder to make; one that this made before is made anew.",
)
@output.json_option
def command(core: str, parts: tuple[str, ...], folder: Path, json_path: Path | None) -> None:
    """Compile parts of mpy_kv for a core, with a list of each for mip: DIR/NAME.json of a part and what that
    needs, DIR/package.json of all that are named.

    A board then loads them without compiling, which from sources takes most of a Pico's heap at every start.
    Firmware: MicroPython 1.24 or newer (an ESP32-C3: 1.28).

    Exit status: 0 done, 2 bad input.
    """
    from kvlab.deploy import packaged

    with output.waiting("Compiling ..."):
        made = packaged.make(core, parts)
    packaged.write(made, folder, "-o")
    modules = {name: len(data) for name, data in made.items() if name.endswith(".mpy")}
    figures = {
        "core": core,
        "parts": list(parts),
        "folder": str(folder),
        "files": modules,
        "bytes": sum(modules.values()),
    }
    output.table(
        "",
        [
            ("core", f"{core}: {packaged.CORES[core]}"),
            ("parts", ", ".join(parts)),
            ("modules", f"{len(modules)}, {output.size(sum(modules.values()))}"),
            ("for mip", f"{paths.shown(folder / packaged.WHOLE)}, and NAME.json of each part"),
        ],
    )
    if json_path is not None:
        output.write_json(json_path, figures, part=list(parts))
