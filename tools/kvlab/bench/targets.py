"""Where a measurement runs: the unix port, the emulated 32-bit board, or a board on a serial port.

`run` starts a script of boards/apps/bench there. A script prints lines "+N" as it gets on, which move the
progress bar, and its figures as JSON in the last line.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import firmware
from commandline.errors import BadInput, FellShort, did_you_mean
from kvlab import paths
from unix_port import port
from unix_port.port import Finished

UNIX = "unix"
QEMU = "qemu"

METAVAR = "unix|qemu|PORT"

# Of the emulated board: sources compile on it, and two kernel sets and a model's cache lie side by side.
HEAP_BYTES = 1 << 20

UNIX_HEAP_BYTES = 16 << 20
TIMEOUT_S = 1800

Steps = Callable[[int], None]


def prepare(target: str) -> None:
    """Build the firmware of the emulated board, which takes minutes the first time. BadInput."""
    if target != QEMU:
        return
    try:
        firmware.build(HEAP_BYTES)
    except firmware.FirmwareError as error:
        raise BadInput(f"--target {target}: {error}") from error


def run(target: str, script: str, arguments: Sequence[object], steps: Steps, **how: Any) -> dict[str, Any]:
    """The figures that `script` prints on `target`. how: on QEMU, `options` of the emulator and the `path` of
    modules, see Qemu.

    FellShort when it fails there, BadInput or PortError when there is no such target here.
    """
    source = paths.APPS / "bench" / script
    output = _Output(steps)
    if target == UNIX:
        done = port.run([str(source), *map(str, arguments)], heap_bytes=UNIX_HEAP_BYTES, timeout_s=TIMEOUT_S)
        output.write(done.stdout)
        _check(target, done)
    elif target == QEMU:
        from qemu_port.board import Qemu

        path = how.get("path")
        with Qemu(HEAP_BYTES, options=how.get("options", ())) as board:
            _check(target, board.run(source, arguments, path=path, timeout_s=TIMEOUT_S, stream=output))
    else:
        hint = did_you_mean(target, (UNIX, QEMU))
        if hint:
            raise BadInput(f"--target {target}: no such target{hint}")
        _on_port(target, source, arguments, output, "--target")
    return output.figures(target)


def on_port(port: str | None, script: str, arguments: Sequence[object], steps: Steps) -> dict[str, Any]:
    """The same of the board on `--port`; None: on the only USB serial port there is."""
    output = _Output(steps)
    _on_port(port, paths.APPS / "bench" / script, arguments, output, "--port")
    return output.figures(port or "the board")


def ordered(figures: Mapping[str, Any], *order: str) -> dict[str, Any]:
    """`figures` with keys in `order` first, then numbers, then the rest: a board's dict keeps no order."""
    rank = {name: at for at, name in enumerate(order)}

    def place(key: str) -> tuple[int, int]:
        return (1, int(key)) if key.isdigit() else (0, rank[key]) if key in rank else (2, 0)

    return {
        key: ordered(inner, *order) if isinstance(inner := figures[key], dict) else inner
        for key in sorted(figures, key=place)
    }


def _on_port(
    name: str | None, source: Path, arguments: Sequence[object], output: _Output, option: str
) -> None:
    """Send the script to a board that has mpy_kv, and follow what it prints."""
    from kvlab.deploy import identity
    from kvlab.deploy.link import BoardError, connected

    words = [source.name, *map(str, arguments)]
    code = f"import sys\nsys.argv[:] = {words!r}\n{source.read_text(encoding='utf-8')}"
    with connected(name, option) as link:
        if identity.ask(link).platform != "linux":  # the unix port would end
            link.soft_reset()
        try:
            link.follow(code, output.take, most_s=TIMEOUT_S)
        except BoardError as error:
            if "ImportError" in error.text:
                raise BadInput(
                    f"{option} {link.port}: {error.text}; put mpy_kv and the app there first: kvlab deploy"
                ) from error
            raise


def _check(target: str, done: Finished) -> None:
    """FellShort, with the last thing it said, unless a run went well."""
    if done.status == 0:
        return
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    why = said[-1] if said else "no word"
    if done.status is None:
        why = f"no end after {TIMEOUT_S:,} s"
    raise FellShort(f"the run on --target {target} failed: {why}")


class _Output:
    """Takes what a script prints: as a text stream, or in bytes."""

    encoding = "utf-8"

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._begun = ""
        self._last = ""

    def take(self, raw: bytes) -> None:
        """Bytes of the serial line; 0x04 ends the output there."""
        self.write(raw.replace(b"\x04", b"").replace(b"\r", b"").decode("utf-8", "replace"))

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.startswith("+"):
                with contextlib.suppress(ValueError):
                    self._steps(int(line))
            elif line.strip():
                self._last = line
        return len(text)

    def flush(self) -> None:
        pass

    def figures(self, target: str) -> dict[str, Any]:
        """The last line, as JSON."""
        said = self._begun or self._last
        try:
            found = json.loads(said)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        if target == UNIX:
            raise port.no_micropython(said)
        raise FellShort(f"the run on {target} gave no figures: {said[:200] or 'no word'}")
