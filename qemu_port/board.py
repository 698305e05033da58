"""One emulated board: qemu-system-arm with the firmware, spoken to over its serial line by mpremote.

    from qemu_port.board import Qemu
    with Qemu(heap_bytes=512 * 1024) as board:
        done = board.run("script.py", ["an argument"], timeout_s=60)
        print(done.stdout, done.status)

Scripts see the files of this machine under their own paths (side/hostfs.py), and `path` as sys.path.
Every run starts from a soft reset, with an empty heap. The machine (MPS2 AN385, a Cortex-M3) runs at
one nanosecond of its own time an instruction, so that counts repeat exactly (side/instructions.py).
"""

from __future__ import annotations

import codecs
import json
import re
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport

import firmware
from qemu_port import machines
from unix_port.errors import PortError
from unix_port.port import MODULE_PATH, Finished, board_text, check_timeout

SIDE = Path(__file__).resolve().parent / "side"

PROGRAM = machines.ARM.program
MACHINE = "mps2-an385"

# As much of a machine's memory stands for memory-mapped flash.
FLASH_BYTES = 16 * 1024 * 1024

START_TIMEOUT_S = 60

# mpremote takes two bytes that come late, on a busy machine, for bytes that do not come.
LINE_TIMEOUT_S = 20

# How long a closed line is taken for that of an emulator that is just ending.
END_TIMEOUT_S = 10

# Of a run whose caller gives none: a board that spins would never end.
RUN_TIMEOUT_S = 600

