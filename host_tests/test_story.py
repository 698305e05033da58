"""`kvlab stories` on models with next to no context, and with words that no board can take as they are."""

import json
import os
import subprocess
import sys

import pytest
import qemu_fixtures
import snapshot_cases
from tiny_model import write_tiny

from kvlab import cli, shipped, story
from kvlab.models.image import with_codecs
from kvlab.models.load import load_image
from mpy_kv import snapshot


def told(tmp_path, capfd, model, *words):
    """(exit status, stderr, figures or None) of a short story on a Pico."""
    figures = tmp_path / "told.json"
    figures.unlink(missing_ok=True)
    drawn = [] if "--temperature" in words else ["--greedy"]
    words = ["--model", model, "--tokens", 8, *drawn, "--json", figures, *words]
    status = cli.main(["stories", *map(str, words)])
    return status, capfd.readouterr().err, json.loads(figures.read_text()) if figures.exists() else None


@pytest.mark.parametrize(
    ("seq_len", "words", "window", "sinks"),
    [
        (1, [], 1, 0),
        (3, [], 1, 2),
        (4, [], 1, 3),
        (5, [], 1, 4),
        (12, [], 8, 4),
        (12, ["--window", 12], 12, 0),
        (12, ["--window", 9], 9, 3),
        (12, ["--window", 9, "--sinks", 2], 9, 2),
    ],
)
def test_sinks_are_as_many_as_the_context_has_room_for(tmp_path, capfd, seq_len, words, window, sinks):
    model, _ = write_tiny(tmp_path, seq_len=seq_len)
    status, err, figures = told(tmp_path, capfd, model, *words)
    assert (status, err) == (0, "")
    assert (figures["window"], figures["sinks"]) == (window, sinks)


@pytest.mark.parametrize(
    ("words", "sinks", "noted"),
    [
        (["--window", 9], 3, True),
        (["--window", 9, "--policy", "window"], 3, True),
        (["--window", 9, "--policy", "window", "--peak"], 3, True),
        (["--window", 9, "--requests", 2], 3, True),
        (["--window", 9, "--sinks", 3], 3, False),
        (["--window", 8], 4, False),
        (["--window", 9, "--policy", "lru-peak"], 0, False),
    ],
    ids=lambda words: "".join(map(str, words)).replace("--", " ") if isinstance(words, list) else None,
)
def test_fewer_sinks_than_usual_are_told(tmp_path, capsys, words, sinks, noted):
    model, _ = write_tiny(tmp_path, seq_len=12)
    figures = tmp_path / "figures.json"
    words = ["stories", "--model", model, "--tokens", 8, "--greedy", "--json", figures, *words]
    assert cli.main([str(word) for word in words]) == 0
    note = (
        "sinks: 3 instead of 4, as the model was trained for 12 tokens and the window has 9 of them; a"
        " window of at most 8 leaves 4"
    )
    out = capsys.readouterr().out
    assert (f"\n- {note}\n" in out) is noted
    told = json.loads(figures.read_text())
    assert (told["sinks"], told["notes"]) == (sinks, [note] if noted else [])


@pytest.mark.parametrize(
    ("window", "context", "sinks"),
    [(508, 512, 4), (509, 512, 3), (512, 512, 0), (513, 512, 4), (1000, 512, 4), (5, 3, 2), (1, 1, 0)],
)
def test_sinks_beside_a_window(window, context, sinks):
    assert story.sinks_beside(window, context) == sinks
    assert ("leaves 4" in story.fewer_sinks(window, sinks, context)) is (context > story.USUAL_SINKS)


@pytest.mark.parametrize("name", shipped.NAMES[1:])
def test_models_that_ship_tell_the_same_by_plain_and_by_fast_kernels(tmp_path, capfd, name):
    status, err, fast = told(tmp_path, capfd, name, "--kernels", "viper", "--tokens", 16, "--window", 64)
    assert (status, err) == (0, "")
    assert fast["text"].startswith("Once upon a time, there was a")
    assert fast["alloc_bytes_per_token"] == 0
    status, err, plain = told(tmp_path, capfd, name, "--kernels", "plain", "--tokens", 3, "--window", 64)
    assert (status, err) == (0, "")
    assert len(plain["text"]) > 5
    assert fast["text"].startswith(plain["text"])


