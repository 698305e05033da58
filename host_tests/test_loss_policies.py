"""`kvlab bench loss --policy`: the device that forgets, on a tiny model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_model import write_tiny

TEXT = "ab ba the hen " * 6 + "\n\n" + "ten hens tell " * 6


def loss(kvlab: Any, folder: Path, *options: Any) -> tuple[int, dict[str, Any], str]:
    model, _ = write_tiny(folder, dim=16, hidden=24, heads=2, kv_heads=1, seq_len=40)
    (folder / "text.txt").write_text(TEXT)
    out = folder / "loss.json"
    words = ["bench", "loss", "--model", model, "--text", folder / "text.txt", "--json", out]
    status, _, err = kvlab(*words, *options)
    return status, json.loads(out.read_text()) if status == 0 else {}, err


def test_policies_on_the_device(kvlab, tmp_path: Path) -> None:
    """With room for all tokens nothing is lost, to the last bit; with less, what is lost differs."""
    names = ("window", "lfu")
    chosen = [word for name in names for word in ("--policy", name)]
    status, roomy, _ = loss(kvlab, tmp_path, *chosen, "--budget", 40)
    assert status == 0
    assert roomy["budget"] == 40
    everything = {"nats": roomy["device_nats"], "perplexity_change_pct": 0}
    assert roomy["policies"] == dict.fromkeys(names, everything)
    status, tight, _ = loss(kvlab, tmp_path, *chosen, "--budget", 10)
    assert status == 0
    nats = [tight["policies"][name]["nats"] for name in names]
    assert len({*nats, roomy["device_nats"]}) == 3
    assert tight["device_nats"] == roomy["device_nats"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--policy", "lfu"], "--policy and --budget belong together"),
        (["--budget", "9"], "--policy and --budget belong together"),
        (["--policy", "lru", "--budget", "9"], "Invalid value for '--policy'"),
        (["--policy", "lfu", "--budget", "0"], "Invalid value for '--budget'"),
        (["--policy", "lfu", "--budget", "41"], "--budget 41: tiny.bin was trained for 40 tokens"),
    ],
)
def test_bad_input(kvlab, tmp_path: Path, options: list[str], says: str) -> None:
    status, _, err = loss(kvlab, tmp_path, *options)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1


def test_on_the_real_model_what_is_looked_at_is_worth_more_than_what_is_new(
    kvlab, needs_data, tmp_path: Path
) -> None:
    """By the device's own integers, on held-out stories several times as long as what it keeps."""
    model = needs_data("stories260K/stories260K.bin")
    needs_data("stories260K/tok512.bin")
    text = needs_data("corpus/stories.jsonl")
    out = tmp_path / "loss.json"
    chosen = [word for name in ("window", "lru-peak", "window-lru") for word in ("--policy", name)]
    words = ["--model", model, "--text", text, "--passages", 3, "--budget", 64, "--json", out]
    status, _, err = kvlab("bench", "loss", *words, *chosen)
    assert status == 0, err
    found = json.loads(out.read_text())
    assert found["tokens"] > 1000
    change = {name: by["perplexity_change_pct"] for name, by in found["policies"].items()}
    assert 0 < change["lru-peak"] < 0.9 * change["window"]
    assert 0 < change["window-lru"] < 0.9 * change["window"]
