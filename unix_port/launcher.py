"""Runs a MicroPython script on the unix port as if on a board: its heap, its flash, its modules.

`emulate` runs a script once. `smallest_heap` searches for the least heap it still runs in.

What the fence means. The script starts with `gc.mem_free()` equal to the board's. The flash image
and the emulator's own objects lie in the same process's heap but are not counted. Objects here
have 64-bit words and take up to twice a board's bytes, so for them what fits here fits the board.
Two things go the other way and are reported: machine code of viper and native functions lies
outside the heap here, and a heap that the board has in several areas is one area here.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unix_port import compiled as modules
from unix_port import port, processes
from unix_port.errors import PortError
from unix_port.machine import Machine
from unix_port.names import Names
from unix_port.report import Mark, Report, read_report

__all__ = ["FlashFile", "Mark", "Report", "emulate", "smallest_heap"]

SIDE = Path(__file__).resolve().parent / "side"

# What the interpreter is given to run. sys.path[0] is "", the user's folder, where anything may lie.
START = "import sys; sys.path[0] = sys.argv[1] + '/side'; import boot"

# Room in the process for the emulator's own objects and for the report when the script has filled
# its heap.
SPARE_BYTES = 192 * 1024

# Room for the model of what cuts leave (side/emu/nor.py), where it is used.
TORN_BYTES = 256 * 1024

# Room for the DMA controller of rp2 boards (side/emu/dma.py), and for the holes that compiling it leaves,
# where a script names it or what drives it: only then is it loaded.
DMA_BYTES = 128 * 1024
DMA_WORDS = (b"DMA", b"rp2_dma")

# What the script is given, its arguments above all, is read within SPARE_BYTES up to so many bytes of
# text. Beyond that the heap grows in steps that add whole pages to the collector's tables (3 bytes of
# 259) as well: where objects begin within a page has an influence on what it takes for a pointer.
SETTINGS_BYTES = 16 * 1024
SETTINGS_STEP_BYTES = 259 * 4096

# gc blocks of the 64-bit port: limits are cut to whole ones.
BLOCK_BYTES = 32

# The least heap in which `execfile` of an empty script works.
MIN_HEAP_BYTES = 2 * 1024

# How far above the board's heap `smallest_heap` looks before it gives up.
SEARCH_FACTOR = 8


@dataclass(frozen=True)
class FlashFile:
    """Bytes that are in the flash when the script starts. `offset`: from the begin of the storage region,
    below zero where they lie before it; for that the board's layout must be known."""

    content: bytes
    offset: int = 0
    name: str = "flash image"


