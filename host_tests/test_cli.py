"""The command line: one-line errors that name the option, exit statuses, sound JSON."""

import json
import os
import subprocess
import sys

import click
import numpy as np
import pytest
from tiny_model import write_tiny

from commandline.errors import BadInput, FellShort
from kvlab import cli, options, output


def test_version(kvlab):
    assert kvlab("--version")[:2] == (0, "kvlab 0.1.0\n")


def test_help_lists_every_command(kvlab):
    status, out, _ = kvlab("--help")
    assert status == 0
    for name in cli.kvlab.list_commands(click.Context(cli.kvlab)):
        assert f"\n  {name} " in out


def test_no_command_shows_help(kvlab):
    status, out, err = kvlab()
    assert status == 2
    assert "Usage: kvlab" in out + err


def leaf_commands():
    """Every command that does something, as words: ["emulate"], ["bench", "loss"], ..."""
    context = click.Context(cli.kvlab)
    for name in cli.kvlab.list_commands(context):
        command = cli.kvlab.get_command(context, name)
        inner = command.list_commands(context) if isinstance(command, click.Group) else []
        yield from ([name, sub] for sub in inner) if inner else [[name]]


@pytest.mark.parametrize("words", list(leaf_commands()), ids=" ".join)
def test_every_command_has_help_with_an_example(kvlab, words):
    status, out, _ = kvlab(*words, "--help")
    assert status == 0
    assert "Example" in out
    assert f"kvlab {' '.join(words)} " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["emulat"], 'no command "emulat"; did you mean "emulate"?'),
        (["xyzzy"], 'no command "xyzzy"; commands: '),
        (["--versoin"], 'no option --versoin; did you mean "--version"?'),
        (["emulate", "x.py", "--bord", "rp2040"], 'no option --bord; did you mean "--board"?'),
        (["emulate"], "Missing argument 'SCRIPT'"),
        (["emulate", "no-such.py"], "SCRIPT no-such.py: no such file"),
        (["emulate", ".", "--board", "rp2040"], "SCRIPT .: is a folder"),
        (["emulate", __file__, "--board", "rp2400"], 'did you mean "rp2040"?'),
        (["emulate", __file__, "--heap-bytes", "lots"], "--heap-bytes lots: not a size"),
        (["emulate", __file__, "--heap-bytes", "1_"], "--heap-bytes 1_: not a size"),
        (["emulate", __file__, "--heap-bytes", "1__0"], "--heap-bytes 1__0: not a size"),
        (["emulate", __file__, "--heap-bytes", 5000 * "9"], "9: not a size"),
        (["emulate", __file__, "--heap-bytes", "0x" + 5000 * "f"], "f: not a size"),
        (["emulate", __file__, "--heap-bytes", "-1"], "--heap-bytes -1: not a size"),
        (["emulate", __file__, "--heap-bytes", "3GB"], "--heap-bytes 3GB: not a size"),
        (
            ["emulate", __file__, "--heap-bytes", "100"],
            "--heap-bytes 100: 100 bytes is not within 2,048",
        ),
        (["emulate", __file__, "--heap-bytes", "4096MiB"], "is not within"),
        (["emulate", __file__, "--flash", "no-such.bin@0"], "--flash no-such.bin: no such file"),
        (["emulate", __file__, "--flash", f"{__file__}@here"], "offset here: not a size"),
        (
            ["emulate", __file__, "--flash", f"{__file__}@1408KiB"],
            "do not fit the 1,441,792 bytes of flash",
        ),
        (["emulate", __file__, "--timeout", "soon"], "--timeout"),
        (["doctor", "--json", "no-such-folder/"], "--json no-such-folder/: names a folder; name a file"),
        (["emulate", __file__, "--json", "."], "--json .: is a folder"),
        (
            ["doctor", "--json", "/dev/null/x.json"],
            "--json /dev/null/x.json: cannot make its folder",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(kvlab, arguments, message):
    status, out, err = kvlab(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("kvlab: error: ")
    assert message in err
    assert err.count("\n") == 1


def command_that(raises):
    def body():
        raise raises

    return click.Command("broken", callback=body)


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (BadInput("bad"), 2),
        (FellShort("short"), 1),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
    ],
)
def test_status_of_what_a_command_raises(kvlab, monkeypatch, raised, status):
    monkeypatch.setattr(
        cli.kvlab, "resolve_command", lambda ctx, args: ("broken", command_that(raised), [])
    )
    got, _, err = kvlab("broken")
    assert got == status
    assert err.strip().startswith("kvlab: ")
    assert err.strip().count("\n") == 0


