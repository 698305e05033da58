"""A process that runs tests on a copy of the tree: `python worker.py COPY`, requests and answers a line each.

What tests import from elsewhere (pytest, numpy ...) is imported once; each request is a fork, which imports
the copy's own files anew. Ends when its input does; a fork dies with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).resolve().parents[1]
MEMORY_BYTES = 6 << 30
PR_SET_PDEATHSIG = 1


def _die_with_parent(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # another system than Linux
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _pytest(copy: Path, order: dict[str, Any]) -> int:
    import pytest
    from hypothesis import Phase, settings

    from mutation.watch import Chosen, Recorder

    # The same examples each time, no search for a smaller one.
    settings.register_profile(
        "mutation", derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
    )
    settings.load_profile("mutation")
    report = Path(order["report"])
    watch: Chosen | Recorder
    if order["do"] == "record":
        watch = Recorder([copy / f for f in order["files"]], copy, report)
    else:
        watch = Chosen(order["tests"], order["seconds"], order["least_s"], report)
    # What `make test` runs always, in this process alone.
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--strict-markers"]
    options += ["-m", "not train and not exhaustive"]
    if order["do"] != "record":
        options += ["-x", "--tb=no", "--show-capture=no"]
    return int(pytest.main([*options, *order["paths"]], plugins=[watch]))


def _child(copy: Path, order: dict[str, Any], parent: int) -> None:
    _die_with_parent(parent)
    out = os.open(order["report"] + ".log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(out, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_CPU, (order["limit_s"], order["limit_s"] + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.dont_write_bytecode = order["do"] != "record"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "tools")])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(copy)
    sys.path[:0] = [str(copy / "host_tests"), str(copy / "tools"), str(copy)]
    status = _pytest(copy, order)
    sys.stdout.flush()
    if order["do"] == "record":
        ours = str(copy)
        named = [m for m, module in sys.modules.items() if _elsewhere(module, ours)]
        Path(order["report"] + ".imports").write_text(json.dumps(sorted(named)), encoding="utf-8")
    os._exit(status)


def _elsewhere(module: Any, ours: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and "site-packages" in file and not file.startswith(ours)


def _run(copy: Path, order: dict[str, Any]) -> dict[str, Any]:
    for name in order.get("imports", ()):
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    report = Path(order["report"])
    report.unlink(missing_ok=True)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _child(copy, order, parent)
        finally:
            os._exit(99)
    _, status, used = os.wait4(child, 0)
    return {"status": os.waitstatus_to_exitcode(status), "cpu_s": used.ru_utime + used.ru_stime}


def main() -> None:
    copy = Path(sys.argv[1]).resolve()
    # Nothing of the tree that this worker's own files lie in but these.
    sys.path[:] = [str(TOOLS), *[p for p in sys.path if Path(p).resolve() not in (TOOLS, TOOLS / "mutation")]]
    for line in sys.stdin:
        print(json.dumps(_run(copy, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
