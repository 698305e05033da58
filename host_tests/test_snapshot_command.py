"""`kvlab snapshot`: what is told of a file, and which files are sound."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshot_cases import KINDS, grown, mended, saved, sections

from kvlab import snapshots


def written(path: Path, name: str, **options: Any) -> Any:
    cache = grown(KINDS[name], 45)
    path.write_bytes(saved(cache, model=0x123, rope=1, ids=range(1000, 1050), **options))
    return cache


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_shown_and_checked(name: str, tmp_path: Path, kvlab: Any) -> None:
    path, figures = tmp_path / "a.mkvs", tmp_path / "a.json"
    cache = written(path, name, sections=[(b"note", b"abc")])
    status, out, err = kvlab("snapshot", "check", path)
    assert (status, err) == (0, "")
    assert f"sound; {cache.length} tokens, {len(cache.visible())} visible, " in out
    status, out, err = kvlab("snapshot", "show", path, "--json", figures)
    assert (status, err) == (0, "")
    assert "note 3 B" in out
    told = json.loads(figures.read_text())
    told = told.get("figures", told)
    asked = cache.settings()
    for key in ("layers", "heads", "kv_heads", "head_dim", "window", "capacity", "sinks", "policy"):
        assert told[key] == asked[key], key
    assert told["codec"] == (asked["codec"] if isinstance(asked["codec"], list) else [asked["codec"]] * 2)
    assert (told["model"], told["rope"], told["length"]) == ("00000123", 1, cache.length)
    assert told["tokens"] == len(cache.visible())
    assert [(s["tag"], s["index"], s["bytes"]) for s in told["sections"]] == [
        (tag.decode(), index, n) for tag, index, _, n in sections(path.read_bytes())
    ]


@pytest.mark.parametrize("name", ["ring", "sealed", "lru-peak", "mixed", "paged"])
def test_safetensors_hold_what_is_stored(name: str, tmp_path: Path, kvlab: Any) -> None:
    from safetensors import safe_open

    path = tmp_path / "a.mkvs"
    cache = written(path, name)
    assert kvlab("snapshot", "show", path, "--to", "safetensors")[0] == 0
    with safe_open(tmp_path / "a.safetensors", "numpy") as f:
        assert f.metadata()["model"] == "00000123"
        assert f.get_tensor("positions").tolist() == cache.visible()
        assert f.get_tensor("ids").tolist() == [1000 + p for p in cache.visible()]
        for layer in range(2):
            for which in "kv":
                found = f.get_tensor(f"layers.{layer}.{which}")
                assert found.shape == (2, len(cache.visible()), 4)
                for i, p in enumerate(cache.visible()):
                    assert found[:, i].ravel().tolist() == np.float32(cache.read(layer, which, p)).tolist()


def test_without_the_library_it_is_named(tmp_path: Path, kvlab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mkvs"
    written(path, "ring")
    monkeypatch.setattr(snapshots.importlib.util, "find_spec", lambda name: None)
    status, _, err = kvlab("snapshot", "show", path, "--to", "safetensors")
    assert status == 2
    assert "pip install -e '.[safetensors]'" in err


def test_damaged_files_and_others(tmp_path: Path, kvlab: Any) -> None:
    path = tmp_path / "a.mkvs"
    written(path, "ring")
    data = path.read_bytes()
    for bad, says in (
        (data[:-1], "ends after"),
        (data + b"\0", "longer than"),
        (data[:500] + bytes([data[500] ^ 1]) + data[501:], "checksum of section KV 0"),
        (b"", "ends after 0 bytes"),
        (mended(data[:4] + b"\2" + data[5:]), "version 2; this program reads version 1"),
    ):
        path.write_bytes(bad)
        for verb in ("check", "show"):
            status, _, err = kvlab("snapshot", verb, path)
            assert (status, says in err, err.count("\n")) == (1, True, 1), (verb, says, err)
    # What only load() finds: a code of zero, a window beyond all bounds.
    at = next(at for tag, _, at, _ in sections(data) if tag == b"KV  ")
    path.write_bytes(mended(data[:at] + b"\0" + data[at + 1 :]))
    status, _, err = kvlab("snapshot", "check", path)
    assert (status, "codes or scales that no encoder writes" in err) == (1, True)
    bad = bytearray(data)
    struct.pack_into("<I", bad, 24, 0xFFFFFFFF)
    path.write_bytes(mended(bad))
    status, _, err = kvlab("snapshot", "check", path)
    assert (status, "window must be" in err) == (1, True)
    # A shape within every bound, of 137 GB and more, is refused before a cache is made.
    bad = bytearray(data)
    struct.pack_into("<HHH", bad, 18, 1024, 1024, 1024)
    struct.pack_into("<I", bad, 24, 65000)
    path.write_bytes(mended(bad))
    status, _, err = kvlab("snapshot", "check", path)
    assert (status, "a cache of its shape takes" in err, err.count("\n")) == (1, True, 1)
    for words in (["show", tmp_path / "none"], ["show", tmp_path], ["show", path, "--out", tmp_path / "x"]):
        assert kvlab("snapshot", *words)[0] == 2
