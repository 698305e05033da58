"""Between prefill and attend or commit the caller's arrays may change: see device/staged.py."""

from __future__ import annotations

import json
import sys
from array import array
from pathlib import Path

import numpy as np
import pytest

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.cpython import address
from mpy_kv.errors import BadArgument

DEVICE = Path(__file__).parent / "device"
sys.path.insert(0, str(DEVICE))
import staged  # noqa: E402


def test_on_cpython() -> None:
    found = staged.complaints(kernels.get("plain"))
    assert len(found) == 23
    assert found == dict.fromkeys(found)


@pytest.mark.parametrize("name", ["plain", "viper"])
def test_on_the_port(name: str, upy) -> None:
    found = json.loads(upy.run(DEVICE / "staged.py", [name], heap_bytes=16 << 20))
    assert len(found) == 23
    assert found == dict.fromkeys(found)


def frozen(x: np.ndarray) -> np.ndarray:
    """Read-only, of the same memory: `out` cannot be changed through it, but it is changed."""
    x = x[:]
    x.setflags(write=False)
    return x


@pytest.mark.parametrize("other", [None, memoryview, frozen], ids=["numpy", "memoryview", "read-only"])
@pytest.mark.parametrize(("name", "at", "want"), staged.VIEWS)
def test_views_of_numpy_are_compared(name: str, at: int, want: str, other) -> None:
    assert staged.views(kernels.get("plain"), name, at, np.asarray, other) == want


def test_addresses() -> None:
    """Those that numpy knows; an odd place, an array that is not contiguous, one without bytes."""
    x = np.zeros((3, 4), "f")
    for y in (x, x[1:], x[:, 1:], x[::2, ::-1], x.T, np.zeros(9, "b")[1:], frozen(x)):
        assert address(y) == y.__array_interface__["data"][0] == address(memoryview(y))
    a = array("f", [1, 2])
    assert address(memoryview(a)[1:]) - address(a) == 4
    assert address(memoryview(b"abc")[2:]) - address(b"abc") == 2
    assert address(array("f")) >= 0
    assert a.pop() == 2  # nothing holds on to it


class Step:
    """A cache of two layers, 9 tokens and a step begun, with numpy's arrays for each argument."""

    def __init__(self) -> None:
        self.cache = staged.cache_of(kernels.get("plain"))
        self.given = {name: np.ones(n, "f") for name, n in (("k", 8), ("v", 8), ("q", 16), ("q_sinks", 16))}
        self.given["out"] = np.zeros(16, "f")
        for _ in range(3):
            self.run()

    def run(self) -> None:
        self.cache.append(0, self.given["k"], self.given["v"])
        self.cache.append(1, self.given["k"], self.given["v"])
        for layer in (0, 1):
            self.cache.attend(layer, self.given["q"], self.given["out"], self.given["q_sinks"])
        self.cache.commit()


CHANGES = {
    "type": lambda x: setattr(x, "dtype", "i4"),
    "byte order": lambda x: setattr(x, "dtype", x.dtype.newbyteorder()),
    "shape": lambda x: setattr(x, "shape", (len(x), 1)),
    "items": lambda x: setattr(x, "dtype", "i2"),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", ["k", "v", "q", "q_sinks", "out"])
def test_an_array_of_numpy_that_changes_in_place_is_refused(name: str, change) -> None:
    """However often it was taken before; once it is as it was, the step goes on."""
    step = Step()
    kind = step.given[name].dtype
    size = len(step.given[name])
    change(step.given[name])
    length, visible = step.cache.length, step.cache.visible()
    for _ in range(2):
        with pytest.raises(BadArgument, match=f"^{name} must be a non-empty array of float32"):
            step.run()
    assert (step.cache.length, step.cache.visible(), step.cache.check()) == (length, visible, 0)
    step.given[name].shape = (-1,)
    step.given[name].dtype = kind
    assert len(step.given[name]) == size
    step.run()
    assert step.cache.length == length + 1


def test_results_are_not_written_to_an_array_that_became_read_only() -> None:
    step = Step()
    step.given["out"].setflags(write=False)
    with pytest.raises(BadArgument, match="^out must be writable, got a read-only ndarray"):
        step.run()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("attended", [True, False], ids=["attend", "commit"])
@pytest.mark.parametrize("which", [0, 1], ids=["k", "v"])
def test_a_staged_array_of_numpy_that_changes_in_place_is_refused(which: int, attended: bool) -> None:
    cache = KVCache(Geometry(1, 4, 2, 4, window=6, sinks=2), kernels=kernels.get("plain"))
    arrays = [np.ones(24, "f"), np.ones(24, "f")]
    cache.prefill(0, *arrays, 3)
    arrays[which].dtype = "i4"
    q, out = staged.floats(48, 1), staged.floats(48, 2)
    said = f"^{'kv'[which]} must be a non-empty array of float32"
    with pytest.raises(BadArgument, match=said):
        cache.attend(0, q, out, None, 3) if attended else cache.commit()
    assert (cache.length, cache.check()) == (0, 0)
    arrays[which].dtype = "f4"
    cache.attend(0, q, out, None, 3)
    cache.commit()
    assert cache.length == 3
