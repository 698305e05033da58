"""The host's engine: the device's own transitions, compiled, do what they do on the device; and fast."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import sys
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvlab import paths
from kvlab.bench import pools as bench
from kvlab.bench.twin_pool import TwinPool
from kvlab.engine import compiled, drivers, numba_private
from kvlab.engine.catalogue import BLOCK_BYTES, POOLS
from kvlab.engine.state import arrays_of, widened
from mpy_kv.errors import KVError
from mpy_kv.pools import fixed

Run = Callable[..., tuple[int, str, str]]

SCRIPT = Path(__file__).parent / "device" / "pool_trace.py"
OPERATIONS = 100_000
DEVICE_OPERATIONS = 30_000

# What is traced, and the modules with its transitions: the pools, and the lists and index of shared blocks.
MODULES = {
    **{name: entry.modules for name, entry in POOLS.items()},
    "blocks": ("mpy_kv.paged.blocks", "mpy_kv.paged.prefix"),
}


@pytest.fixture(scope="module")
def trace() -> Any:
    """The script that every interpreter runs, as a module of this one."""
    spec = importlib.util.spec_from_file_location("pool_trace", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the same everywhere -------------------------------------------------------------------------


def test_the_trace_knows_every_pool(trace: Any) -> None:
    assert set(trace.MAKERS) == set(POOLS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MODULES)
def test_device_cpython_and_compiled_agree(name: str, trace: Any, upy: Any) -> None:
    """Handles, places, refusals, statistics, every array: after 10^5 operations, on the device fewer."""
    counts = (DEVICE_OPERATIONS, OPERATIONS)
    plain = trace.run(name, 7, counts)
    with compiled.swapped(MODULES[name]):
        fast = trace.run(name, 7, counts, widened)
    assert plain == fast
    assert plain[:1] == json.loads(upy.run(SCRIPT, [name, 7, DEVICE_OPERATIONS], heap_bytes=4 << 20))
    # It was not all refusals.
    assert plain[-1]["stats"]["alloc_count"] > OPERATIONS / 20
    assert plain[-1]["arrays"]


def test_another_seed_is_another_trace(trace: Any) -> None:
    assert trace.run("fixed", 7, [500]) == trace.run("fixed", 7, [500])
    assert trace.run("fixed", 8, [500])[0]["sum"] != trace.run("fixed", 7, [500])[0]["sum"]


def mixed(count: int, rng: random.Random, least: int) -> tuple[Any, Any]:
    """A trace for `drivers.traced`: up to 70 allocs not freed yet, and now and then a second free."""
    kinds, asked = array("i"), array("i")
    held: list[int] = []
    gone: list[int] = []
    for k in range(count):
        if gone and rng.random() < 0.1:
            kinds.append(1)
            asked.append(rng.choice(gone))
        elif held and rng.random() < len(held) / 70:
            gone.append(held.pop(rng.randrange(len(held))))
            kinds.append(1)
            asked.append(gone[-1])
        else:
            held.append(k)
            kinds.append(0)
            asked.append(rng.randrange(least, BLOCK_BYTES + 1))
    return kinds, asked


@pytest.mark.parametrize("name", POOLS)
def test_a_compiled_loop_does_what_the_methods_do(name: str) -> None:
    """Allocs and frees in arrays, freed ones freed again among them: the same handles, the same arrays."""
    entry = POOLS[name]
    # What was not asked of a block is noted by the fixed pool's methods, not by its transitions.
    kinds, asked = mixed(20_000, random.Random(3), BLOCK_BYTES if name == "fixed" else 1)
    pool = entry.pool(36)
    want = []
    for kind, value in zip(kinds, asked):
        try:
            want.append(pool.alloc(value) if kind == 0 else pool.free(want[value]) or 0)
        except KVError:
            want.append(-1)

    other = widened(entry.pool(36))
    results = array("i", bytes(4 * len(kinds)))
    drivers.loop(drivers.traced, entry.compiled())(entry.state(other), kinds, asked, results)
    assert [max(got, -1) for got in results] == want
    assert 0 < want.count(-1) < len(want) / 2
    assert {key: list(held) for key, held in arrays_of(pool).items()} == {
        key: list(held) for key, held in arrays_of(other).items()
    }


# --- what is compiled ----------------------------------------------------------------------------


def test_transitions_are_the_devices_own() -> None:
    found = compiled.native_functions("mpy_kv.pools.fixed")
    assert found["take_block"] is fixed.take_block
    for key, function in compiled.transitions("mpy_kv.pools.fixed").items():
        assert function.py_func is found[key]


def test_what_calls_or_raises_is_no_transition() -> None:
    """Such as native functions around a transition; they run as they are."""
    for path in (paths.ROOT / "mpy_kv" / "pools").glob("*.py"):
        text = path.read_text()
        if path.stem == "viper" or "@micropython.native" not in text:
            continue
        for name in compiled.native_functions(f"mpy_kv.pools.{path.stem}"):
            body = re.search(rf"^def {name}\(.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
            assert body is not None
            assert not re.search(r"\braise\b|\btry\b|\bself\b", body[0].split('"""', 2)[-1]), name


