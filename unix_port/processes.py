"""Child processes that never outlive us: each leads a group of its own, and all can be stopped.

Any thread may start some. Where `stopped_by_signals` is in force, a signal that ends this program
first kills them all, so that threads that wait for one go on, and lets no new one start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from unix_port.errors import PortError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# How soon a signal is seen that came just as `as_completed` began to wait.
LOOK_S = 0.2

# How soon a signal comes again whose exception was swallowed.
AGAIN_S = 0.02

_lock = threading.Lock()
_living: set[subprocess.Popen[bytes]] = set()
_stopping = False

# Of the main thread, the only one that sees signals: whether it is held, and the signal that came
# meanwhile. Acting on it at the register would wait for a lock that this thread holds.
_held = False
_waiting_signal: int | None = None


class Terminated(SystemExit):
    """A signal asked this program to end. `status`, the exit status, is 128 + its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = 128 + number
        super().__init__(self.status)


@contextmanager
def started(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start `command` (`how` goes to Popen). At the end of the block its whole group is killed.

    OSError as Popen raises it; PortError when everything is being stopped.
    """
    with _register():
        check_going_on()
        process = subprocess.Popen(command, start_new_session=True, **how)
        _living.add(process)
    try:
        yield process
    finally:
        kill(process)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):  # what was still to be written has no reader
                    pipe.close()
        with _register():
            _living.discard(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the group that `process` leads, also when only others of it are left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def check_going_on() -> None:
    """PortError when everything is being stopped. For long work between processes."""
    if _stopping:
        raise PortError("stopped by a signal")


def as_completed(jobs: Iterable[Future[Any]]) -> Iterator[Future[Any]]:
    """The jobs as they end, like that of concurrent.futures, but no signal waits for one of them.

    A wait without a limit never sees the signal that comes between CPython's last look and its wait.
    """
    pending = set(jobs)
    while pending:
        done, pending = wait(pending, LOOK_S, FIRST_COMPLETED)
        yield from done


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Within the block SIGINT, SIGTERM and SIGHUP kill every process started here and raise, in the
    main thread: KeyboardInterrupt for SIGINT, Terminated for the others.

    Only the first does, so that cleaning up is not cut short; a second SIGINT ends the program at
    once. Where Python swallows what was raised (in a destructor, or in what imports call when they are done),
    the signal comes again. What is ignored (nohup) stays so. Off the main thread the block changes nothing.
    """
    global _stopping, _waiting_signal
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: handler
        for number in SIGNALS
        if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)  # None: not Python's
    }
    for number in before:
        signal.signal(number, _on_signal)
    hook, sys.unraisablehook = sys.unraisablehook, _on_unraisable
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
        _stopping, _waiting_signal = False, None


@contextmanager
def signals_held() -> Iterator[None]:
    """In the main thread a signal is acted on at the end of the block, which it must not cut short.

    Such as submitting work to a pool: a thread whose start is cut short is one nobody waits for.
    """
    global _held
    if _held or threading.current_thread() is not threading.main_thread():
        yield
        return
    _held = True
    try:
        yield
    finally:
        _held = False
        if _waiting_signal is not None and not _stopping:
            _stop(_waiting_signal)


@contextmanager
def _register() -> Iterator[None]:
    """The register of processes, locked. A signal is acted on once it is whole again."""
    with signals_held(), _lock:
        yield


def _on_unraisable(lost: Any) -> None:
    """Python's hook for exceptions that nobody can catch, while signals are ours."""
    if lost.exc_type not in (KeyboardInterrupt, Terminated):
        sys.__unraisablehook__(lost)
        return
    number = getattr(lost.exc_value, "number", signal.SIGINT)

    def again() -> None:
        global _stopping
        _stopping = False
        os.kill(os.getpid(), number)

    timer = threading.Timer(AGAIN_S, again)  # in this frame it would be swallowed again
    timer.daemon = True
    timer.start()


def _on_signal(number: int, _frame: FrameType | None) -> None:
    global _waiting_signal
    if _stopping:
        if number == signal.SIGINT:
            os._exit(128 + number)
        return
    _waiting_signal = number
    if not _held:
        _stop(number)


def _stop(number: int) -> None:
    global _stopping
    _stopping = True  # before the lock: another signal may come at any time, and must not wait for it
    with _lock:
        for process in _living:
            kill(process)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)
