"""The raw REPL of a board on a serial port, by mpremote's transport; every failure is one line."""

from __future__ import annotations

import contextlib
import io
import math
import os
import stat
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport
from serial.tools import list_ports

from commandline.errors import BadInput, FellShort

BAUD = 115200
CONNECT_TIMEOUT_S = 5.0
INTERRUPT_EVERY_S = 0.4  # until it has a prompt: a program may catch the first ones
INTERRUPT_SHARE = 0.7  # of that time; the rest is for a prompt of another look
ANSWER_TIMEOUT_S = 60.0  # erasing flash and hashing a model take their time
RUN_MOST_S = 600.0  # whatever the board goes on to say

_PROMPT = b">>> "
_HEARD = 200  # bytes kept of what comes instead

# What the transport raises when the other end stops making sense; pyserial's errors are OSErrors.
_LOST = (TransportError, OSError, struct.error, UnicodeDecodeError)


class BoardError(FellShort):
    """The board raised an exception; `text` is its last line, such as `OSError: [Errno 28] ENOSPC`."""

    def __init__(self, traceback: str) -> None:
        lines = traceback.strip().splitlines()
        self.text = lines[-1] if lines else "unknown error"
        super().__init__(f"the board says {self.text}")

    @property
    def full(self) -> bool:
        """The file system has no room left."""
        return "ENOSPC" in self.text or self.text.endswith((" 28", "[Errno 28]"))


class Lost(FellShort):
    """The board stopped answering."""


class Deadline:
    """A moment from which on a port gives nothing more, whatever still comes there.

    The transport times silence, not talk: it would read for ever what a GPS receiver says.
    """

    def __init__(self) -> None:
        self._at = math.inf  # of time.monotonic()
        self._said = ""

    def hold(self, port: Any) -> None:
        """Bind a pyserial port."""
        for name in ("read", "inWaiting"):
            setattr(port, name, self._guarded(getattr(port, name)))

    @contextlib.contextmanager
    def within(self, seconds: float, what: str) -> Iterator[None]:
        """TransportError `no WHAT within ...` where what is read inside takes longer."""
        self._at, self._said = time.monotonic() + seconds, f"no {what} within {seconds:g} s"
        try:
            yield
        finally:
            self._at = math.inf

    @property
    def left_s(self) -> float:
        """Seconds to it."""
        return max(0.0, self._at - time.monotonic())

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            if time.monotonic() >= self._at:
                raise TransportError(self._said)
            return call(*arguments)

        return guarded


class Link:
    """A raw REPL. `transport`: mpremote's, or anything with its methods; `port` and `option`, which named
    it: for messages."""

    def __init__(self, transport: Any, port: str, option: str = "--port") -> None:
        self.transport = transport
        self.port = port
        self.option = option
        self._deadline = Deadline()
        self._heard = b""
        if hasattr(transport, "serial"):
            self._deadline.hold(transport.serial)

    def interrupt(self) -> None:
        """Stop what runs, by as many interrupts as it takes, and enter the raw REPL; nothing is reset.
        BadInput if what runs goes on, or is no MicroPython."""
        self._heard = b""
        self._enter(soft_reset=False)

    def soft_reset(self) -> None:
        """Start the interpreter anew, with an empty heap and without main.py. For boards only: on the
        unix port it ends the process."""
        self._enter(soft_reset=True)

    def _enter(self, soft_reset: bool) -> None:
        try:
            with (
                self._deadline.within(CONNECT_TIMEOUT_S, "prompt"),
                contextlib.redirect_stdout(io.StringIO()),  # mpremote prints what it could not read
                self._reads_within(INTERRUPT_EVERY_S / 4),
            ):
                if not soft_reset:
                    self._stop()
                self.transport.enter_raw_repl(soft_reset=soft_reset, timeout_overall=self._deadline.left_s)
        except _LOST as error:
            raise BadInput(f"{self.option} {self.port}: {self._unanswered(error)}") from error

    def _stop(self) -> None:
        """Interrupt what runs there, again and again, until there is a prompt or most of the time is over."""
        port = getattr(self.transport, "serial", None)
        if port is None:
            return
        end = time.monotonic() + INTERRUPT_SHARE * CONNECT_TIMEOUT_S
        while time.monotonic() < end:
            port.write(b"\r\x03\x02")  # ctrl-B: out of a raw REPL, which has no such prompt
            again = time.monotonic() + INTERRUPT_EVERY_S
            while time.monotonic() < min(again, end):
                self._heard = (self._heard + port.read(max(1, port.inWaiting())))[-_HEARD:]
                if self._heard.endswith(_PROMPT):
                    return

    @contextlib.contextmanager
    def _reads_within(self, seconds: float) -> Iterator[None]:
        """No read waits longer. The transport does not ask a pseudo-terminal whether there is anything to
        read."""
        port = getattr(self.transport, "serial", None)
        if port is None:
            yield
            return
        patience, port.timeout = port.timeout, seconds
        try:
            yield
        finally:
            with contextlib.suppress(*_LOST):
                port.timeout = patience

    def _unanswered(self, error: BaseException) -> str:
        """What keeps a board from answering, in the words of its user."""
        why = f"no prompt within {CONNECT_TIMEOUT_S:g} s" if "raw repl" in str(error) else _why(error)
        said = " ".join(self._heard.decode("ascii", "ignore").split())
        said = "".join(letter for letter in said if letter.isprintable())[-40:]
        heard, other = "", "no MicroPython answers there: is it the right port?"
        if said:
            heard, other = f', but "{said}"', "is it the port of another device?"
        return (
            f"{why}{heard}: a program there catches every interrupt (KeyboardInterrupt): let it end, or reset"
            f" the board and try again before it starts; or {other}"
        )

    def run(self, code: str) -> str:
        """What `code` prints on the board. BoardError if it raises, Lost if no answer comes or none ends."""
        return self._execute(code, ANSWER_TIMEOUT_S, RUN_MOST_S).decode("utf-8").replace("\r\n", "\n")

    def follow(
        self,
        code: str,
        take: Callable[[bytes], None],
        timeout_s: float = ANSWER_TIMEOUT_S,
        most_s: float = math.inf,
    ) -> None:
        """Give `take` what `code` prints on the board, as it comes; a 0x04 ends it. Raises as run() does,
        Lost after `timeout_s` of silence, or `most_s` in all."""
        self._execute(code, timeout_s, most_s, data_consumer=take)

    def _execute(self, code: str, silence_s: float, most_s: float, **how: Any) -> bytes:
        try:
            with self._deadline.within(most_s, "end of its answer"):
                out, errors = self.transport.exec_raw(code, timeout=silence_s, **how)
            if errors:
                raise BoardError(errors.decode("utf-8", "replace"))
            out.decode("utf-8")  # what is no text was damaged on the way
        except _LOST as error:
            raise Lost(
                f"{self.option} {self.port}: the board stopped answering ({_why(error)}); what is done is"
                " kept: run it again"
            ) from error
        printed: bytes = out
        return printed

    def close(self) -> None:
        """Back to the friendly REPL, whatever state it is in, and let go of the port."""
        for step in (lambda: self.transport.serial.write(b"\r\x03\x02"), self.transport.close):
            with contextlib.suppress(*_LOST, AttributeError):
                step()


