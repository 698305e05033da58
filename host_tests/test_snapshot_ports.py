"""A snapshot has the same bytes on every port and with every set of kernels.

goldens/snapshots.txt is what device/snapshots.py prints under CPython, by plain kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import snapshots as device
from known_cases import DEVICE

from mpy_kv import snapshot

KNOWN = (Path(__file__).parent / "goldens" / "snapshots.txt").read_text()
SCRIPT = DEVICE / "snapshots.py"


@pytest.mark.parametrize("name", device.KINDS)
def test_cpython_and_its_plain_kernels(name: str) -> None:
    assert device.told(name) in KNOWN.splitlines()
    assert KNOWN.count("the same") == len(device.KINDS)


def test_the_unix_port(upy: Any, tmp_path: Path) -> None:
    """And a file that it has written is read here."""
    path = tmp_path / "int4.mkvs"
    assert upy.run(SCRIPT, ["int4", path], heap_bytes=16 << 20) == KNOWN
    cache = device.KINDS["int4"]()
    assert snapshot.load_file(cache, str(path), model=0x89ABCDEF, rope=1) == 38
    again = device.saved(cache)
    assert bytes(again.all) == path.read_bytes()


WITHOUT_EMITTER = """
import sys
sys.path.append("host_tests/device")
import without_emitter
import snapshots
assert type(sys.modules["mpy_kv.sequence"]).__name__ == "_Names"
snapshots.KINDS = {name: snapshots.KINDS[name] for name in ("float16", "int8", "int8-int4", "lfu")}
snapshots.main([])
"""


def test_a_port_without_an_emitter(upy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not compile what is decorated; modules of snapshots are loaded as they are."""
    root = DEVICE.parents[1]
    assert [
        f.name for f in (root / "mpy_kv" / "snapshot").glob("*.py") if "@micropython" in f.read_text()
    ] == []
    monkeypatch.chdir(root)
    found = upy.run(WITHOUT_EMITTER, heap_bytes=16 << 20).splitlines()
    assert len(found) == 8
    assert set(found) <= set(KNOWN.splitlines())


@pytest.mark.slow
def test_32_bit_firmware(qemu: Any) -> None:
    assert qemu.run(SCRIPT, timeout=300) == KNOWN