def test_a_bug_is_not_hidden(kvlab, monkeypatch):
    monkeypatch.setattr(
        cli.kvlab,
        "resolve_command",
        lambda ctx, args: ("broken", command_that(ZeroDivisionError()), []),
    )
    with pytest.raises(ZeroDivisionError):
        kvlab("broken")


@pytest.mark.parametrize(
    "words", ["", "--help", "boards", "boards --help", "boards --json /dev/stdout", "profiles mcu"]
)
def test_a_reader_that_went_away_is_no_error(words):
    """The pipe is closed before a byte is written: nothing is said, and the status is no failure."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kvlab", *words.split()], stdout=write, stderr=subprocess.PIPE
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", ["--help", "boards", "profiles mcu"])
def test_a_full_disk_behind_stdout_is_one_line(words):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kvlab", *words.split()], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (2, "kvlab: error: output: No space left on device\n")


def test_closed_streams_are_no_error():
    line = f"{sys.executable} -m kvlab boards >&- 2>&-"
    assert subprocess.run(line, shell=True).returncode == 0


def test_what_the_terminal_cannot_show_is_escaped(tmp_path):
    path, _ = write_tiny(tmp_path)
    odd = path.rename(tmp_path / "t\u00efny.bin")
    done = subprocess.run(
        [sys.executable, "-m", "kvlab", "models", odd],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "t\\xefny" in done.stdout


# --- imports -------------------------------------------------------------------------------------

SLOW = ("jax", "jsonschema", "matplotlib", "numba", "numpy", "rich")


@pytest.mark.parametrize(
    "words",
    ["--help", "demo --help", "train --help", "convert --help", "bench pools --help", "soak --help"],
)
def test_help_imports_nothing_slow(words):
    """Nor anything that may be broken: help must come whatever is missing."""
    code = "import sys; from kvlab import cli; s = cli.main(sys.argv[1:]); print(s, *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True)
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status == "0"
    assert [name for name in SLOW if name in modules] == []


BROKEN = """
import sys, types
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise {error}
sys.meta_path.insert(0, Finder())
from kvlab import cli
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("error", ["ImportError('no such library')", "AttributeError('_ARRAY_API')"])
def test_without_matplotlib_only_the_pictures_are_missing(error):
    def run(*words):
        code = BROKEN.format(error=error)
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)

    for words in (["--help"], ["demo", "--help"], ["boards"]):
        assert (run(*words).returncode, run(*words).stderr) == (0, "")
    done = run("demo")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert error.partition("(")[0] in done.stderr
    assert "pip install --force-reinstall matplotlib" in done.stderr
    done = run("doctor")
    assert done.returncode == 1
    assert "missing: matplotlib;" in done.stderr


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0", "0"),
        ("-0.0", "0"),
        ("1", "1"),
        ("0.9", "0.9"),
        (".5", "0.5"),
        ("1e-3", "0.001"),
        ("9E-1", "0.9"),
        ("100", "100"),
        ("1e2", "100"),
        ("+1_0.25", "10.25"),
        ("0.85559", "0.855"),
        ("0." + "9" * 60, "0.999"),
    ],
)
def test_numbers_reach_the_board_in_plain_digits(text, plain):
    assert options.Decimal(0, 100).convert(text, None, None) == plain


