"""The emulated board: qemu-system-arm with the firmware, whose serial line is our pipe.

    from qemu_port.board import Qemu
    with Qemu(heap_bytes=512 * 1024) as board:
        done = board.run("script.py", ["an argument"], timeout_s=60)
        print(done.stdout, done.status)

Scripts see the files of this machine under their own paths (side/hostfs.py), `path` as sys.path, and
their own folder as /script.
The machine (MPS2 AN385, a Cortex-M3) runs at one nanosecond of its own time an instruction and has no
interrupts: with the same memory at the start a script takes the same instructions again. Each run
therefore has a machine of its own, which costs no more than a soft reset of one that waits for it: that
leaves to the next script what the one before has left on the stack, where the garbage collector takes
it for pointers, so that objects come to lie elsewhere and allocating takes longer. For the same reason
nothing that is drawn at random comes into the memory, nor where this checkout lies: names are the same
for every run and every user, those of links in the folder the emulator works in. Between runs there is
no machine, and nothing that takes time.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import firmware
from qemu_port import machines
from unix_port import processes
from unix_port.errors import PortError
from unix_port.port import MODULE_PATH, Finished, board_text, check_timeout

SIDE = Path(__file__).resolve().parent / "side"

PROGRAM = machines.ARM.program
MACHINE = "mps2-an385"

# As much of a machine's memory stands for memory-mapped flash.
FLASH_BYTES = 16 * 1024 * 1024

# Until it runs what it is given.
START_TIMEOUT_S = 60

# Of a run whose caller gives none: a board that spins would never end.
RUN_TIMEOUT_S = 600

# Signs of the raw REPL: to enter it, and the end of each of a command's text, output and error.
_RAW = b"\x01"
_END = b"\x04"

# What the board says when it is ready for one of them, and a byte that is never sent: the emulator's own.
_PROMPT = b">>> "
_ESCAPE = 0x1D

# Comes before and after all that a run prints, see _Output. No script has a reason to print it.
_MARK = b"\x02e7b1c96f04d8a253"

# Where the board sees the files of a run, and the folder of a script that is a file; the emulator works
# in the first.
_JOB = "/job"
_SCRIPT = "/script"

# Reads one file over semihosting and runs it, then boot. Short: the line is slow.
_FETCH = """
mark = {mark!r}
print(mark, end="")
import micropython
from array import array
from uctypes import addressof
{trap}
path = {path}
text = bytearray({size})
handle = trap(1, array("i", [addressof(path), 1, len(path) - 1]))
trap(6, array("i", [handle, addressof(text), {size}]))
trap(2, array("i", [handle]))
try:
    exec(text)
    text = None
    boot.run({config!r})
finally:
    print(mark, end="")
