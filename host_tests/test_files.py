"""Inputs and outputs of commands: none overwrites another or is half written, no name makes a traceback."""

import errno
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from tiny_model import write_tiny

from commandline import files
from commandline.errors import BadInput
from kvlab import output, paths
from kvlab.models.load import load_image

LONG = "x" * 300


@pytest.fixture
def refusal(kvlab):
    """`refusal(*words)`: the one line with which the command is refused, status 2."""

    def run(*words):
        status, _, err = kvlab(*words)
        assert status == 2, err
        assert err.startswith("kvlab: error: ")
        assert err.count("\n") == 1
        return err

    return run


@pytest.fixture
def model(tmp_path):
    """(checkpoint, tokenizer, image) in a folder of their own."""
    checkpoint, tokenizer = write_tiny(tmp_path / "in", seq_len=16)
    image = tmp_path / "in" / "tiny.mkvm"
    image.write_bytes(load_image(checkpoint).data)
    return checkpoint, tokenizer, image


# --- outputs and inputs --------------------------------------------------------------------------


def overlaps(folder):
    """Command lines that would overwrite a file of theirs, as lists of words; {x} is x in `folder`."""
    lines = [
        "convert {tiny.bin} --json {tiny.bin}",
        "convert {tiny.bin} --json {tok320.bin}",
        "convert {tiny.bin} -o {tok320.bin}",
        "convert {tiny.bin} -o {tiny.bin}",
        "convert {tiny.bin} -o {new} --json {new}",
        "convert --json {new} {tiny.bin} -o {new}",
        "convert {tiny.bin} -o {new} --json {../in/new}",
        "convert {tiny.bin} --tokenizer {tok320.bin} --json {tok320.bin}",
        "convert {tiny.bin} -o {new} --uf2 {new}",
        "convert {tiny.bin} -o {new} --uf2 {tiny.bin}",
        "convert {tiny.bin} -o {new} --uf2 {tiny.mkvm} --firmware {tiny.mkvm}",
        "convert {tiny.bin} -o {new} --uf2 {newer} --json {newer}",
        "stories --model {tiny.mkvm} --json {tiny.mkvm}",
        "stories --model {tiny.bin} --json {tok320.bin}",
        "stories --json {link} --model {tiny.mkvm}",
        "plan --model {tiny.bin} --board rp2040 --tokens 9 --json {tiny.bin}",
        "plan --model {tiny.bin} --board rp2040 --tokens 9 --json {tok320.bin}",
        "models {tiny.bin} --json {tiny.bin}",
        "bench loss --model {tiny.bin} --text {text.txt} --json {text.txt}",
        "emulate {hello.py} --json {hello.py}",
        "emulate {hello.py} --flash {tiny.mkvm}@0 --json {tiny.mkvm}",
        "emulate {hello.py} --flash-out {hello.py}",
        "emulate {hello.py} --flash {tiny.mkvm}@0 --flash-out {tiny.mkvm}",
        "emulate {hello.py} --flash-out {new} --json {new}",
        "train --text {text.txt} --out {} --name text --json {text.md}",
        "train --text {text.txt} --teacher {tiny.bin} --name tiny --out {} --vocab 320",
        "train --text {text.txt} --teacher {tiny.bin} --name mine --out {} --vocab 320",
    ]
    for line in lines:
        yield [
            word.replace("{", f"{folder}/").replace("}", "") if "{" in word else word for word in line.split()
        ]


@pytest.mark.parametrize("index", range(len(list(overlaps("")))))
def test_no_output_is_an_input_or_another_output(model, refusal, monkeypatch, index):
    monkeypatch.setattr("kvlab.commands.train.find_spec", lambda name: True)  # jax need not be here
    folder = model[0].parent
    (folder / "text.txt").write_text("a text\n")
    (folder / "hello.py").write_text("print(1)\n")
    (folder / "link").symlink_to("tiny.mkvm")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    said = refusal(*list(overlaps(folder))[index])
    assert "would overwrite" in said or "is also written by" in said
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_the_shipped_model_is_an_input_too(refusal):
    words = ["plan", "--model", "stories", "--board", "rp2040", "--tokens", 9, "--json", paths.SHIPPED]
    assert "would overwrite the file of --model" in refusal(*words)


