"""Runs MicroPython's own makefiles, with everything they write in the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from firmware import cache, source, targets, tools
from firmware.errors import FirmwareError

BUILD_TIMEOUT_S = 900

# The interpreter needs some of it to start.
LEAST_HEAP_BYTES = 32 * 1024
MOST_HEAP_BYTES = targets.ARM.most_heap_bytes


@cache.usable()
def build(heap_bytes: int, target: targets.Target = targets.ARM, *, refresh: bool = False) -> Path:
    """The firmware (an ELF file) with a garbage collected heap of `heap_bytes`, built unless it was before.

    Of the heap 2.3 % go to the collector's tables and some 1.7 KB to the interpreter. Builds of one
    source share their object files: only the first takes long. Processes wait for one another.
    FirmwareError, one line, when it cannot be had.
    """
    most = target.most_heap_bytes
    if not LEAST_HEAP_BYTES <= heap_bytes <= most:
        raise FirmwareError(
            f"a heap of {heap_bytes:,} bytes; the machine takes {LEAST_HEAP_BYTES:,} to {most:,}"
        )
    tools.need(tools.MAKE, target.compiler)
    origin = source.find(refresh=refresh)
    compiler = tools.run([target.compiler.program, "-dumpfullversion"], timeout_s=60).strip()
    place = cache.folder() / f"{origin.key}-{target.board}{target.variant}-gcc{compiler}"
    elf = place / f"firmware-{heap_bytes}.elf"
    if elf.is_file():
        return elf
    with cache.lock(place):
        if not elf.is_file():
            objects = place / "objects"
            _make(
                origin.path / "ports" / "qemu",
                objects,
                # The heap's size is compiled into main.o alone, and make does not see it change.
                stale=(objects / "main.o", objects / "firmware.elf"),
                settings=(
                    f"BOARD={target.board}",
                    "FROZEN_MANIFEST=",
                    f"MICROPY_HEAP_SIZE={heap_bytes}",
                    *target.settings,
                ),
            )
            _keep(objects / "firmware.elf", elf, origin)
    return elf


@cache.usable()
def mpy_cross(*, refresh: bool = False) -> Path:
    """The mpy-cross of the same source: its .mpy files are the ones this firmware knows best."""
    tools.need(tools.MAKE, tools.HOST_CC)
    origin = source.find(refresh=refresh)
    place = cache.folder() / f"{origin.key}-mpy-cross"
    program = place / "mpy-cross"
    if program.is_file():
        return program
    with cache.lock(place):
        if not program.is_file():
            _make(origin.path / "mpy-cross", place / "objects")
            _keep(place / "objects" / "mpy-cross", program, origin)
    return program


def _make(folder: Path, objects: Path, stale: tuple[Path, ...] = (), settings: tuple[str, ...] = ()) -> None:
    """Run make in `folder` with its output in `objects`. Whoever calls this holds the lock."""
    whole = objects.with_name(objects.name + ".whole")
    if not whole.is_file():
        # Nobody knows what a build that was killed has left.
        shutil.rmtree(objects, ignore_errors=True)
    whole.unlink(missing_ok=True)
    objects.parent.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.unlink(missing_ok=True)
    jobs = os.cpu_count() or 1
    command = ["make", f"-j{jobs}", "-C", str(folder), f"BUILD={objects}", *settings]
    with cache.filled_by_others():
        tools.run(command, timeout_s=BUILD_TIMEOUT_S, env=tools.make_environment())
    whole.touch()


def _keep(made: Path, target: Path, origin: source.Source) -> None:
    """Put what make has made into the cache. FirmwareError when it made no such thing."""
    if not made.is_file():
        raise FirmwareError(f"make of {origin.path} succeeds and makes no {made.name}: a damaged checkout?")
    cache.put(made, target)