def test_transitions_are_swapped_back() -> None:
    before = fixed.take_block

    def cut_short() -> None:
        with compiled.swapped(["mpy_kv.pools.fixed"]):
            assert fixed.take_block is not before
            raise KeyError

    with pytest.raises(KeyError):
        cut_short()
    assert fixed.take_block is before


def test_arrays_are_widened_in_place_and_stay_shared() -> None:
    class Inner:
        def __init__(self, shared: Any) -> None:
            self.shared = shared
            self.buffer = bytearray(8)

        def metadata_bytes(self) -> int:
            return 0

    shared = array("H", [1, 65535])
    pool = Inner(shared)
    pool.inner = Inner(shared)  # type: ignore[attr-defined]
    pool.state = bytearray((0, 255))  # type: ignore[attr-defined]
    pool.name = [0, "x"]  # type: ignore[attr-defined]
    found = arrays_of(widened(pool))
    assert set(found) == {"shared", "inner.shared", "state"}
    assert found["shared"] is found["inner.shared"]
    assert all(held.typecode == "i" for held in found.values())
    assert [list(found["shared"]), list(found["state"])] == [[1, 65535], [0, 255]]


# --- speed ---------------------------------------------------------------------------------------


def test_the_twin_hands_out_every_block_once() -> None:
    twin = TwinPool(8)
    some = twin.get_new_blocks(5)
    more = [twin.get_new_block() for _ in range(3)]
    assert sorted(block.number for block in some + more) == list(range(8))
    assert twin.queue.count == 0
    twin.free_blocks(some)
    twin.free_block(more[1])
    assert twin.queue.count == 6
    assert [twin.get_new_block() for _ in range(6)] == [*some, more[1]]