@contextlib.contextmanager
def connected(port: str | None, option: str = "--port", patience_s: float = 0) -> Iterator[Link]:
    """The interrupted board on `port`; None: on the only USB serial port there is. BadInput.

    A board that is still starting is asked again until `patience_s` are over.
    """
    name = port or the_only_port(option)
    try:
        transport = SerialTransport(name, BAUD, timeout=CONNECT_TIMEOUT_S)
        if "://" not in name:  # not every kind of URL has it
            transport.serial.write_timeout = ANSWER_TIMEOUT_S
    except (TransportError, OSError, ValueError) as error:
        raise BadInput(f"{option} {name}: {_unusable(name)}") from error
    link = Link(transport, name, option)
    try:
        _awaken(link, time.monotonic() + patience_s)
        yield link
    finally:
        link.close()


def _awaken(link: Link, until: float) -> None:
    while True:
        try:
            return link.interrupt()
        except BadInput:
            if time.monotonic() >= until:
                raise


def nothing_there(port: str | None) -> bool:
    """Whether there is no port of that name; without one whether no board is connected by USB."""
    if not port:
        return not _usb_ports()
    return os.name == "posix" and "://" not in port and not os.path.lexists(port)


def the_only_port(option: str = "--port") -> str:
    """The USB serial port, if there is exactly one. BadInput lists what there is."""
    found = _usb_ports()
    if not found:
        raise BadInput(f"{option}: no board is connected by USB; name its serial port")
    if len(found) > 1:
        raise BadInput(f"{option}: which one? {', '.join(found)}")
    return found[0]


def _usb_ports() -> list[str]:
    return sorted(port.device for port in list_ports.comports() if port.vid is not None)


def _unusable(name: str) -> str:
    """Why the port cannot be opened."""
    if "://" in name:
        return "cannot be opened"
    if os.name == "posix":
        path = Path(name)
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            others = ", ".join(_usb_ports()) or "none"
            return f"no such port (USB serial ports: {others})"
        except (OSError, ValueError) as error:
            return f"cannot be opened: {getattr(error, 'strerror', None) or error}"
        if not stat.S_ISCHR(mode):
            return "is no serial port"
        if not os.access(path, os.R_OK | os.W_OK):
            return f"not permitted; on Linux join the group that owns it: {_group(path)}"
        if not _is_terminal(path):
            return "is no serial port"
    return "in use by another program, such as a terminal; close that first"


def _is_terminal(path: Path) -> bool:
    """Whether that character device takes terminal settings; True also where it cannot be asked."""
    try:
        device = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return os.isatty(device)
    finally:
        os.close(device)


def _group(path: Path) -> str:
    try:
        return path.group()
    except (KeyError, OSError, NotImplementedError):
        return "unknown"


def _why(error: BaseException) -> str:
    """First line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0][:80]
