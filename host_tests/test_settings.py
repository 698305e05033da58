"""JSON names the settings that made it, `--json -` is stdout alone, options without effect are refused."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from tiny_model import write_tiny

from kvlab import cli, options, output
from kvlab.models.load import load_image

ROOT = Path(__file__).parents[1]


def leaves() -> dict[str, click.Command]:
    """Every command that does something, by its words."""
    context = click.Context(cli.kvlab)
    found = {}
    for name in cli.kvlab.list_commands(context):
        command = cli.kvlab.get_command(context, name)
        assert command is not None
        inner = command.commands if isinstance(command, click.Group) else {}
        found |= {f"{name} {sub}": inner[sub] for sub in inner} or {name: command}
    return found


LEAVES = leaves()


def examples(name: str) -> list[list[str]]:
    """The lines of its help that show how a command is called, as the words after its name."""
    lines = f"{LEAVES[name].help}\n{LEAVES[name].epilog or ''}".replace("\\\n", " ").splitlines()
    calls = [shlex.split(line) for line in lines if line.strip().startswith("kvlab ")]
    count = 1 + len(name.split())
    return [words[count:] for words in calls if words[1:count] == name.split()]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board image, which nothing has to convert."""
    path, words = write_tiny(tmp_path_factory.mktemp("tiny"))
    image = path.with_suffix(".mkvm")
    image.write_bytes(load_image(path, words).data)
    return image


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))[0]