def test_the_cache_is_of_the_types_that_the_image_names(tmp_path, capfd):
    model, _ = write_tiny(tmp_path, layers=3)
    image, codecs = tmp_path / "typed.mkvm", ["int8-int4", "int8", "float16"]
    image.write_bytes(with_codecs(load_image(model), codecs))
    for words, want in (([], codecs), (["--codec", "int8"], "int8")):
        status, err, figures = told(tmp_path, capfd, image, *words)
        assert (status, err) == (0, "")
        assert (figures["codec"], figures["cache_kernels"]) == (want, "viper")
        assert figures["alloc_bytes_per_token"] == 0
    status, err, _ = told(tmp_path, capfd, image, "--requests", 2)
    assert (status, err.count("\n")) == (2, 1)
    assert "--codec must be one for all layers" in err


def test_the_usual_element_type_takes_no_more_when_it_is_named(tmp_path):
    """The words of a command line lie in the heap; of an image that names other types it has to be one."""
    image = shipped.image(shipped.NAMES[0]).read_bytes()
    telling = story.Telling(window=300)
    named = story.Telling(window=300, codec="int8")
    assert story._without_usual(named, image) == telling
    assert story._without_usual(story.Telling(codec="int4"), image).codec == "int4"
    model, _ = write_tiny(tmp_path, layers=1)
    typed = with_codecs(load_image(model), ["float16"])
    assert story._without_usual(named, typed) == named


def test_sinks_that_were_asked_for_are_not_lowered(tmp_path, capfd):
    model, _ = write_tiny(tmp_path, seq_len=1)
    status, err, figures = told(tmp_path, capfd, model, "--sinks", 4)
    assert (status, figures) == (2, None)
    assert "more than the 1 the model was trained for: lower --sinks below 1\n" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--window", 20], "a context of 24 tokens (window 20 + sinks 4) is more than the 12"),
        (["--window", 20], "lower --window to 8\n"),
        (["--window", 13, "--sinks", 0], "lower --window to 12\n"),
        (["--window", 1 << 27], "--window must be 1..67108864"),
    ],
)
def test_the_option_to_change_is_named(tmp_path, capfd, words, message):
    model, _ = write_tiny(tmp_path, seq_len=12)
    status, err, _ = told(tmp_path, capfd, model, *words)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


def test_keywords_of_the_app_become_options():
    assert story.as_typed("window must be 1..8, got 9") == "--window must be 1..8, got 9"
    assert story.as_typed("top_p must be") == "--top-p must be"
    assert story.as_typed("a context: lower sinks below 5") == "a context: lower --sinks below 5"


def test_a_tokenizer_beside_an_image_is_refused(tmp_path, capfd):
    model, words = write_tiny(tmp_path, seq_len=12)
    assert cli.main(["convert", str(model), "-o", str(tmp_path / "x.mkvm")]) == 0
    capfd.readouterr()
    status, err, _ = told(tmp_path, capfd, tmp_path / "x.mkvm", "--tokenizer", words)
    assert (status, err) == (
        2,
        f"kvlab: error: --tokenizer {words}: --model x.mkvm is a board image, which has its own\n",
    )
    status, err, _ = told(tmp_path, capfd, tmp_path / "x.mkvm", "--tokenizer", "nope")
    assert (status, err) == (2, "kvlab: error: --tokenizer nope: no such file\n")


def test_numbers_with_an_exponent_are_told_with(tmp_path, capfd):
    model, _ = write_tiny(tmp_path, seq_len=12)
    status, err, figures = told(tmp_path, capfd, model, "--temperature", "5e-1", "--top-p", "1e-3")
    assert (status, err, figures["tokens"]) == (0, "", 8)


def test_a_prompt_that_is_no_utf8_ends_in_one_line_or_a_story(tmp_path):
    model, _ = write_tiny(tmp_path, seq_len=12)
    words = ["stories", "--model", model, "--tokens", "3", "--prompt", os.fsdecode(b"a\xff")]
    done = subprocess.run([sys.executable, "-m", "kvlab", *words], capture_output=True)
    assert done.returncode in (0, 2)
    assert done.stderr.count(b"\n") == (1 if done.returncode else 0)


