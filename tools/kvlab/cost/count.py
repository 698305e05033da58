"""Counts what the stories app takes on the emulated 32-bit board, by class, with the plugin count.c."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import firmware
from commandline.errors import BadInput, FellShort
from kvlab import paths, shipped
from kvlab.cost import counted
from kvlab.cost.cycles import CYCLES, Counts
from kvlab.element_types import HELD, USUAL
from qemu_port import machines
from qemu_port.board import Qemu
from unix_port import compiled, processes

POSITIONS = (1, 3, 16, 32, 64, 96, 128, 160, 192, 224, 255, 256, 258)
WINDOW, SINKS = 256, 4
HEAP_BYTES = 512 * 1024  # in which every element type has room
TIMEOUT_S = 600
VERDICTS = "kernels.checked"

_PLUGIN = Path(__file__).with_name("count.c")


def plugin(folder: Path) -> Path:
    """The plugin, compiled into `folder`. BadInput where there is no compiler, or it fails."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise BadInput("no gcc here; on Debian: apt-get install gcc")
    made = folder / "count.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(_PLUGIN)]
    done = processes.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BadInput(f"{_PLUGIN.name} does not compile: {done.stderr.strip()[:200]}")
    return made


def firmware_end(elf: Path) -> int:
    """The first address behind the firmware's code."""
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as file:
        symbols: Any = ELFFile(file).get_section_by_name(".symtab")
        (end,) = symbols.get_symbol_by_name("_etext")
        return int(end["st_value"])


def marks(
    script: Path,
    words: Iterable[object],
    image: bytes,
    modules: Path | None = None,
    cwd: Path | None = None,
    target: firmware.Target | None = None,
    heap_bytes: int = HEAP_BYTES,
) -> list[dict[str, Any]]:
    """What the plugin has counted at each mark of that script, with `image` in flash; `cwd` is the board's
    folder; `target` and heap_bytes: of the firmware, other than usual. FellShort."""
    return marked(script, words, image, modules, cwd, target, heap_bytes)[0]


def marked(
    script: Path,
    words: Iterable[object],
    image: bytes,
    modules: Path | None = None,
    cwd: Path | None = None,
    target: firmware.Target | None = None,
    heap_bytes: int = HEAP_BYTES,
) -> tuple[list[dict[str, Any]], str]:
    """As marks(), and what the script has printed."""
    with tempfile.TemporaryDirectory(prefix="kvlab-") as place:
        out = Path(place) / "marks"
        elf = firmware.build(heap_bytes, target or firmware.ARM)
        with Qemu(elf=elf, flash=image, options=options(elf, out)) as board:
            done = board.run(
                script,
                list(words),
                path=[modules or compiled.tree(machines.ARM.arch)],
                cwd=cwd,
                timeout_s=TIMEOUT_S,
            )
        if done.status != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise FellShort(f"the counted run failed: {said[-1] if said else 'no word'}")
        return read(out), done.stdout


def options(elf: Path, out: Path, blocks: bool = False) -> list[str]:
    """Of the emulator, that have the plugin count a run of that firmware into `out`, in whose folder it is
    compiled; with `blocks` by the addresses of code above the firmware's, too."""
    words = f"file={plugin(out.parent)},out={out},firmware_end={firmware_end(elf):#x},blocks={int(blocks)}"
    return ["-plugin", words]


def read(out: Path) -> list[dict[str, Any]]:
    """What was counted up to each mark."""
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Counts:
    """What was counted between two marks."""
    firmware, kernels = (
        {name: after[of][name] - before[of][name] for name in CYCLES} for of in ("firmware", "kernels")
    )
    return Counts(firmware, kernels, sum(after["misses"].values()) - sum(before["misses"].values()))


def entries() -> dict[str, Any]:
    """What the table has of this tree: models that ship in int8, the first of them in every type."""
    from kvlab.models.image import Image

    found = {}
    for name in shipped.NAMES:
        image = Image.read(shipped.image(name))
        for codec in HELD if name == shipped.NAMES[0] else (USUAL,):
            found[counted.key(image.config, codec)] = story(image.data, codec)
    return found


def story(
    image: bytes, codec: str = USUAL, run: Callable[..., list[dict[str, Any]]] = marks
) -> dict[str, Any]:
    """Both starts, tokens told and of a prompt by position, of the model in place: an entry of the table."""
    told = max(POSITIONS) + 1
    script, verdicts = paths.APPS / "bench" / "marks.py", ["", VERDICTS]
    with tempfile.TemporaryDirectory(prefix="kvlab-") as place:
        # The first start checks the kernels and remembers them in the folder, the second finds them there.
        folder = Path(place)
        seen = run(script, [WINDOW, SINKS, told, _word(codec), *verdicts], image, cwd=folder)
        again = run(script, [WINDOW, SINKS, 0, _word(codec), *verdicts], image, cwd=folder)
    start, ready, *rest = seen
    pairs = list(zip(rest[::2], rest[1::2]))
    tokens, prompt = pairs[:told], pairs[told:]
    return {
        "window": WINDOW,
        "sinks": SINKS,
        "start": packed(between(start, ready)),
        "remembered": packed(between(*again)),
        "token": {str(p): packed(between(*tokens[p])) for p in POSITIONS},
        "prompt": {str(p): packed(between(*prompt[p - 1])) for p in POSITIONS},
    }


def _word(codec: str) -> str:
    """As marks.py takes it: the usual one is the app's without being named."""
    return codec if codec != USUAL else ""


def packed(counts: Counts) -> dict[str, Any]:
    """As the table has it: classes in the order of CYCLES."""
    return {
        "firmware": [counts.firmware[name] for name in CYCLES],
        "kernels": [counts.kernels[name] for name in CYCLES],
        "misses": counts.misses,
    }
