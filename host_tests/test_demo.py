"""`kvlab demo` and its pictures: outputs checked before the story, memory that does not grow with it."""

import os

import pytest
from tiny_model import write_tiny

from kvlab import cli, pictures, story
from kvlab.plots import window
from mpy_kv import Geometry, KVCache


@pytest.fixture
def refused(capfd, monkeypatch):
    """`refused(*words)`: the one line with which `kvlab demo` is refused, before any story."""

    def no_story(*_arguments, **_how):
        raise AssertionError("a story was told")

    def run(*words):
        monkeypatch.setattr(story, "tell", no_story)
        assert cli.main(["demo", *map(str, words)]) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        return err

    return run


@pytest.mark.parametrize("name", ["demo.json", "index.html", *pictures.NAMES])
def test_an_output_that_is_a_folder_is_found_before_the_story(tmp_path, refused, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    model, _ = write_tiny(tmp_path)
    assert f"--out {tmp_path / 'out' / name}: is a folder" in refused(
        "--model", model, "--out", tmp_path / "out"
    )


def test_a_folder_that_cannot_be_written_is_found_before_the_story(tmp_path, refused, monkeypatch):
    model, _ = write_tiny(tmp_path)
    (tmp_path / "file").write_text("")
    assert f"--out {tmp_path / 'file'}/x: cannot be made" in refused(
        "--model", model, "--out", tmp_path / "file" / "x"
    )
    assert "'--out'" in refused("--model", model, "--out", tmp_path / "file")
    real = os.access  # root may write everywhere: the refusal is played
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and real(path, mode))
    assert "locked: not writable" in refused("--model", model, "--out", tmp_path / "locked")


def test_what_is_refused_leaves_no_folder(tmp_path, refused):
    model, words = write_tiny(tmp_path)
    words.write_bytes(b"no tokenizer")
    assert "tokenizer" in refused("--model", model, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_board_whose_heap_cannot_be_drawn_is_refused_before_the_story(tmp_path, refused):
    said = refused("--board", "qemu_arm", "--out", tmp_path / "out")
    assert "--board qemu_arm: its firmware tells nothing of its heap that could be drawn" in said
    assert not (tmp_path / "out").exists()


def test_no_output_of_the_demo_is_its_model(tmp_path, refused):
    model, _ = write_tiny(tmp_path)
    model = model.rename(tmp_path / "heap.png")
    assert "would overwrite the file of --model" in refused("--model", model, "--out", tmp_path)


# --- pictures ------------------------------------------------------------------------------------


def straight(tokens, recent, sinks):
    """What is visible after each token, by arithmetic."""
    for n in range(1, tokens + 1):
        first = min(n, sinks)
        oldest = max(sinks, n - recent)
        ring = max(0, n - oldest)
        yield window.Seen(n, first, oldest, oldest + ring, first + ring)


@pytest.mark.parametrize(("tokens", "recent"), [(5_003, 3), (20_000, 60)])
def test_points_of_a_long_picture_are_those_of_a_cache_without_jumps(tokens, recent):
    every = list(straight(tokens, recent, 4))
    seen = pictures.visible_positions(tokens, recent, 4)
    assert len(seen) == pictures.MOST_SEEN
    assert seen == [every[each.tokens - 1] for each in seen]


@pytest.mark.parametrize(("tokens", "recent", "sinks"), [(1, 1, 0), (40, 7, 3), (5, 30, 8), (300, 16, 0)])
def test_the_window_picture_shows_what_the_cache_shows(tokens, recent, sinks):
    assert pictures.visible_positions(tokens, recent, sinks) == list(straight(tokens, recent, sinks))


def test_seen_is_taken_from_the_positions_themselves():
    assert window.Seen.of(9, [0, 1, 5, 6, 8], sinks=2) == window.Seen(9, 2, 5, 9, 5)
    assert window.Seen.of(1, [0], sinks=4) == window.Seen(1, 1, 4, 4, 1)
    cache = KVCache(Geometry(1, 1, 1, 1, window=3, sinks=2))
    assert window.Seen.of(0, cache.visible(), 2) == window.Seen(0, 0, 2, 2, 0)


def test_the_picture_of_a_million_tokens_is_bounded(tmp_path):
    tokens = 1_000_000
    seen = pictures.visible_positions(tokens, 250, 4)
    assert len(seen) == pictures.MOST_SEEN
    assert all(type(value) is int for each in seen for value in vars(each).values())  # no lists of positions
    assert seen[-1] == window.Seen(tokens, 4, tokens - 250, tokens, 254)
    window.draw(seen, 250, 4, tmp_path / "window.png")
    assert (tmp_path / "window.png").stat().st_size > 10_000
