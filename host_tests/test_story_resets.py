"""kvlab stories --kv-flash: a story with a flash log on an emulated board, through a power cut."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from stories_fixtures import write_tiny

from kvlab import boards, paths, resets, shipped, story
from kvlab.models.load import load_image
from kvlab.paths import SHIPPED

REGION = 36 * 4096


@pytest.fixture
def tell(kvlab: Any, tmp_path: Path) -> Any:
    model = write_tiny(tmp_path)[0]

    def run(*words: object) -> tuple[int, dict[str, Any], str]:
        path = tmp_path / "told.json"
        path.unlink(missing_ok=True)
        status, _, err = kvlab("stories", "--model", model, "--window", 12, *words, "--json", path)
        return status, json.loads(path.read_text()) if path.exists() else {}, err

    return run


def test_the_tail_is_the_app_s() -> None:
    """Read and not imported: the module is transient."""
    source = (paths.APPS / "stories" / "logged.py").read_text()
    assert f"\nTAIL_BYTES = {resets.TAIL_BYTES}  #" in source


@pytest.mark.parametrize("board", ["rp2040", "esp32s3"])
@pytest.mark.parametrize("cut_at", [20, 47])
def test_it_goes_on(tell: Any, board: str, cut_at: int) -> None:
    words = ("--board", board, "--kv-flash", REGION, "--tokens", 60, "--temperature", "2")
    status, f, err = tell(*words, "--cut-at", cut_at)
    assert (status, err) == (0, "")
    assert f["text_equal"]
    assert f["reused_tokens"] + 1 == f["went_on_from"] == {20: 20, 47: 36}[cut_at]
    assert f["alloc_bytes_per_token"] == 0
    assert f["position"] == 61
    assert f["flash_us"] == 3000 * f["flash_programs"] + 400000 * f["flash_erases"]
    status, whole, err = tell(*words)
    assert (status, err) == (0, "")
    assert "".join(whole["text"].split()) == "".join(f["text"].split())
    assert (whole["blocks"], whole["misses"]) == (3, 0)


def test_what_is_refused(tell: Any) -> None:
    for words, says in (
        (["--kv-flash", 4096], "--kv-flash 4096: the smallest that works with a window of 12 is "),
        (["--kv-flash", 5000], "--kv-flash 5000: must be a multiple of 4,096,"),
        (["--kv-flash", "64MiB"], "of which a log may take"),
        (["--cut-at", 3], "--cut-at: needs --kv-flash"),
        (["--kv-flash", REGION, "--policy", "lfu"], "--policy: chooses tokens"),
        (["--kv-flash", REGION, "--save", "x"], "--save: not with --kv-flash"),
        (["--kv-flash", REGION, "--requests", 2], "--requests: not with --kv-flash"),
        (["--kv-flash", REGION, "--board", "qemu_arm"], "has no flash that can be written"),
        (
            ["--kv-flash", REGION, "--tokens", 5, "--cut-at", 9],
            "--cut-at 9: nothing is written from there on",
        ),
    ):
        status, _, err = tell(*words)
        assert (status, err.count("\n")) == (2, 1), err
        assert says in err


def test_a_heap_without_room_for_a_log_tells_without(tell: Any) -> None:
    """An ESP32's, of 64-bit objects: on the board the story goes on, here it is an error."""
    status, _, err = tell("--board", "esp32", "--kv-flash", REGION, "--tokens", 5)
    assert status == 1
    assert re.fullmatch("kvlab: error: does not fit: --kv-flash: no log .*: memory .*; lower --win.*\n", err)


def test_the_smallest_works(tell: Any) -> None:
    _, _, err = tell("--kv-flash", 4096)
    smallest = int(err.rstrip(".\n").split()[-1].replace(",", ""))
    status, f, err = tell("--kv-flash", smallest, "--tokens", 90, "--cut-at", 50)
    assert (status, err, f["text_equal"]) == (0, "", True)
    assert tell("--kv-flash", smallest - 4096)[0] == 2


def test_without_a_window_it_is_what_the_region_has_room_for() -> None:
    image = load_image(shipped.find(str(SHIPPED), "--model"), None)
    board = boards.load("rp2040")
    small = resets.fitted(board, image, story.Telling(), 131072)
    assert small.telling.window == 32
    assert small.notes == ["window: 32 instead of 256, for which the flash log takes 208,896 bytes"]
    assert resets.fitted(board, image, story.Telling(), 208896).telling.window == 256
