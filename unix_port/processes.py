"""Child processes that never outlive us, whatever ends us: all of this project's are started here.

`popen` and `run` are subprocess's own. `started` gives the child a group of its own, which ends with
the block. Any thread may start some. Where `stopped_by_signals` is in force, a signal that ends this
program first kills them all, so that threads that wait for one go on, and lets no new one start.

What kills us for good leaves no time for that. So every child bears a mark in its environment, which
those that it starts inherit, and beside us runs a watch, a shell that sleeps on a pipe from us: at our
end it kills whatever bears the mark. The pipe closes in a child when that is executed, so the watch
wakes after the last of them has its mark. Linux alone tells whose mark is whose (/proc).
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# In the environment of a child: the marks of all that it must not outlive, with colons between them.
MARKS_ENV = "KVLAB_STARTED_BY"

# The watch of the mark $0. What is being started while it looks is found the next time; some may
# resist for a moment, in a system call.
_WATCH = """
read -r _
tries=0
while [ $tries -lt 200 ]; do
    found=$(grep -lsF "$0" /proc/[0-9]*/environ)
    [ -n "$found" ] || break
    for file in $found; do
        file=${file%/environ}
        kill -9 "${file#/proc/}" 2>/dev/null
    done
    tries=$((tries + 1))
    sleep 0.05
done
"""

# How long our own end waits for the watch's, which has nothing to do then.
_WATCH_END_S = 5

_lock = threading.Lock()
_living: set[subprocess.Popen[Any]] = set()
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


class _Watched:
    """The mark of this process, and its watch from the first child on."""

    def __init__(self) -> None:
        self.mark = f"{os.getpid()}.{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._ends: tuple[int, int] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    def watch(self) -> None:
        """Start the watch unless it is there. Without a shell there is none."""
        with signals_held(), self._lock:
            if self._ends is not None:
                return
            self._ends = os.pipe()  # closed in whatever is executed
            if self._start():
                # What kills the watch alone must not leave us without one.
                threading.Thread(target=self._renew, name="watch", daemon=True).start()
                atexit.register(self.end)

    def _start(self) -> bool:
        assert self._ends is not None
        try:
            self._watch = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, self.mark],
                stdin=self._ends[0],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath)},  # no mark: it outlives whoever bears one
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            return False
        return True

    def _renew(self) -> None:
        """Start another watch whenever one is killed."""
        while True:
            assert self._watch is not None
            ended = self._watch.wait()
            with self._lock:
                if ended >= 0 or self._ends is None or not self._start():
                    return

    def end(self) -> None:
        """At our own end: what is still left of our children goes."""
        with self._lock:
            if self._ends is None:
                return
            for end in self._ends:
                os.close(end)
            self._ends = None
        assert self._watch is not None
        with suppress(subprocess.TimeoutExpired):
            self._watch.wait(_WATCH_END_S)

    def forget(self) -> None:
        """In a fork of us: the watch is our parent's."""
        if self._ends is not None:
            for end in self._ends:
                os.close(end)
        if self._watch is not None:
            self._watch.returncode = 0
        self.__init__()  # type: ignore[misc]


_watched = _Watched()
os.register_at_fork(after_in_child=_watched.forget)


def _marked(env: Mapping[str, str] | None) -> dict[str, str]:
    """`env`, or our own, as a child must have it that is not to outlive us. From then on we are watched."""
    _watched.watch()
    marks = os.environ.get(MARKS_ENV, "").split(":")
    if _watched.mark not in marks:
        marks.append(_watched.mark)
    return {**(os.environ if env is None else env), MARKS_ENV: ":".join(filter(None, marks))}


def mark_all() -> None:
    """From now on no child outlives us, whoever starts it: each inherits our environment."""
    os.environ[MARKS_ENV] = _marked(None)[MARKS_ENV]


def popen(command: Any, *, env: Mapping[str, str] | None = None, **how: Any) -> subprocess.Popen[Any]:
    """subprocess.Popen, of a child that does not outlive us."""
    return subprocess.Popen(command, env=_marked(env), **how)


def run(
    command: Any, *, env: Mapping[str, str] | None = None, **how: Any
) -> subprocess.CompletedProcess[Any]:
    """subprocess.run, of a child that does not outlive us."""
    return subprocess.run(command, env=_marked(env), **how)


@contextmanager
def started(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start `command` (`how` goes to popen). At the end of the block its whole group is killed.

    OSError as Popen raises it; PortError when everything is being stopped.
    """
    with _register():
        check_going_on()
        process = popen(command, start_new_session=True, **how)
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


def kill(process: subprocess.Popen[Any]) -> None:
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
