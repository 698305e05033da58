"""One process runs many scripts, each as if it had been started; one that fails costs the others nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from shared_upy import Shared


def test_each_script_is_as_if_started(tmp_path: Path) -> None:
    def script(text: str) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text)
        return path

    with Shared() as shared:
        assert shared.run(script("import sys\nx = 1\nprint(__name__, sys.argv[1:])"), [7, "a b"]) == (
            "__main__ ['7', 'a b']\n"
        )
        assert shared.run(script("print('x' in globals())")) == "False\n"
        assert shared.run(script("print('é' * 70000)")) == "é" * 70000 + "\n"
        for text, said in (
            ("print('before')\n1 / 0", "exit status 1\n--- stdout\nbefore\n\n--- stderr\nTraceback"),
            ("import sys; sys.exit(3)", "exit status 3"),
            ("raise SystemExit('two of them')", "two of them"),
            ("import os; os.system('kill -9 $PPID')", "its process ended"),
        ):
            with pytest.raises(AssertionError) as failed:
                shared.run(script(text))
            assert said in str(failed.value)
            assert shared.run(script("print('on')")) == "on\n"
        with pytest.raises(AssertionError, match=r"no end after 0.5 s"):
            shared.run(script("while True: pass"), timeout=0.5)
        assert shared.run(script("raise SystemExit")) == ""


def test_a_process_that_something_else_has_ended_is_started_anew(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('on')")
    with Shared() as shared:
        assert shared.run(script) == "on\n"
        assert shared._process is not None
        shared._process.kill()
        shared._process.wait()
        assert shared.run(script) == "on\n"
