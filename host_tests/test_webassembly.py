"""A port without native code, for real: the package falls back to plain kernels and gives the same bits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from fetched import need
from jobs import together
from test_bad_input import CASES
from test_goldens import NAMES, Golden, visible
from webassembly import Webassembly, fetch

DEVICE = Path(__file__).parent / "device"


@pytest.fixture(scope="module")
def wasm() -> Webassembly:
    return Webassembly(need(fetch))


def test_it_is_such_a_port(wasm: Webassembly) -> None:
    said = wasm.run("import sys\nprint(sys.platform, sys.maxsize == 0x7FFFFFFF)\n")
    assert said == "webassembly True\n"
    with pytest.raises(AssertionError, match="SyntaxError: invalid micropython decorator"):
        wasm.run("import micropython\n@micropython.native\ndef f(): pass\n")


FALLBACK = """
import json, sys
from mpy_kv import Geometry, KVCache, kernels, port
import stories
from stories import kernels as numbers
cache = KVCache(Geometry(1, 2, 1, 8, window=4, sinks=0))
print(json.dumps({
    "emitter": port.EMITTER,
    "best": [kernels.best().name, cache.kernels.name, numbers.best().name],
    "reasons": [kernels.reasons, numbers.reasons],
    "without decorators": [type(sys.modules[name]).__name__ for name in
                           ("mpy_kv.cache", "mpy_kv.sequence", "mpy_kv.pools.fixed", "stories.model")],
}))
"""


def test_it_falls_back_to_the_plain_kernels_and_says_why(wasm: Webassembly) -> None:
    said = json.loads(wasm.run(FALLBACK))
    assert said["emitter"] is False
    assert said["best"] == ["plain", "plain", "plain"]
    for reasons in said["reasons"]:
        assert "no native code emitter" in reasons["viper"]
    assert said["without decorators"] == ["_Names"] * 4


def test_asking_for_native_kernels_is_refused_with_the_reason(wasm: Webassembly) -> None:
    with pytest.raises(AssertionError, match="'viper' cannot be used here: no native code emitter"):
        wasm.run("from mpy_kv import kernels\nkernels.get('viper')\n")


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, wasm: Webassembly, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[np.ndarray, bytes]]:
    """Outputs and buffer of every golden that this session asks for, in one start."""
    names = [
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == request.path and item.originalname == "test_the_goldens"
    ]
    folder = tmp_path_factory.mktemp("goldens")
    shutil.copy(DEVICE / "cache_job.py", folder)

    def run(listed: Path) -> None:
        script = f"import sys\nsys.path.append({str(folder)!r})\n{(DEVICE / 'cache_jobs.py').read_text()}"
        wasm.run(script, [listed], timeout=300)

    found = together([Golden(name).runner for name in names], folder, run, "plain")
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_goldens(name: str, results: dict[str, tuple[np.ndarray, bytes]]) -> None:
    assert Golden(name).image(*results[name], visible(name)) == Golden(name).want


def test_wrong_arguments_are_refused_as_elsewhere(wasm: Webassembly) -> None:
    complaints, count = json.loads(wasm.run(DEVICE / "bad_input.py", ["plain"], heap_bytes=16 << 20))
    assert complaints == []
    assert count == len(CASES)