# Reads one file over semihosting and runs it, then boot. Short: the line is slow. The mark comes before
# and after all that a run prints, see _Output.
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
    """A running board. `heap_bytes`: of the firmware (see firmware.build), or give the ELF file.

    `flash` is what lies at the machine's flash_at from the start on. PortError when there is no emulator
    or no firmware.
    """

    def __init__(
        self,
        heap_bytes: int = 512 * 1024,
        *,
        elf: Path | None = None,
        machine: machines.Emulated = machines.ARM,
        flash: bytes = b"",
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
        self._folder = tempfile.TemporaryDirectory(prefix="kvlab-qemu-")
        self._place = Path(self._folder.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._line: SerialTransport | None = None
        self._fresh = True
        self.report: dict[str, Any] = {}
        command = [found, *machine.arguments, "-kernel", str(self.elf), "-display", "none"]
        command += ["-monitor", "none", "-serial", "pty", "-semihosting"]
        command += ["-icount", "shift=0,sleep=off"]
        if flash:
            (self._place / "flash").write_bytes(flash)
            command += [
                "-device",
                f"loader,file={_quoted(self._place / 'flash')},addr={machine.flash_at:#x},force-raw=on",
            ]
        # An idle board spins: it must not outlive us, whatever ends us.
        guard = shutil.which("setpriv")
        if guard is not None:
            command = [guard, "--pdeathsig", "KILL", *command]
        try:
            self._start(command)
        except BaseException:
            self.close()
            raise

    def _start(self, command: list[str]) -> None:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._process = process
        assert process.stdout is not None
        said = b""
        with self._deadline(START_TIMEOUT_S):
            while not (found := re.search(rb"redirected to (/dev/\S+)", said)):
                line = process.stdout.readline()
                if not line:
                    words = said.decode(errors="replace").strip().splitlines()
                    raise PortError(
                        f"{self.machine.program} does not start: {words[-1] if words else 'no word'}"
                    )
                said += line
            try:
                self._line = SerialTransport(found[1].decode(), timeout=LINE_TIMEOUT_S)
                self._line.enter_raw_repl(soft_reset=False, timeout_overall=START_TIMEOUT_S)
            except (TransportError, OSError) as error:
                self._kill()
                words = (process.stdout.read().decode(errors="replace").strip() or str(error)).splitlines()
                raise PortError(
                    f"{self.machine.program} -kernel {self.elf} does not start: {words[-1]}"
                ) from error

    def __enter__(self) -> Qemu:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """End the emulator. May be called twice."""
        self._kill()
        if self._line is not None:
            self._line.serial.close()
            self._line = None
        if self._process is not None:
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        self._folder.cleanup()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    @property
    def running(self) -> bool:
        """False after close(), a crash or a timeout: then a new board is needed."""
        return self._process is not None and self._process.poll() is None

    def _deadline(self, seconds: float) -> _Deadline:
        """A context in which the board is killed after `seconds`: whoever waits for it then ends."""
        return _Deadline(seconds, self._kill)

    def run(
        self,
        script: str | Path,
        args: Sequence[object] = (),
        *,
        path: Sequence[str | Path] | None = None,
        fence_bytes: int = 0,
        timeout_s: float | None = None,
        stream: Stream | None = None,
    ) -> Finished:
        """Run the script at a `Path`, or source text, and wait for its end.

        `args` become sys.argv[1:]; `path` are the folders of the modules [default: mpy_kv and the apps, as
        source], which the board sees as /lib, /lib1 and so on. With `fence_bytes` the script starts with
        exactly so much of the heap free. `stream` takes its output as it comes. What it prints to stderr
        is in stdout, as a board has one line; only an exception it ends with is not. The status is None
        after a timeout, -11 when the board crashed. `report` then holds what was measured, {} when there
        is nothing. NoRoom when the heap did not suffice to start it, PortError on other bad input.
        """
        check_timeout(timeout_s)
        if not self.running or self._line is None:
            raise PortError("the board has ended")
        source = script if isinstance(script, Path) else self._place / "script.py"
        if not isinstance(script, Path):
            source.write_text(script, encoding="utf-8")
        source = source.resolve()
        mounts = {
            f"/lib{i or ''}": board_text(folder)
            for i, folder in enumerate(MODULE_PATH if path is None else path)
        }
        report = self._place / "report"
        report.unlink(missing_ok=True)
        config = {
            "script": board_text(source),
            "arguments": [board_text(word) for word in args],
            "path": [board_text(source.parent), *mounts, "/side"],
            "heap_bytes": fence_bytes,
            "report": str(report),
        }
        (self._place / "config").write_text(json.dumps(config), encoding="utf-8")
        mark = "\x02" + secrets.token_hex(8)
        output = _Output(stream, self._kill, mark.encode())
        limit = RUN_TIMEOUT_S if timeout_s is None else timeout_s
        timer = self._deadline(limit)
        status: int | None = 1
        error = b""
        self.report = {}
        with timer:
            try:
                if not self._fresh:
                    self._line.enter_raw_repl(timeout_overall=limit)
                self._fresh = False
                roots = {"/": "", "/side": board_text(SIDE), **mounts}
                self._line.exec_raw_no_follow(self._command(mark, roots))
                error = self._follow(self._line, output)
            except (TransportError, OSError) as lost:
                # Of a board that was killed or has reset itself the line says nothing new.
                if not (timer.expired or output.crashed or self._ended()):
                    error = f"the line to the board: {lost}\n".encode()
        if report.is_file():
            self.report = json.loads(report.read_text(encoding="utf-8", errors="replace"))
            status = int(self.report["status"])
        elif timer.expired:
            status = None
        elif output.crashed:
            status = -11
        said = error.decode(errors="replace").replace("\r\n", "\n")
        if not self.report:
            _check_room(said, fence_bytes)
        return Finished(status, output.end(), self.report.get("traceback", "") + said)

    def _follow(self, line: SerialTransport, output: _Output) -> bytes:
        """Pass on what the command prints, to its end; returns what it ended with: a traceback or nothing."""
        # The raw REPL's sign for the end of output is a byte that a script may print too.
        line.read_until(1, b"\x04", timeout=None, data_consumer=output.take)
        while output.inside:
            line.read_until(1, b"\x04", timeout=None, data_consumer=output.take)
        error: bytes = line.read_until(1, b"\x04", timeout=None)
        return error[:-1]

    def _ended(self) -> bool:
        """Whether the emulator is gone; waits a moment for one that is just going."""
        assert self._process is not None
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _command(self, mark: str, mounts: dict[str, str]) -> str:
        """What the board is given over the line: it fetches the rest, the file systems and boot, itself."""
        lines = [(SIDE / "hostfs.py").read_text(encoding="utf-8"), "import vfs, sys"]
        lines += [f"vfs.mount(HostFS({folder!r}), {place!r})" for place, folder in mounts.items()]
        lines += ["sys.path[:] = ['/side']", "import boot", ""]
        start = self._place / "start.py"
        size = start.write_bytes("\n".join(lines).encode())
        return _FETCH.format(
            mark=mark,
            trap=self.machine.trap,
            path=board_text(start).encode() + b"\0",
            size=size,
            config=board_text(self._place / "config"),
        )


def _quoted(path: Path) -> str:
    """A path within an option of qemu's, where a comma ends it."""
    return str(path).replace(",", ",,")


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
    """Calls `act` after `seconds` unless the block ends before; `expired` tells."""

    def __init__(self, seconds: float, act: Any) -> None:
        super().__init__(min(seconds, threading.TIMEOUT_MAX), self._expire)
        self.daemon = True
        self.expired = False
        self._act = act

    def _expire(self) -> None:
        self.expired = True
        self._act()

    def __enter__(self) -> _Deadline:
        self.start()
        return self

    def __exit__(self, *why: object) -> None:
        self.cancel()


class _Output:
    """Takes what the board prints, as it comes, and passes on what lies between two marks.

    Outside of them the line's own signs mean what they say; inside, every byte is the script's.
    """

    # What the firmware's fault handlers print before they spin for ever.
    _CRASH = " exception caught:"

    def __init__(self, onward: Stream | None, kill: Any, mark: bytes) -> None:
        self.crashed = False
        self.inside = False
        self._mark = mark
        self._held = b""  # what may turn out to be the mark's beginning
        self._pieces: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._onward = onward
        self._kill = kill
        self._line = ""

    def take(self, raw: bytes) -> None:
        held = self._held + raw
        while True:
            before, mark, rest = held.partition(self._mark)
            if not mark:
                break
            self._pass_on(before)
            self.inside = not self.inside
            held = rest
        # The mark's first byte comes in it once.
        at = held.rfind(self._mark[:1])
        if at < 0 or not self._mark.startswith(held[at:]):
            at = len(held)
        self._pass_on(held[:at])
        self._held = held[at:]

    def _pass_on(self, raw: bytes) -> None:
        if self.inside:
            # The firmware puts a \r before each \n.
            self._add(self._decoder.decode(raw.replace(b"\r", b"")))

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._line = (self._line + text)[-200:]
        if "\n" in text:
            self.crashed = self.crashed or self._CRASH in self._line
            if self.crashed and "xPSR" in self._line:
                self._kill()
            self._line = ""
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
