"""The command line: one-line errors that name the option, exit statuses, sound JSON."""

import json
import subprocess
import sys

import click
import numpy as np
import pytest

from kvlab import cli, options, output
from kvlab.errors import BadInput, FellShort


@pytest.fixture
def kvlab(capfd):
    """`kvlab(*arguments)`: exit status, stdout, stderr of one command run in this process."""

    def run(*arguments):
        status = cli.main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return status, out, err

    return run


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


def test_a_reader_that_went_away_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m kvlab --help | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


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
    assert "64-bit words, native emitter: yes" in out


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