# --- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEAVES)
def test_help_fits_80_columns(kvlab, name: str) -> None:
    status, out, _ = kvlab(*name.split(), "--help")
    assert status == 0
    assert [line for line in out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", LEAVES)
def test_options_name_their_units(kvlab, name: str) -> None:
    """Not the kind of number that they take, and no letter but what a formula calls it."""
    out = kvlab(*name.split(), "--help")[1]
    assert not re.search(r"\b(RANGE|INTEGER|FLOAT|NUMBER|DIRECTORY|PATH)\b", out)
    with click.Context(LEAVES[name]) as context:
        units = {
            param.opts[0]: param.make_metavar(context)
            for param in LEAVES[name].params
            if isinstance(param, click.Option) and not param.is_flag
        }
    assert {name: unit for name, unit in units.items() if len(unit.removesuffix(",...")) < 2} == {
        option: letter for option, letter in (("--temperature", "T"), ("--top-p", "P")) if option in units
    }


MODEL = "A model that ships (stories, stories-gqa16, stories-mha), or a file: "


def test_models_are_told_alike() -> None:
    """Of all commands that take one; what a checkpoint alone will do for is said."""
    helps = {
        name: param.help
        for name, leaf in LEAVES.items()
        for param in leaf.params
        if isinstance(param, click.Option) and param.name == "model" and param.help
    }
    assert helps.keys() == {
        *("bench loss", "bench tokens", "bus", "demo", "deploy", "plan", "quality", "sample", "stories")
    }
    for name, text in helps.items():
        kinds = ("" if name == "bench loss" else "a board image, or ") + "a llama2.c checkpoint"
        assert text.startswith(MODEL + kinds), name


@pytest.mark.parametrize("name", LEAVES)
def test_the_examples_of_help_are_options_that_there_are(name: str) -> None:
    """And of a kind that the command reads: files are not opened, boards and models are looked up."""
    found = examples(name)
    assert found
    for words in found:
        with output.streams():
            LEAVES[name].make_context(name, words).close()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples name files of the folder they are run in."""
    monkeypatch.chdir(tmp_path)
    for name in ("hello.py", "soak.py", "model.mkvm"):
        (tmp_path / name).write_text("")
    board = tmp_path / "boards" / "rp2040"
    board.mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.mkvm").write_text("")


# --- settings ------------------------------------------------------------------------------------

# What makes no figure: where output goes.
OUTPUTS = {
    *("json_path", "plot", "trace", "out", "folder", "out_dir", "target", "drop", "flash_out", "save_path")
}
HAVE_JSON = {name: leaf for name, leaf in LEAVES.items() if any(p.name == "json_path" for p in leaf.params)}


def test_only_what_leaves_files_has_no_json() -> None:
    assert LEAVES.keys() - HAVE_JSON.keys() <= {"demo", "choose", "docs"}


@pytest.mark.parametrize("name", [*HAVE_JSON, "demo"])
def test_every_option_is_a_setting(name: str) -> None:
    """All that a command takes is in `settings` under the name that it has on the command line."""
    with output.streams():
        context = LEAVES[name].make_context(f"kvlab {name}", examples(name)[0])
        with context:
            figures = json.loads(output.as_json(output.with_settings({"a": 1}, **made_plain(context))))
    settings = figures["settings"]
    want = {"command"}
    for param in LEAVES[name].params:
        if not (param.name in OUTPUTS and isinstance(param.type, click.Path)) and param.name != "no_plot":
            want.add(max(param.opts, key=len).lstrip("-").replace("-", "_"))
    assert settings.keys() == want
    assert settings["command"] == name
    assert figures["a"] == 1


def made_plain(context: click.Context) -> dict[str, Any]:
    """What a command itself tells in another way."""
    return {"flash": []} if "flash" in context.params else {}


def settings(kvlab: Any, tmp_path: Path, *words: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of a command and its settings."""
    path = tmp_path / "figures.json"
    status, _, err = kvlab(*words, "--json", path)
    assert (status, err) == (0, "")
    figures = json.loads(path.read_text())
    return figures, figures["settings"]


def test_settings_of_a_story(kvlab, tmp_path: Path, tiny: Path) -> None:
    story = ("stories", "--model", tiny, "--tokens", 3)
    figures, said = settings(kvlab, tmp_path, *story, "--seed", 7, "--top-p", "1e-1")
    assert said["command"] == "stories"
    assert (said["board"], said["model"], said["tokens"], said["seed"]) == ("rp2040", str(tiny), 3, 7)
    assert (said["temperature"], said["top_p"], said["greedy"], said["stop"]) == (0.8, 0.1, False, False)
    for name in ("window", "sinks", "codec", "policy", "budget", "kernels"):
        assert said[name] == figures[name]
        assert said[name] is not None
    for how in (["--greedy"], ["--temperature", "0.0"]):
        _, said = settings(kvlab, tmp_path, *story, *how)
        assert (said["temperature"], said["top_p"], said["seed"]) == (0, None, None)


def test_settings_of_several_stories(kvlab, tmp_path: Path, tiny: Path) -> None:
    words = ("stories", "--model", tiny, "--tokens", 2, "--requests", 2, "--prompt", "a", "--prompt", "b")
    figures, said = settings(kvlab, tmp_path, *words)
    assert (said["requests"], said["prompt"], said["block_tokens"]) == (2, ["a", "b"], 16)
    assert (said["window"], said["sinks"], said["seed"]) == (figures["window"], figures["sinks"], 1)


def test_settings_of_a_replay(kvlab, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("a;1\nb;2\na;1\n")
    words = ("replay", trace, "--policies", "lru,hybrid", "--capacities", "3,2", "--count", "--window", 1)
    figures, said = settings(kvlab, tmp_path, *words, "--no-plot")
    assert (said["trace"], said["count"], said["window"], said["requests"]) == (str(trace), True, 1, None)
    assert (said["capacities"], said["policies"]) == ([2, 3], ["lru", "hybrid"])
    assert figures["policies"].keys() == {"lru", "hybrid"}


def test_settings_of_a_soak_and_a_plan(kvlab, tmp_path: Path) -> None:
    _, said = settings(kvlab, tmp_path, "soak", "--pool", "fixed", "--ops", 20, "--seed", 9)
    assert said == {"command": "soak", "pool": ["fixed"], "ops": 20, "seed": 9}
    figures, said = settings(
        kvlab, tmp_path, "plan", "--model", "stories260k", "--board", "rp2040", "--tokens", 99
    )
    assert (said["board"], said["tokens"], said["codec"], said["weights"]) == ("rp2040", 99, "int8", "int8")
    assert (said["window"], said["profile"]) == (None, None)
    assert figures["fits"]


def test_settings_of_an_emulation(kvlab, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print(1)")
    (tmp_path / "out" / "model.mkvm").write_bytes(bytes(64))
    words = ("emulate", "hello.py", "--flash", "out/model.mkvm@0x1000", "--heap-bytes", "100KiB")
    path = tmp_path / "figures.json"
    assert kvlab(*words, "--json", path, "--", "x", "y")[0] == 0
    said = json.loads(path.read_text())["settings"]
    assert said["flash"] == [{"file": "out/model.mkvm", "offset": 4096}]
    assert (said["heap_bytes"], said["arguments"], said["timeout"]) == (102_400, ["x", "y"], None)


def test_a_setting_that_is_none_is_a_mistake_of_ours() -> None:
    context = LEAVES["boards"].make_context("kvlab boards", [])
    with context, pytest.raises(ValueError, match="nam: no options of kvlab boards"):
        output.with_settings({}, nam="x")


# --- to stdout -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "boards",
        "boards rp2040",
        "models qwen2.5-7b",
        "profiles mcu",
        "doctor",
        "plan --model stories260k --board rp2040 --tokens 99",
        "bus --tokens 9 --prompt 1",
        "replay trace.csv --policies lru --plot a.png",
        "soak --pool fixed --ops 20",
        "stories --model {tiny} --tokens 2",
        "stories --model {tiny} --tokens 2 --requests 1",
        "convert {checkpoint} -o t.mkvm",
        "emulate hello.py",
        "deploy --board rp2350 --model {tiny} --dry-run",
    ],
    ids=lambda line: line.replace("{", "").replace("}", ""),
)
def test_json_to_stdout_is_nothing_else(kvlab, tmp_path, monkeypatch, tiny, checkpoint, line: str) -> None:
    monkeypatch.setattr("kvlab.deploy.link.list_ports.comports", list)
    (tmp_path / "hello.py").write_text("print('hello')")
    (tmp_path / "trace.csv").write_text("a\nb\na\n")
    words = line.format(tiny=tiny, checkpoint=checkpoint).split()
    status, out, err = kvlab(*words, "--json", "-")
    assert status == 0
    figures = json.loads(out)
    assert figures["settings"]["command"] == words[0]
    assert err.strip(), "what is for people is on stderr"
    assert not (tmp_path / "-").exists()
    status, out, err = kvlab(*words)  # and afterwards all is as before
    assert (status, err) == (0, "")
    assert out.strip()


def test_json_to_stdout_when_the_answer_is_no(kvlab) -> None:
    words = ("plan", "--model", "qwen2.5-7b", "--board", "rp2040", "--tokens", 99, "--json", "-")
    status, out, err = kvlab(*words)
    assert status == 1
    assert json.loads(out)["fits"] is False
    assert "kvlab: error: " in err


def test_json_to_stdout_and_bad_input(kvlab, capfd) -> None:
    assert kvlab("boards", "--json", "-", "nonesuch")[:2] == (2, "")
    assert kvlab("plan", "--json", "-", "--tokens", "x")[:2] == (2, "")
    assert kvlab("boards")[1]


def test_json_to_stdout_of_a_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kvlab", "boards", "rp2040", "--json", "-"], capture_output=True, cwd=ROOT
    )
    assert (done.returncode, b"Raspberry" in done.stderr) == (0, True)
    assert json.loads(done.stdout)["boards"][0]["name"] == "rp2040"