def test_a_session_ends_with_its_command(tmp_path):
    with files.session():
        files.prepare(tmp_path / "x", "--json")
    with files.session():
        files.prepare(tmp_path / "x", "--output")
        files.prepare(tmp_path / "x", "--output")  # the same one again
        with pytest.raises(BadInput, match="is also written by --output"):
            files.prepare(tmp_path / "a" / ".." / "x", "--json")
    files.prepare(tmp_path / "x", "--json")


@pytest.mark.parametrize("end", [KeyboardInterrupt, BadInput, None], ids=["interrupt", "error", "done"])
def test_folders_of_an_output_that_never_came_go_again(tmp_path, end):
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("mine")

    def run():
        files.prepare(tmp_path / "link" / "a" / "b" / "told.jsonl", "--out")
        files.prepare(tmp_path / "c" / "d" / "x", "--json")
        files.write(tmp_path / "c" / "d" / "x", b"1", "--json")
        files.prepare_folder(tmp_path / "e" / "f", "--out")
        files.prepare(tmp_path / "mine" / "a" / "y", "--plot")
        assert (tmp_path / "mine/a/b").is_dir()
        assert (tmp_path / "e/f").is_dir()
        if end is not None:
            raise end

    with suppress(KeyboardInterrupt, BadInput), files.session():
        run()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        *("c", "c/d", "c/d/x", "link", "mine"),
    ]


def test_an_interrupted_sample_leaves_no_folders(tmp_path, kvlab, monkeypatch, model):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kvlab.train.teacher.long_stories", interrupted)
    words = ("--model", model[0], "--out", tmp_path / "not" / "there" / "x.jsonl")
    assert kvlab("sample", *words)[0] == 130
    assert not (tmp_path / "not").exists()


def test_a_link_is_shown_by_its_own_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "zz.md").symlink_to("nowhere")
    (tmp_path / "all").symlink_to("docs")
    for path, said in (("zz.md", "zz.md"), ("all/a.md", "docs/a.md"), ("docs/..", "."), (".", ".")):
        assert paths.shown(tmp_path / path) == said


# --- targets that are no files -------------------------------------------------------------------


def test_what_is_no_file_is_not_replaced(tmp_path, model, refusal):
    pipe, link = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    link.symlink_to(link)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for target in (pipe, tmp_path / "socket", "/dev/null", "/dev/stdout", "/dev/full"):
            kind = stat.S_IFMT(os.stat(target).st_mode)
            assert "is a device or a stream" in refusal("convert", model[0], "-o", target)
            assert stat.S_IFMT(os.stat(target).st_mode) == kind
        assert "is a device or a stream" in refusal("boards", "rp2040", "--json", tmp_path / "socket")
    for words in (["convert", model[0], "-o"], ["boards", "rp2040", "--json"]):
        assert os.strerror(errno.ELOOP) in refusal(*words, link)
        assert link.is_symlink()


def test_figures_go_into_a_pipe(tmp_path, kvlab):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    assert kvlab("boards", "rp2040", "--json", pipe)[0] == 0
    reader.join()
    assert json.loads(got[0])["boards"][0]["name"] == "rp2040"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_figures_on_stdout_come_after_the_table(tmp_path):
    """Also where stdout is a file: it is the open one that is written to, nothing replaces it."""
    for place in ("/dev/stdout", "told.txt"):
        with (tmp_path / "told.txt").open("wb") as out:
            done = subprocess.run(
                [sys.executable, "-m", "kvlab", "boards", "rp2040", "--json", place], cwd=tmp_path, stdout=out
            )
        assert done.returncode == 0
        told = (tmp_path / "told.txt").read_text()
        assert "Raspberry Pi Pico (rp2040)" in told
        assert json.loads(told[told.index('{\n  "boards"') :])["boards"][0]["name"] == "rp2040"
    assert subprocess.run(
        [sys.executable, "-m", "kvlab", "boards", "rp2040", "--json", "/dev/null"], capture_output=True
    ).stderr == b""


def test_a_link_is_followed_and_a_file_keeps_its_mode(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    output.write_json(link, {"x": 1})
    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"x": 1}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