def test_bench_pools(kvlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures are there, each from a run of its own."""
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "_ROUND_S", 0.0005)
    monkeypatch.setattr(bench, "_MOST_PAIRS", 1 << 12)
    monkeypatch.setattr(bench, "BLOCKS", 500)
    monkeypatch.setattr(bench, "BY_BLOCKS", (50, 500, 1 << 30))
    path = tmp_path / "pools.json"
    status, out, _ = kvlab("bench", "pools", "--pool", "fixed", "--json", path)
    assert status == 0
    assert "batches" in out  # in a cell of its own lines
    figures = json.loads(path.read_text())
    assert set(figures) == {"block_bytes", "fixed", "settings"}
    by = figures["fixed"]
    assert by["blocks"] == 500
    assert by["metadata_bytes_per_block"] <= 16
    assert list(by["by_blocks"]) == ["50", "500"]
    for found in (by, by["batch16"], *by["by_blocks"].values()):
        ratio = found["python_pairs_per_s"] / found["reference_pairs_per_s"]
        assert found["python_over_reference"] == pytest.approx(ratio)
        assert found["compiled_pairs_per_s"] > found["python_pairs_per_s"]
    few, many = by["by_blocks"]["50"], by["by_blocks"]["500"]
    assert set(by["cost_ratio"]) == set(bench.KINDS)
    for kind, times in by["cost_ratio"].items():
        assert times == pytest.approx(few[f"{kind}_pairs_per_s"] / many[f"{kind}_pairs_per_s"])


def test_scattered_places_are_all_over() -> None:
    places = bench.scattered(1000, 20_000)
    assert places.min() >= 0
    assert places.max() < 1000
    assert len(set(places.tolist())) == 1000


# --- where it cannot be used ---------------------------------------------------------------------


@pytest.fixture
def fresh() -> Iterator[None]:
    """numba as if nobody had asked for it yet."""
    compiled.numba.cache_clear()
    yield
    compiled.numba.cache_clear()
    compiled.numba()


def refused(kvlab: Run, *parts: str) -> None:
    status, _, err = kvlab("bench", "pools", "--pool", "fixed")
    assert status == 2
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


@pytest.mark.usefixtures("fresh")
def test_without_numba(kvlab: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    refused(kvlab, "numba", "cannot be imported", "pip install --force-reinstall numba")


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("version", ["0.58.1", "0.69.0rc1", "1.0", "0"])
def test_a_numba_whose_inside_is_unknown(version: str, kvlab: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.__version__", version)
    known = "known in 0.59 to versions below 0.69"
    refused(kvlab, f"numba {version}: ", known, "install 'numba>=0.59,<0.69'")


def test_the_inside_of_numba_is_named_in_two_files() -> None:
    """And pyproject.toml asks for the versions that these files know."""
    inside = re.compile(r"numba\.core|\bllvmlite\b|\b_nrt\b|_set_uuid|\b_uuid\b")
    found = [path for path in (paths.ROOT / "tools").rglob("*.py") if inside.search(path.read_text())]
    assert {path.name for path in found} == {"numba_private.py", "prefetch.py"}
    numba_private.check(compiled.numba().__version__)
    asked = "numba>={}.{},<{}.{}".format(*numba_private.FIRST, *numba_private.NOT_YET)
    assert f'"{asked}",' in (paths.ROOT / "pyproject.toml").read_text()


@pytest.mark.usefixtures("fresh")
def test_without_a_place_for_the_cache(kvlab: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    refused(kvlab, "the cache /dev/null/kvlab/numba", "XDG_CACHE_HOME names another place")


def test_what_numba_refuses_is_told_in_one_line(kvlab: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def takes_a_list(state, size, count):  # type: ignore[no-untyped-def]
        return [] + 1

    monkeypatch.setattr(bench.drivers, "loop", lambda kind, pool: compiled.numba().njit(takes_a_list))
    refused(kvlab, "does not compile the fixed pool")


@pytest.mark.usefixtures("fresh")
def test_machine_code_is_kept_outside_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of the sources' own; of old ones a few are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for k in range(6):
        (tmp_path / "kvlab" / "numba" / f"old{k}").mkdir(parents=True)
    entry = POOLS["fixed"]
    native = compiled.numba().njit(fixed.take_block, cache=True)
    pool = widened(entry.pool(4))
    assert native(*entry.state(pool)[:2]) > 0
    folders = list((tmp_path / "kvlab" / "numba").iterdir())
    assert len(folders) == 4
    assert [path for path in folders if list(path.rglob("*.nbi"))]
    assert not list((paths.ROOT / "mpy_kv").rglob("*.nb[ic]"))
    assert not list((paths.ROOT / "tools").rglob("*.nb[ic]"))


def test_the_cache_knows_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(compiled, "_SOURCES", (tmp_path,))
    first = compiled._digest("1")
    assert compiled._digest("1") == first
    assert compiled._digest("2") != first
    (tmp_path / "a.py").write_text("x = 2\n")
    assert compiled._digest("1") != first


def test_metadata_is_what_the_arrays_take() -> None:
    for name, entry in POOLS.items():
        blocks = 2000
        pool = entry.pool(blocks)
        assert pool.metadata_bytes() <= 16, name
        # Lists of CPython are arrays of 4 bytes on a device, see mpy_kv.port.ints.
        held = arrays_of(pool).values()
        total = sum(len(one) * (one.itemsize if isinstance(one, array) else 1) for one in held)
        total += sum(3 * len(one) for one in held if isinstance(one, list))
        assert total <= blocks * pool.metadata_bytes() + 400, name