"""

# What boot says when it cannot draw the fence.
_TOO_SMALL = re.compile(r"heap is (\d+) bytes too small for this fence")


class NoRoom(PortError):
    """The firmware's heap is too small for the run: the script never started.

    `missing_bytes`: by how much, where that is the fence's fault; None where the arguments did not fit.
    """

    def __init__(self, problem: str, missing_bytes: int | None) -> None:
        super().__init__(problem)
        self.missing_bytes = missing_bytes


class Stream(Protocol):
    """What takes output as it comes."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class Qemu:
    """A board. `heap_bytes`: of the firmware (see firmware.build), or give the ELF file.

    `flash` is what lies at the machine's flash_at when a run starts, `options` are more of the emulator's.
    PortError when there is no emulator or no firmware. `ended`: whether the machine of the last run ended
    before its script, by a reset, a crash or the timeout.
    """

    def __init__(
        self,
        heap_bytes: int = 512 * 1024,
        *,
        elf: Path | None = None,
        machine: machines.Emulated = machines.ARM,
        flash: bytes = b"",
        options: Sequence[str] = (),
    ) -> None:
        most = 0 if machine.flash_at is None else FLASH_BYTES
        if len(flash) > most:
            raise PortError(f"{len(flash):,} bytes of flash; the machine has {most:,}")
        self.machine = machine
        found = shutil.which(machine.program)
        if found is None:
            raise PortError(f"no {machine.program} here; on Debian: apt-get install {machine.package}")
        try:
            self.elf = elf or firmware.build(heap_bytes, machine.target)
        except firmware.FirmwareError as error:
            raise PortError(str(error)) from error
        self.ended = False
        self.report: dict[str, Any] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = tempfile.TemporaryDirectory(
            prefix="kvlab-qemu-"
        )
        self._place = Path(self._folder.name)
        self._machine = [found, *machine.arguments, "-kernel", str(self.elf.resolve())]
        self._machine += ["-semihosting", "-icount", "shift=0,sleep=off"]
        self._machine += ["-display", "none", "-monitor", "none", "-net", "none"]
        # A multiplexer polls its input at all times. The line alone stops when the firmware is not yet
        # ready, and starts when something else wakes the emulator: never, or a second later.
        self._machine += ["-chardev", "stdio,id=line,mux=on", "-serial", "chardev:line"]
        self._machine += ["-echr", str(_ESCAPE)]
        self._machine += options
        if flash:
            (self._place / "flash").write_bytes(flash)
            self._machine += [
                "-device",
                f"loader,file={_quoted(self._place / 'flash')},addr={machine.flash_at:#x},force-raw=on",
            ]

    def __enter__(self) -> Qemu:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove its files. May be called twice."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def run(
        self,
        script: str | Path,
        args: Sequence[object] = (),
        *,
        path: Sequence[str | Path] | None = None,
        cwd: Path | None = None,
        fence_bytes: int = 0,
        timeout_s: float | None = None,
        stream: Stream | None = None,
    ) -> Finished:
        """Run the script at a `Path`, or source text, and wait for its end.

        `args` become sys.argv[1:]; of a `Path` among them the board is given another name, by its place in
        `args` alone, so that what it counts does not depend on where files lie here. `path` are the folders
        of the modules [default: mpy_kv and the apps, as source], which the board sees as /lib, /lib1 and so
        on. Relative names are looked up in `cwd`, or our folder. With `fence_bytes` the script starts with
        exactly so much of the heap free. `stream` takes its output as it comes. What it prints to stderr is
        in stdout, as a board has one line; only an exception it ends with is not. The status is None after
        a timeout, -11 when the board crashed. `report` then holds what was measured, {} when there is
        nothing. NoRoom when the heap did not suffice to start it, PortError on other bad input.
        """
        check_timeout(timeout_s)
        if self._folder is None:
            raise PortError("the board is closed")
        libraries = [Path(folder) for folder in (MODULE_PATH if path is None else path)]
        folders = {f"/lib{i or ''}": folder for i, folder in enumerate(libraries)}
        search = [*folders, "/side"]
        folders["/side"] = SIDE
        if isinstance(script, Path):
            script = script.resolve()
            folders[_SCRIPT] = script.parent
            source = board_text(f"{_SCRIPT}/{script.name}")
        else:
            source = f"{_JOB}/script.py"
            (self._place / "script.py").write_text(script, encoding="utf-8")
        report = self._place / "report"
        report.unlink(missing_ok=True)
        config = {
            "script": source,
            "arguments": [self._argument(i, word) for i, word in enumerate(args)],
            "path": [source.rpartition("/")[0], *search],
            "heap_bytes": fence_bytes,
            "report": f"{_JOB}/report",
        }
        (self._place / "config").write_text(json.dumps(config), encoding="utf-8")
        roots = {"/": self._linked("here", cwd or Path.cwd()) + "/", _JOB: "."}
        roots |= {place: self._linked(place[1:], folder) for place, folder in folders.items()}
        output = _Output(stream, _MARK)
        expired = self._talk(self._command(roots), output, timeout_s)
        status: int | None = 1
        self.ended = not output.whole
        self.report = {}
        if report.is_file():
            self.report = json.loads(report.read_text(encoding="utf-8", errors="replace"))
            status = int(self.report["status"])
        elif expired:
            status = None
        elif output.crashed:
            status = -11
        said = output.error()
        if not self.report:
            _check_room(said, fence_bytes)
        if isinstance(script, Path) and "traceback" in self.report:
            self.report["traceback"] = _named(self.report["traceback"], script.parent)
        return Finished(status, output.end(), self.report.get("traceback", "") + said)

    def _linked(self, name: str, path: Path) -> str:
        """`name`, under which the emulator now finds that file or folder."""
        link = self._place / name
        link.unlink(missing_ok=True)
        link.symlink_to(path.resolve())
        return name

    def _argument(self, place: int, word: object) -> str:
        """A word of the script's command line."""
        if isinstance(word, Path):
            return f"{_JOB}/{self._linked(f'argument{place}', word)}"
        return board_text(word)

    def _talk(self, command: str, output: _Output, timeout_s: float | None) -> bool:
        """Start a machine, give it the command, and take what it says to its end; whether time was up.

        PortError when it does not start.
        """
        words = self._place / "words"
        with words.open("wb") as complaints:
            try:
                running = processes.started(
                    self._machine,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    cwd=self._place,
                )
                with running as process:
                    with _Deadline(START_TIMEOUT_S, process) as start:
                        while not output.ready and output.take_from(process):
                            pass
                        self._give(process, _RAW + command.encode() + _END)
                        while not (output.begun or output.whole) and output.take_from(process):
                            pass
                    limit = RUN_TIMEOUT_S if timeout_s is None else timeout_s
                    with _Deadline(limit, process) as timer:
                        while not (output.whole or output.crashed) and output.take_from(process):
                            pass
            except OSError as error:
                raise PortError(f"{self._machine[0]} does not start: {error.strerror}") from error
        if not output.begun and not output.whole:
            said = words.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            why = said[-1] if said else f"no word in {START_TIMEOUT_S} s" if start.expired else "no word"
            raise PortError(f"{self.machine.program} -kernel {self.elf} does not start: {why}")
        return timer.expired

    def _give(self, process: subprocess.Popen[bytes], text: bytes) -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: what it says tells why
            process.stdin.write(text)
            process.stdin.flush()

    def _command(self, mounts: dict[str, str]) -> str:
        """What the board is given over the line: it fetches the rest, the file systems and boot, itself."""
        lines = [(SIDE / "hostfs.py").read_text(encoding="utf-8"), "import vfs, sys"]
        lines += [f"vfs.mount(HostFS({folder!r}), {place!r})" for place, folder in mounts.items()]
        lines += ["sys.path[:] = ['/side']", "import boot", ""]
        start = self._place / "start.py"
        size = start.write_bytes("\n".join(lines).encode())
        return _FETCH.format(
            mark=_MARK.decode(),
            trap=self.machine.trap,
            path=start.name.encode() + b"\0",
            size=size,
            config=f"{_JOB}/config",
        )