@pytest.mark.parametrize("board", ["rp2040", "esp32", "qemu_arm"])
def test_a_story_goes_on_from_a_file(tmp_path, capfd, board):
    if board == "qemu_arm":
        qemu_fixtures.needed_by(board)
    model, _ = write_tiny(tmp_path)
    file, again = tmp_path / "a.mkvs", tmp_path / "b.mkvs"
    on = ["--board", board, "--tokens"]
    assert told(tmp_path, capfd, model, *on, 18, "--window", 12, "--temperature", "2")[0] == 0
    whole = json.loads((tmp_path / "told.json").read_text())
    words = ["--window", 12, "--temperature", "2", "--save", file]
    status, err, first = told(tmp_path, capfd, model, *on, 7, *words)
    assert (status, err) == (0, "")
    assert first["saved_bytes"] == file.stat().st_size
    words = ["stories", "--model", model, *on, 11, "--resume", file, "--json", tmp_path / "c.json"]
    assert cli.main([str(word) for word in [*words, "--save", again]]) == 0
    second = json.loads((tmp_path / "c.json").read_text())
    # Of both texts the figures leave out the spaces at the ends.
    assert "".join((first["text"] + second["text"]).split()) == "".join(whole["text"].split())
    assert second["text"]
    assert (second["position"], second["window"], second["evicted_tokens"]) == (18, 12, 2)
    assert whole["position"] == 19  # the last token of a saved one is not run yet
    assert second["reused_tokens"] == 7
    with open(again, "rb") as f:
        assert snapshot.check(f.readinto).length == 18


def test_a_story_moves_to_another_board(tmp_path, capfd):
    """From 64-bit words and viper kernels to 32 and Thumb, the model in a file and not in place."""
    qemu_fixtures.needed_by("qemu_arm")
    model, _ = write_tiny(tmp_path)
    file = tmp_path / "a.mkvs"
    texts = []
    for board, tokens in (("rp2040", 9), ("qemu_arm", 8), ("esp32", 7)):
        words = [
            "stories",
            "--model",
            model,
            "--board",
            board,
            "--tokens",
            tokens,
            "--json",
            tmp_path / "c.json",
        ]
        words += ["--resume", file] if texts else ["--window", 12, "--seed", 3]
        words += ["--save", tmp_path / "next.mkvs"]
        assert cli.main([str(word) for word in words]) == 0
        (tmp_path / "next.mkvs").replace(file)
        texts.append(json.loads((tmp_path / "c.json").read_text())["text"])
    told(tmp_path, capfd, model, "--tokens", 24, "--window", 12, "--seed", 3, "--temperature", "0.8")
    whole = json.loads((tmp_path / "told.json").read_text())["text"]
    assert "".join("".join(texts).split()) == "".join(whole.split())


def test_files_of_stories_that_cannot_be(tmp_path, capfd, kvlab):
    model, _ = write_tiny(tmp_path)
    file = tmp_path / "a.mkvs"
    assert told(tmp_path, capfd, model, "--window", 12, "--save", file)[0] == 0
    was = file.read_bytes()
    (tmp_path / "short.mkvs").write_bytes(was[:-1])
    capacity = snapshot_cases.grown(snapshot_cases.KINDS["capacity"], 3)
    (tmp_path / "capacity.mkvs").write_bytes(snapshot_cases.saved(capacity))
    on = ["stories", "--model", model, "--tokens", 3, "--resume"]
    for words, says in (
        ([file, "--seed", 4], "--seed: is in the file of --resume; leave one of them out"),
        ([file, "--prompt", "a"], "--prompt: is in the file of --resume; leave one of them out"),
        ([file, "--requests", 2], "--requests: not with --resume"),
        ([file, "--save", file], "--save"),
        ([file, "--window", 13], "--window is 13 here and 12 in the file of --resume: leave it out"),
        ([file, "--codec", "int4"], "--codec is int4 here and int8 in the file of --resume: leave it out"),
        ([tmp_path / "none"], "no such file"),
        ([tmp_path / "short.mkvs"], f"--resume {tmp_path / 'short.mkvs'}: ends after"),
        ([tmp_path / "capacity.mkvs"], "capacity.mkvs: is of a cache with a capacity: a story has a window"),
        ([model], f"--resume {model}: no snapshot: it begins with other bytes"),
    ):
        status, _, err = kvlab(*on, *words)
        assert status == 2
        assert says in err
        assert err.count("\n") == 1
    assert file.read_bytes() == was
    (tmp_path / "other").mkdir()
    other, _ = write_tiny(tmp_path / "other", seed=1)
    status, _, err = kvlab("stories", "--model", other, "--tokens", 3, "--resume", file)
    assert status == 2
    assert f"--resume {file}: model is " in err
    status, _, err = kvlab("stories", "--model", model, "--tokens", 3, "--requests", 2, "--save", file)
    assert (status, "--requests: not with --save" in err) == (2, True)
