"""One process of the unix port that runs many scripts, since a start costs more than most of them."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from unix_port import port

SERVER = Path(__file__).parent / "device" / "serve.py"
END = re.compile(rb"\x00end (\d+)\n\Z")
HEAP_BYTES = 96 << 20


class Shared:
    """Called as the unix port's fixture is. Started by the first script, and anew after one that fails or
    where something else has ended it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        self._open.close()
        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        # A command that a signal ends in this process, as tests have it, kills all that was started here.
        if self._process is not None and self._process.poll() is not None:
            self._close()
        if self._process is None:
            self._errors = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
            self._process = self._open.enter_context(
                port.started([str(SERVER)], heap_bytes=HEAP_BYTES, **how)
            )
        return self._process

    def run(
        self, script: Path, args: Sequence[object] = (), heap_bytes: int = HEAP_BYTES, timeout: float = 120
    ) -> str:
        """Run the script and return its stdout. AssertionError unless it ends with exit status 0."""
        assert heap_bytes <= HEAP_BYTES
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        self._errors.truncate(0)
        process.stdin.write(json.dumps([str(script), *map(str, args)]).encode() + b"\n")
        process.stdin.flush()
        out, deadline = b"", time.monotonic() + timeout
        while not (end := END.search(out)):
            ready, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
            more = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not more:
                how = "its process ended" if ready else f"no end after {timeout} s"
                self._fail(how, out)
            out += more
        if end[1] != b"0":
            self._fail(f"exit status {end[1].decode()}", out[: end.start()])
        return out[: end.start()].decode()

    def _fail(self, how: str, out: bytes) -> None:
        self._errors.seek(0)
        errors = self._errors.read().replace(b"\0", b"")
        self._close()
        raise AssertionError(
            f"micropython: {how}\n--- stdout\n{out.decode(errors='replace')}"
            f"\n--- stderr\n{errors.decode(errors='replace')}"
        )
