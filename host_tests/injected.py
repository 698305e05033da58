"""An exception raised before any line, or any instruction, that given files execute."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any


class Injected:
    """Raises `error` before line number `at` that files below `inside`, but not `outside`, execute; counts
    them all. opcodes: before each instruction instead. `where`: where it was raised, "" if nowhere."""

    def __init__(
        self,
        error: type[BaseException],
        at: int,
        inside: Sequence[str],
        outside: Sequence[str] = (),
        opcodes: bool = False,
    ) -> None:
        self.error, self.at, self.opcodes = error, at, opcodes
        self.inside, self.outside = tuple(inside), tuple(outside)
        self.seen = 0
        self.where = ""

    def _local(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == ("opcode" if self.opcodes else "line"):
            self.seen += 1
            if self.seen == self.at:
                code = frame.f_code
                self.where = f"{Path(code.co_filename).name}, {code.co_name}, line {frame.f_lineno}"
                raise self.error("injected")
        return self._local

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self.inside) or file.startswith(self.outside):
            return None
        frame.f_trace_opcodes = self.opcodes
        return self._local

    def __enter__(self) -> Injected:
        self.before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        sys.settrace(self.before)
        return isinstance(value, self.error) and value.args == ("injected",)