def _quoted(path: Path) -> str:
    """A path within an option of qemu's, where a comma ends it."""
    return str(path).replace(",", ",,")


def _named(traceback: str, folder: Path) -> str:
    """A traceback with the script's folder under its own name."""
    return traceback.replace(f'File "{_SCRIPT}/', f'File "{folder}/')


def _check_room(said: str, fence_bytes: int) -> None:
    """NoRoom if the error a run without a report ended with says so."""
    short = _TOO_SMALL.search(said)
    if short:
        raise NoRoom(
            f"{fence_bytes:,} bytes free: {int(short[1]):,} more than the firmware's heap has left",
            int(short[1]),
        )
    last = said.strip().rsplit("\n", 1)[-1]
    if last.startswith("MemoryError"):
        raise NoRoom(f"no room to start the script, its arguments above all: {last}", None)


class _Deadline(threading.Timer):
    """Kills a process after `seconds` unless the block ends before; `expired` tells."""

    def __init__(self, seconds: float, process: subprocess.Popen[bytes]) -> None:
        super().__init__(min(seconds, threading.TIMEOUT_MAX), self._expire)
        self.daemon = True
        self.expired = False
        self._process = process

    def _expire(self) -> None:
        self.expired = True
        processes.kill(self._process)

    def __enter__(self) -> _Deadline:
        self.start()
        return self

    def __exit__(self, *why: object) -> None:
        self.cancel()


class _Output:
    """Takes what comes over the line, as it comes, and passes on what lies between two marks.

    Outside of them the line's own signs mean what they say; inside, every byte is the script's. `ready`:
    for a command. `begun`: it runs. `whole`: it has ended, and all it said is here. `crashed`: the firmware
    has, and spins.
    """

    # What the firmware's fault handlers print before they spin for ever.
    _CRASH = " exception caught:"

    def __init__(self, onward: Stream | None, mark: bytes) -> None:
        self.crashed = False
        self._caught = False
        self.inside = False
        self.begun = False
        self._mark = mark
        self._outside = b""
        self._held = b""  # what may turn out to be the mark's beginning
        self._pieces: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._onward = onward
        self._line = ""

    def take_from(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for something to take; False at the end."""
        assert process.stdout is not None
        raw = os.read(process.stdout.fileno(), 65536)
        self.take(raw)
        return bool(raw)

    def take(self, raw: bytes) -> None:
        held = self._held + raw
        while True:
            before, mark, rest = held.partition(self._mark)
            if not mark:
                break
            self._pass_on(before)
            self.inside = not self.inside
            self.begun = True
            held = rest
        # The mark's first byte comes in it once.
        at = held.rfind(self._mark[:1])
        if at < 0 or not self._mark.startswith(held[at:]):
            at = len(held)
        self._pass_on(held[:at])
        self._held = held[at:]

    @property
    def ready(self) -> bool:
        return self._outside.endswith(_PROMPT)

    @property
    def whole(self) -> bool:
        return self._outside.count(_END) >= 2

    def error(self) -> str:
        """What the command ended with: a traceback or nothing."""
        said = self._outside.split(_END)[1] if self.whole else b""
        return said.decode(errors="replace").replace("\r\n", "\n")

    def _pass_on(self, raw: bytes) -> None:
        if self.inside:
            # The firmware puts a \r before each \n.
            self._add(self._decoder.decode(raw.replace(b"\r", b"")))
        else:
            self._outside += raw

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        *lines, rest = (self._line + text).split("\n")
        self._line = rest[-200:]
        for line in lines:
            self._caught = self._caught or self._CRASH in line
            self.crashed = self.crashed or (self._caught and "xPSR" in line)
        if self._onward is not None:
            try:
                self._onward.write(text)
                self._onward.flush()
            except (OSError, ValueError):  # it went away, or cannot take this text
                self._onward = None

    def end(self) -> str:
        """All of it."""
        self._pass_on(self._held)
        self._held = b""
        self._add(self._decoder.decode(b"", final=True))
        return "".join(self._pieces)
