"""Reads what a process prints, until it ends or its time is up."""

from __future__ import annotations

import codecs
import math
import os
import selectors
import subprocess
import time
from contextlib import suppress
from typing import IO, TextIO

from unix_port import processes

# How soon the end of a process is seen while something else keeps its pipes open.
LOOK_S = 0.1

# How long what lies in the pipes is read on, once the group is killed: only a process that has left
# the group can keep them open.
DRAIN_S = 1.0


def collect(
    process: subprocess.Popen[bytes], timeout_s: float | None, onward: TextIO | None
) -> tuple[int | None, str, str]:
    """(exit status, stdout, stderr) of `process`; the status is None when it ran into the timeout.

    Its stdout is also written to `onward` as it comes. At the end its whole group is killed: a
    background process that holds the pipes does not hold us.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Text(process.stdout, onward), _Text(process.stderr, None)
    deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for text in (out, err):
            selector.register(text.pipe, selectors.EVENT_READ, text)
        while (status := process.poll()) is None and (left := deadline - time.monotonic()) > 0:
            if selector.get_map():
                _read(selector, min(LOOK_S, left))
            else:  # it ends just now, or has closed both
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(LOOK_S, left))
        processes.kill(process)
        deadline = time.monotonic() + DRAIN_S
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            _read(selector, left)
    return status, out.whole(), err.whole()


def _read(selector: selectors.BaseSelector, wait_s: float) -> None:
    """What is there within `wait_s` seconds."""
    for key, _events in selector.select(wait_s):
        if not key.data.read():
            selector.unregister(key.fileobj)


class _Text:
    """One pipe as text, passed on to another stream as it comes."""

    def __init__(self, pipe: IO[bytes], onward: TextIO | None) -> None:
        self.pipe = pipe
        self._onward = onward
        self._pieces: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> bool:
        """Take what is there; False at the end of the pipe."""
        raw = os.read(self.pipe.fileno(), 65536)
        self._take(raw, final=not raw)
        return bool(raw)

    def whole(self) -> str:
        self._take(b"", final=True)
        return "".join(self._pieces)

    def _take(self, raw: bytes, final: bool) -> None:
        piece = self._decoder.decode(raw, final)
        self._pieces.append(piece)
        if self._onward is None or not piece:
            return
        try:
            try:
                self._onward.write(piece)
            except UnicodeEncodeError:
                coding = self._onward.encoding
                self._onward.write(piece.encode(coding, "replace").decode(coding))
            self._onward.flush()
        except (OSError, ValueError):  # it went away or is closed: go on reading
            self._onward = None