@pytest.mark.parametrize("text", ["-1", "0", "0.0009", "1.0001"])
def test_a_part_to_keep_has_one_range(kvlab, text):
    status, _, err = kvlab("stories", "--prompt", "Once", "--policy", "lfu", "--compress", text)
    assert (status, err) == (2, f"kvlab: error: --compress {text}: not within 0.001..1.000\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.0009", "a board cannot tell it from 0"),
        ("1e-999999", "a board cannot tell it from 0"),
        ("-0.0001", "not within 0..1"),
        ("1.0001", "not within 0..1"),
        ("1e400", "not within 0..1"),
        ("nan", "not a number"),
        ("inf", "not a number"),
        ("1e99999999999999999999", "not a number"),
        ("half", "not a number"),
        ("", "not a number"),
    ],
)
def test_numbers_that_a_board_cannot_have_are_refused(kvlab, text, message):
    status, out, err = kvlab("stories", "--model", __file__, "--top-p", text)
    assert (status, out) == (2, "")
    assert f"--top-p {text}: {message}" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_floats_are_finite(kvlab, text):
    status, _, err = kvlab("train", "--text", __file__, "--out", "x", "--minutes", text)
    assert status == 2
    assert "--minutes" in err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("65536", 65536),
        ("64KiB", 65536),
        ("64kB", 64000),
        ("0x10", 16),
        ("1 MiB", 1 << 20),
        ("1_000 B", 1000),
    ],
)
def test_sizes(text, size):
    assert options.parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "KiB", "-1", "1.5KiB", "64k", "64K", "64kb", "0x", "1e3", "٣"]
)
def test_sizes_that_are_refused(text):
    with pytest.raises(ValueError, match="not a size"):
        options.parse_size(text)


def test_json_takes_numpy_and_makes_its_folder(tmp_path):
    path = tmp_path / "a" / "b.json"
    output.write_json(path, {"x": np.float32(0.5), "n": np.arange(3), "where": path})
    assert json.loads(path.read_text()) == {"x": 0.5, "n": [0, 1, 2], "where": str(path)}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), np.float32("nan"), np.float64("-inf")]
)
def test_json_refuses_what_is_no_figure(tmp_path, value):
    path = tmp_path / "x.json"
    with pytest.raises(ValueError, match=r"a\.b\[1\] is not a finite number"):
        output.write_json(path, {"a": {"b": [1, value]}})
    assert not path.exists()


def test_json_refuses_nan_inside_an_array(tmp_path):
    with pytest.raises(ValueError, match=r"a\[1\] is not a finite number"):
        output.write_json(tmp_path / "x.json", {"a": np.array([1.0, np.nan])})


def test_doctor_finds_everything_here(kvlab, tmp_path):
    path = tmp_path / "doctor.json"
    status, out, err = kvlab("doctor", "--json", path)
    figures = json.loads(path.read_text())
    assert (status, err) == (0, "")
    assert figures["ok"]
    assert figures["missing"] == []
    assert {check["name"] for check in figures["checks"] if check["required"]} >= {
        "Python",
        "MicroPython",
        "emulator",
    }
    assert "64-bit words, native emitter: yes" in " ".join(out.split())


def test_doctor_without_micropython(kvlab, monkeypatch, tmp_path):
    monkeypatch.setenv("KVLAB_MICROPYTHON", str(tmp_path / "gone"))
    path = tmp_path / "doctor.json"
    status, out, err = kvlab("doctor", "--json", path)
    assert status == 1
    assert "missing: MicroPython, emulator" in err
    assert "MISSING" in out
    assert json.loads(path.read_text())["missing"] == ["MicroPython", "emulator"]


def test_doctor_without_data_is_content(kvlab, monkeypatch, tmp_path):
    monkeypatch.setenv("KVLAB_DATA", str(tmp_path / "gone"))
    status, out, _ = kvlab("doctor")
    assert status == 0
    assert "absent" in out