def emulate(
    script: str | Path,
    args: Sequence[object],
    machine: Machine,
    *,
    heap_bytes: int | None = None,
    flash: Sequence[FlashFile] = (),
    keep_flash: bool = False,
    cut_after: int | None = None,
    torn: int | None = None,
    flash_state: Mapping[str, Any] | None = None,
    cut_at_sample: int | None = None,
    mount: str | None = None,
    timeout_s: float | None = None,
    stream: bool = False,
    compiled: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Report:
    """Run `script` with `args` behind the fence of `machine`, or behind `heap_bytes` instead of
    its heap.

    `flash` is laid over erased flash, and a littlefs in it mounted at `mount` before the script starts; with
    `keep_flash` the report has the flash as it is at the end. `cut_after=k` cuts the power in the k-th flash
    operation (0 is the first), `cut_at_sample=k` in the first after k emu.sample(); `torn`: see `Report`.
    `stream` also passes the script's output on as it comes. With `compiled` the script finds mpy_kv and the
    apps as .mpy files, as they are deployed. It runs in the folder `cwd`, or ours. PortError on bad input
    and where no temporary file can be written; what the script does is in the report.

    Neither paths nor arguments nor the environment take anything of the heap: see `names`.
    """
    file = Path(script)
    if not file.is_file():
        raise PortError(f"no script {file}")
    limit = _limit(machine.heap_bytes if heap_bytes is None else heap_bytes)
    if cut_after is not None and cut_after < 0:
        raise PortError(f"power cut in operation {cut_after}: the first is 0")
    port.check_timeout(timeout_s)
    argv = [_shown(file), *(port.board_text(word, "argument ") for word in args)]
    below, image = _image(machine, flash)
    more = _of_flash(torn, flash_state, cut_at_sample, mount)
    settings = _settings(machine, limit, cut_after, keep_flash, argv, len(below), more)
    tree = modules.tree() if compiled else None
    try:
        with tempfile.TemporaryDirectory(prefix="kvlab-") as folder, Names() as names:
            data = Path(folder)
            _write_flash(data, below, image)
            (data / "config").write_bytes(settings)
            done = port.run(
                ["-c", START, names.folder],
                heap_bytes=_process_heap(limit, machine.flash_bytes + len(below), settings, file),
                timeout_s=timeout_s,
                env={"MICROPYPATH": _links(names, machine, file, data, tree), **(env or {})},
                cwd=cwd,
                stream=stream,
            )
            report_file, after = data / "report", data / "flash_after"
            if done.status is not None and done.status >= 0 and not report_file.exists():
                raise port.no_micropython(done.stderr or done.stdout)
            written = report_file.read_bytes() if report_file.exists() else b""
            left = after.read_bytes() if after.is_file() else b""
            done = replace(done, stderr=names.restore(done.stderr))
    except OSError as error:
        raise PortError(
            f"temporary folder {error.filename or tempfile.gettempdir()}: {error.strerror};"
            " TMPDIR names another"
        ) from error
    report = read_report(machine, file, limit, done, written, timeout_s)
    if keep_flash and report.outcome not in ("timed out", "crashed"):
        if len(left) != machine.flash_bytes:
            raise PortError(
                f"temporary folder {tempfile.gettempdir()}: no room for the flash as the script left it;"
                " TMPDIR names another"
            )
        report.flash_after = left
    return report


def _write_flash(folder: Path, below: bytes, image: bytes) -> None:
    """What boot reads, as it needs it in memory."""
    (folder / "flash").write_bytes(image + b"\xff")  # one more: see side/emu/flash.py
    if below:
        (folder / "below").write_bytes(below)


def _settings(
    machine: Machine,
    limit: int,
    cut_after: int | None,
    keep_flash: bool,
    argv: Sequence[str],
    below_bytes: int,
    more: Mapping[str, Any],
) -> bytes:
    """What boot reads. MicroPython's json joins no surrogates, so nothing is escaped."""
    config = {
        "board": machine.name,
        "chip": machine.chip,
        "port": machine.port,
        "heap_bytes": limit,
        "clock_hz": machine.clock_hz,
        "clock_max_hz": machine.clock_max_hz,
        "partition": vars(machine.partition) if machine.partition else None,
        "flash_bytes": machine.flash_bytes,
        "erase_bytes": machine.flash_erase_bytes,
        "program_bytes": machine.flash_program_bytes,
        "cut_after": -1 if cut_after is None else cut_after,
        "keep_flash": keep_flash,
        "argv": argv,
    }
    if machine.storage_at:
        config |= {"storage_at": machine.storage_at, "below_bytes": below_bytes}
    config |= more
    return json.dumps(config, ensure_ascii=False).encode()


def _limit(heap_bytes: int) -> int:
    """A heap in whole blocks of the collector."""
    if heap_bytes < MIN_HEAP_BYTES:
        raise PortError(
            f"a heap of {heap_bytes:,} bytes starts no script; the least is {MIN_HEAP_BYTES:,}"
        )
    return heap_bytes - heap_bytes % BLOCK_BYTES


def _of_flash(
    seed: int | None, state: Mapping[str, Any] | None, cut_at_sample: int | None, mount: str | None
) -> dict[str, Any]:
    """Settings that few runs have: of cuts as real chips have them, when they come, what is mounted."""
    torn = {"torn": seed, "flash_state": state} if seed is not None or state else {}
    more = {"cut_at_sample": cut_at_sample, "mount": mount}
    return {**torn, **{name: value for name, value in more.items() if value is not None}}


def _process_heap(limit: int, flash_bytes: int, settings: bytes, script: Path) -> int:
    """The heap of the whole process: the board's, the flash, and room for what the emulator needs."""
    # Reading the settings takes their text twice over, and then what they say.
    more = 4 * max(0, len(settings) - SETTINGS_BYTES)
    steps = -(-more // SETTINGS_STEP_BYTES)
    # The collector's tables take 3 bits of a 32-byte block: 1.2 %.
    spare = SPARE_BYTES + (TORN_BYTES if b'"torn": ' in settings else 0)
    text = script.read_bytes()
    spare += DMA_BYTES if any(word in text for word in DMA_WORDS) else 0
    return (limit + flash_bytes) * 102 // 100 + spare + steps * SETTINGS_STEP_BYTES


def _links(names: Names, machine: Machine, script: Path, data: Path, tree: Path | None) -> str:
    """Name everything that boot and the script look for. Returns the module path."""
    names.give("data", data)
    home = script.parent if tree is None else _without_sources(script.parent, tree, data / "home")
    names.give("home", home, _shown(script.parent))
    names.give("main.py", script, _shown(script))
    folders = {"side": SIDE, "port": SIDE / "ports" / machine.port}
    if tree is not None:
        folders["made"] = tree
    folders.update(zip(("root", "apps"), port.MODULE_PATH))
    return ":".join([*(names.give(name, path) for name, path in folders.items()), ".frozen"])


def _without_sources(folder: Path, tree: Path, links: Path) -> Path:
    """The script's folder, in which it looks for modules before all others; if sources of a package of `tree`
    lie there, as in a checkout, another one with links to what else does: the compiled one is asked for."""
    sources = {made.name for made in tree.iterdir() if made.is_dir() and (folder / made.name).is_dir()}
    if not sources:
        return folder
    links.mkdir()
    for entry in folder.iterdir():
        if entry.name not in sources:
            (links / entry.name).symlink_to(entry)
    return links


def _shown(path: Path) -> str:
    """A path as text; bytes that are no UTF-8 become question marks."""
    return os.fsencode(path).decode("utf-8", "replace")


def smallest_heap(
    script: str | Path,
    args: Sequence[object],
    machine: Machine,
    *,
    heap_bytes: int | None = None,
    resolution_bytes: int = 1024,
    first: Report | None = None,
    run: Callable[..., Report] = emulate,
    **how: Any,
) -> int | None:
    """The least heap, to within `resolution_bytes`, in which the script still ends well; None if
    none does.

    Each try is a run of its own, so give a short form of the work. The search starts from the
    board's heap or `heap_bytes`; `first` is the report of a run there, if there was one; `how`
    goes to `emulate`, or to `run`, an emulator that is called like it. When the script does not fit,
    the search goes up, to SEARCH_FACTOR times that.

    A run may succeed in less heap than another that fails (objects come to lie elsewhere): the
    answer is a size that was seen to run, with one that was seen to fail (or the least that is
    tried) at most `resolution_bytes` below it.
    """

    def runs(limit: int) -> bool:
        return run(script, args, machine, heap_bytes=limit, **how).ok

    start = machine.heap_bytes if heap_bytes is None else heap_bytes
    report = first or run(script, args, machine, heap_bytes=start, **how)
    bad, good = MIN_HEAP_BYTES - 1, start
    if not report.ok:
        if report.outcome != "does not fit":
            return None
        while True:
            bad, good = good, good * 2
            if good > start * SEARCH_FACTOR:
                return None
            if runs(good):
                break
    workers = max(2, min(4, os.cpu_count() or 2))
    with ThreadPoolExecutor(workers) as pool:
        while good - bad > resolution_bytes:
            step = (good - bad) / (workers + 1)
            sizes = sorted({bad + round(step * i) for i in range(1, workers + 1)} - {bad, good})
            with processes.signals_held():
                jobs = {pool.submit(runs, size): size for size in sizes}
            ran = {jobs[job]: job.result() for job in processes.as_completed(jobs)}
            good = next((size for size in sizes if ran[size]), good)
            bad = max((size for size in sizes if size < good), default=bad)
    return good - good % BLOCK_BYTES


def _image(machine: Machine, files: Sequence[FlashFile]) -> tuple[bytes, bytes]:
    """Erased flash with `files` in it: what lies before the storage, from the first of them on, and the
    storage. PortError where one does not fit or two overlap."""
    begin = min((file.offset for file in files), default=0)
    before = min(max(-begin, 0), machine.storage_at)
    image = bytearray(b"\xff" * (before + machine.flash_bytes))
    taken: list[tuple[int, int, str]] = []
    for file in files:
        end = file.offset + len(file.content)
        if file.offset < -before or end > (0 if file.offset < 0 else machine.flash_bytes):
            raise PortError(
                f"{file.name}: {len(file.content):,} bytes at {file.offset:,} do not fit the "
                f"{machine.flash_bytes:,} bytes of flash of {machine.name}"
            )
        for first, last, name in taken:
            if file.offset < last and first < end:
                raise PortError(
                    f"{file.name} at {file.offset:,} overlaps {name} at {first:,}..{last:,}"
                )
        taken.append((file.offset, end, file.name))
        image[before + file.offset : before + end] = file.content
    return bytes(image[:before]), bytes(image[before:])
