"""`kvlab` and `python -m kvlab`: what an interrupt does is settled before anything slow is imported."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

from kvlab import INTERRUPTED


def run() -> NoReturn:
    """The console script, `tools/bin/kvlab`, which holds an interrupt back until here."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as by nohup
        signal.signal(signal.SIGINT, _leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from kvlab import cli

    raise SystemExit(cli.main())


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End at once. Nothing is there yet to clean up, or nothing any more, and KeyboardInterrupt would show a
    traceback, or be lost where an import or a destructor swallows it."""
    os.write(2, b"kvlab: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    run()