# --- no effect -----------------------------------------------------------------------------------


NO_EFFECT = [
    ("stories --greedy --temperature 1.5", "--temperature: has no effect with --greedy"),
    ("stories --greedy --top-p 0.5", "--top-p: has no effect with --greedy"),
    ("stories --greedy --seed 1", "--seed: has no effect with --greedy"),  # though it is the default
    ("stories --temperature 0 --seed 2", "--seed: has no effect with --temperature 0"),
    ("stories --temperature 0.000 --top-p 0.5", "--top-p: has no effect with --temperature 0"),
    ("stories --policy lru-peak --budget 64 --compress 0.5", "--compress: needs --prompt"),
    ("stories --shared-prefix x", "--shared-prefix: needs --requests"),
    ("stories --block-tokens 8", "--block-tokens: needs --requests"),
    ("stories --requests 2 --peak", "--peak: not with --requests"),
    ("stories --requests 2 --firmware x", "--firmware: not with --requests"),
    ("stories --requests 2 --policy lfu --budget 9", "--policy: is for one story"),
    ("stories --firmware x --peak", "--peak: real firmware has one heap"),
    ("replay trace.csv --policies lru --window 3", "--window: is of hybrid"),
    ("replay trace.csv --plot a.png --no-plot", "--no-plot: is at odds with --plot"),
    ("predict --trace t --plot a.png --no-plot", "--no-plot: is at odds with --plot"),
    ("quality --policies none --budgets 7", "--budgets: needs --policies with one that keeps a budget"),
    ("quality --policies compress --budgets 64", "--budgets: needs --policies with one"),
    ("quality --policies none --policy-codec int8", "--policy-codec: needs --policies"),
    ("quality --codecs none --policies window --context 64", "--context: counts the bytes of element"),
    ("quality --codecs none --policies compress --out x", "--out: nothing is drawn"),
    ("quality --codecs none --policies none --gate 1 --out x", "--out: nothing is drawn"),
    ("quality --no-plot --out x", "--no-plot: is at odds with --out"),
    ("quality --image x.mkvm", "--image x.mkvm: holds what the gate chooses"),
    ("train --text trace.csv --out x --teacher-tokens 9", "--teacher-tokens: needs --teacher"),
    ("train --text trace.csv --out x --text-share 0.5", "--text-share: needs --teacher"),
    ("train --text trace.csv --out x --steps 1 --minutes 1", "--minutes: pass --steps or --minutes"),
    ("plan --model stories260k --board rp2040 --tokens 9 --sinks 4", "--sinks 4: sinks need --window"),
    (
        "plan --model stories260k --board rp2040 --tokens 9 --codec float16 --group 8",
        "--group 8: float16 has no scales",
    ),
    ("bench kernels --target qemu --tokens 64", "--tokens: only for --target unix"),
    ("bench kernels --target qemu --head-dim 8", "--head-dim: only for --target unix"),
    ("bench tokens --target /dev/x --model y", "--model: a board on a serial port tells with its own"),
    ("bench loss --model m --text t --budget 9", "--policy and --budget belong together"),
    ("deploy --board rp2040 --dry-run --force", "--force: no board is connected"),
    ("deploy --board rp2040 --dry-run --model-in romfs", "--model-in romfs: no board is connected"),
]


@pytest.mark.parametrize(("line", "message"), NO_EFFECT, ids=[line for line, _ in NO_EFFECT])
def test_an_option_without_effect_is_refused(kvlab, tmp_path, monkeypatch, line: str, message: str) -> None:
    monkeypatch.setattr("kvlab.deploy.link.list_ports.comports", list)
    (tmp_path / "trace.csv").write_text("a\nb\na\n")
    status, out, err = kvlab(*line.split())
    assert (status, out) == (2, "")
    assert err.startswith(f"kvlab: error: {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_a_parameter_that_there_is_not_is_a_mistake_of_ours() -> None:
    context = LEAVES["boards"].make_context("kvlab boards", ["rp2040"])
    with context:
        assert [param.name for param in options.given("name", "json_path")] == ["name"]
        with pytest.raises(ValueError, match="nam: no parameters of kvlab boards"):
            options.given("nam")