# --- names that cannot be ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["emulate", "{}"],
        ["emulate", "hello.py", "--flash", "{}@0"],
        ["stories", "--model", "{}"],
        ["stories", "--model", "tiny.bin", "--tokenizer", "{}"],
        ["convert", "{}"],
        ["convert", "tiny.bin", "-o", "{}"],
        ["convert", "tiny.bin", "--tokenizer", "{}"],
        ["plan", "--model", "{}", "--board", "rp2040", "--tokens", "9"],
        ["bench", "loss", "--model", "{}", "--text", "hello.py"],
        ["bench", "loss", "--model", "tiny.bin", "--text", "{}"],
        ["demo", "--model", "{}"],
        ["demo", "--model", "tiny.bin", "--out", "{}"],
        ["boards", "rp2040", "--json", "{}"],
        ["boards", "rp2040", "--json", "{}/x.json"],
        ["sample", "--model", "{}", "--out", "out.jsonl"],
        ["sample", "--out", "{}"],
        ["train", "--text", "{}", "--out", "out"],
        ["train", "--text", "hello.py", "--out", "{}"],
        ["train", "--text", "hello.py", "--teacher", "{}", "--out", "out"],
    ],
    ids=" ".join,
)
def test_names_too_long_and_loops_of_links(model, refusal, monkeypatch, words):
    monkeypatch.setattr("kvlab.commands.train.find_spec", lambda name: True)
    monkeypatch.chdir(model[0].parent)
    model[0].with_name("hello.py").write_text("print(1)\n")
    model[0].with_name("loop").symlink_to("loop")
    for name in (LONG, "loop", f"loop/{LONG}", "y/" * 3000 + "z"):
        refusal(*(word.replace("{}", name) for word in words))


def test_a_folder_that_may_not_be_entered(model, refusal, monkeypatch):
    """Root may enter all: the refusal is played."""
    locked = model[0].with_name("locked")
    real = os.stat

    def stat_(path, *args, **how):
        if not isinstance(path, int) and str(path).startswith(str(locked)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *args, **how)

    monkeypatch.setattr(os, "stat", stat_)
    monkeypatch.setattr("pathlib.Path.stat", lambda path, **how: stat_(path, **how))
    for words in (
        ["convert", locked / "x"],
        ["convert", model[0], "-o", locked / "x"],
        ["boards", "rp2040", "--json", locked / "x"],
        ["stories", "--model", locked / "x"],
    ):
        assert os.strerror(errno.EACCES) in refusal(*words)
    assert "no such file" in refusal("plan", "--model", locked / "x", "--board", "rp2040", "--tokens", 9)


def test_a_target_name_of_full_length(tmp_path):
    path = tmp_path / ("n" * 250 + ".json")
    output.write_json(path, {"x": 1})
    assert json.loads(path.read_text()) == {"x": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_the_data_folder_may_have_any_name(monkeypatch):
    monkeypatch.setenv(paths.DATA_ENV, LONG)
    assert paths.find_data("x") is None
    assert paths.shown(paths.Path(LONG)) == LONG


# --- whole or not at all -------------------------------------------------------------------------


def test_a_full_disk_leaves_the_old_figures(tmp_path, kvlab, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("old")

    def full(self, data):
        with open(self, "wb") as part:
            part.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    status, _, err = kvlab("boards", "rp2040", "--json", path)
    assert (status, err) == (2, f"kvlab: error: --json {path}: cannot be written: No space left on device\n")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# --- names that are no UTF-8 ---------------------------------------------------------------------


def test_a_name_that_is_no_utf8(model, tmp_path, monkeypatch):
    odd = os.fsdecode(b"tiny\xff.bin")
    monkeypatch.chdir(model[0].parent)
    os.rename("tiny.bin", odd)
    for words in (
        ["convert", odd, "-o", "new.mkvm"],
        ["stories", "--model", odd, "--tokens", "3"],
        ["models", odd],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "kvlab", *words, "--json", tmp_path / "f.json"], capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b""), words
    assert json.loads((tmp_path / "f.json").read_bytes())["models"][0]["title"] == odd
