"""The program: sampling from a seed, the end of a story, its figures, and errors of one line."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import app, command
from stories.image import Image
from stories.sampler import Sampler
from stories.sampling import thousandths
from stories_fixtures import llama, tiny, typed, unix_app
from tiny_model import write_tiny

from kvlab import cli, paths
from kvlab.models.image import convert
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.tokenizer import read_tokenizer
from mpy_kv.errors import BadArgument

FOLDER = str(Path(__file__).parent)


def tell(seed: int = 1, tokens: int = 30, codec: str = "int8", **options) -> tuple[bytes, dict]:
    """A story of the tiny model in this process."""
    parts: list[bytes] = []
    model = llama(tiny()[2], window=30, sinks=4, codec=codec)
    figures = app.tell(model, seed=seed, tokens=tokens, write=lambda b: parts.append(bytes(b)), **options)
    return b"".join(parts), figures


@pytest.mark.parametrize("codec", ["int8", "int8-int4", "float16", "int4"])
def test_a_seed_tells_the_same_story_everywhere(codec: str) -> None:
    want, figures = tell(seed=7, prompt="the lion", codec=codec)
    assert want.startswith(b"the lion")
    words = ["--seed", 7, "--tokens", 30, "--window", 30, "--prompt", "the lion", "--json", "{figures}"]
    words += ["--codec", codec]
    for kernels in ("plain", "viper"):
        done, files = unix_app(tiny()[2], [*words, "--kernels", kernels])
        assert done.status == 0, done.stderr
        shown = json.loads(files["figures"])
        assert done.stdout.encode() == want.decode(errors="replace").encode() + b"\n"
        assert shown["kernels"] == kernels
        for key in ("prompt_tokens", "tokens", "stories", "kv_bytes", "buffer_bytes", "evicted_tokens"):
            assert shown[key] == figures[key], key
        assert kernels == "plain" or shown["alloc_bytes_per_token"] == 0


def test_the_app_obeys_the_image() -> None:
    """In this process and on the unix port with each set of kernels, unless --codec is given."""
    image = typed("int8-int4", "int8")
    codecs = Image(image).codec
    parts: list[bytes] = []
    figures = app.tell(llama(image, window=30), seed=7, tokens=30, write=lambda b: parts.append(bytes(b)))
    assert list(figures["codec"]) == codecs
    want = b"".join(parts).decode(errors="replace").encode() + b"\n"
    words = ["--seed", 7, "--tokens", 30, "--window", 30, "--sinks", 0, "--json", "{figures}"]
    for more, named, kernels in (
        ([], codecs, "viper"),
        (["--kernels", "plain"], codecs, "plain"),
        (["--codec", "int8"], "int8", "viper"),
    ):
        done, files = unix_app(image, [*words, *more])
        assert done.status == 0, done.stderr
        shown = json.loads(files["figures"])
        assert (shown["codec"], shown["cache_kernels"]) == (named, kernels)
        assert kernels == "plain" or shown["alloc_bytes_per_token"] == 0
        if named == codecs:
            assert done.stdout.encode() == want
            for key in ("kv_bytes", "buffer_bytes", "evicted_tokens"):
                assert shown[key] == figures[key], key


def test_requests_take_one_type_for_all_layers() -> None:
    words = ["--requests", 2, "--tokens", 4, "--window", 20]
    done, _ = unix_app(typed("int8-int4", "int8"), words)
    assert done.status == 2
    assert done.stderr.startswith("stories: error: --codec must be one for all layers")
    assert done.stderr.count("\n") == 1
    for image, more in ((typed("int8-int4", "int8"), ["--codec", "int8"]), (typed("int8-int4"), [])):
        done, _ = unix_app(image, [*words, *more])
        assert done.status == 0, done.stderr


def test_seeds_tell_different_stories() -> None:
    assert len({tell(seed=s)[0] for s in (0, 1, 2, 1 << 31, -5)}) == 5


def test_greedy_is_temperature_zero_and_needs_no_seed() -> None:
    assert tell(seed=1, greedy=True)[0] == tell(seed=2, temperature="0")[0] == tell(temperature=0, top_p=0)[0]


def test_figures() -> None:
    _, figures = tell(tokens=80, prompt="a")
    prompt = figures["prompt_tokens"]
    assert figures["tokens"] == 80
    assert figures["position"] == 80 + prompt
    assert figures["evicted_tokens"] == 80 + prompt - 34
    assert figures["kv_bytes"] == 34 * 2 * 2 * (16 + 2 * 1)
    assert figures["alloc_bytes"] is None  # CPython does not count


class Script:
    """A sampler that says what it is told to."""

    greedy = True

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = list(tokens)

    def sample(self) -> int:
        return self.tokens.pop(0)


@pytest.mark.parametrize("end", [1, 2])
def test_the_end_of_a_story(end: int) -> None:
    """BOS or EOS: a new story starts with BOS in the same context, or the telling stops."""
    tokens = [300, end, 301, 302]
    text: list[bytes] = []
    model = llama(tiny()[2], window=30)
    teller = app.Teller(model, Script(tokens), lambda b: text.append(bytes(b)))
    teller.feed([1])
    assert teller.tell(4) == 4
    assert (teller.stories, teller.told, model.cache.length) == (2, 4, 5)
    vocabulary = tiny()[1]
    assert text == [vocabulary.piece(300, 1), b"\n\n", vocabulary.piece(301, 1), vocabulary.piece(302, 301)]

    again = llama(tiny()[2], window=30)
    for token in (1, 300, 1, 301, 302):
        again.step(token)
    assert list(again.logits) == list(model.logits)

    model = llama(tiny()[2], window=30)
    teller = app.Teller(model, Script(tokens), lambda b: None, stop=True)
    teller.feed([1])
    assert (teller.tell(4), model.cache.length) == (2, 2)


def test_a_story_that_ends_at_once(tmp_path: Path) -> None:
    """The first token drawn is BOS or EOS: likely where there are but five."""
    model, words = write_tiny(tmp_path, vocab=5)
    checkpoint = read_checkpoint(model)
    image = convert(checkpoint, read_tokenizer(words, 5))
    firsts = 0
    for seed in range(7, 13):
        options = {"stop": True, "temperature": "100", "top_p": "1", "tokens": 30, "seed": seed}
        figures = app.tell(llama(image, window=30), write=bytes, **options)
        assert 1 <= figures["tokens"] <= 30
        assert figures["position"] == figures["tokens"]  # the end of the story is not run
        firsts += figures["tokens"] == 1
    assert firsts


def test_sampled_tokens_follow_the_softmax() -> None:
    model = llama(tiny()[2], window=30)
    model.step(1)
    logits = np.array(list(model.logits)) / 65536
    kept = list(model.logits)
    p = np.exp((logits - logits.max()) / 0.7)
    p /= p.sum()
    order = np.argsort(-p)
    held = order[: int((p[order].cumsum() > 0.6).argmax()) + 1]
    sampler = Sampler(model, "0.7", "0.6", seed=11)
    seen = np.zeros(len(p))
    for _ in range(1000):
        for i, x in enumerate(kept):
            model.logits[i] = x
        seen[sampler.sample()] += 1
    assert set(np.flatnonzero(seen)) <= set(held)
    want = p[held] / p[held].sum()
    assert np.abs(seen[held] / 1000 - want).max() < 4 * np.sqrt(want.max() / 1000)


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("0.85", 850),
        ("1", 1000),
        (0.8, 800),
        (2, 2000),
        ("100", 100000),
        ("0", 0),
        (".5", 500),
        ("5.", 5000),
        ("007", 7000),
        # Cut off, but never to 0, which means something else.
        ("0.0019", 1),
        ("0.0009", 1),
        (0.00001, 1),
        (0.1 + 0.2, 300),
        ("99.9999", 99999),
        # Exponents.
        ("1e-3", 1),
        ("1E2", 100000),
        ("5e-1", 500),
        ("0.025e+1", 250),
        ("1234e-3", 1234),
        ("0e999999999999", 0),
        ("1e-999999999999", 1),
        ("0." + "0" * 50 + "25e51", 2500),
    ],
)
def test_decimals_without_floats(text: object, milli: int) -> None:
    assert thousandths("temperature", text, 0, 100000) == milli


@pytest.mark.parametrize(
    "text",
    ["-1", "", ".", "hot", "1.2.3", "100.1", "100.0001", "1e", "e1", "1e1.5", "1e3", "1e999999999999"]
    + ["\u00b2", "\u0665", "nan", "inf", "0x1", "1_0", " 1", None, True],
)
def test_bad_decimals(text: object) -> None:
    with pytest.raises(BadArgument, match="temperature must be"):
        thousandths("temperature", text, 0, 100000)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--temperature", "warm"], "--temperature must be a number such as 0.85, got 'warm'"),
        (["--top-p", "1.5"], "--top-p must be 0.000..1.000"),
        (["--top-p=-1e-3"], "--top-p must be a number such as 0.85, got '-1e-3'"),
        (["--window", "600"], "lower --window to 60"),
        (["--window", "x"], "--window needs a whole number, got 'x'"),
        (["--tokens", "0"], "--tokens must be a positive whole number, got 0"),
        (["--sinks", "-1"], "--sinks must be 0.."),
        (["--group=3"], "--group 3 must divide"),
        (["--codec", "int7"], "--codec 'int7' is unknown"),
        (["--codec", "float8"], "--codec 'float8' is unknown"),
        (["--codec", "float8", "--kernels", "plain"], "--codec 'float8' is unknown"),
        (["--row-buffer-bytes", 10**12], "--row-buffer-bytes must be 0..1048576, got 1000000000000"),
        (["--greedy=1"], "--greedy needs 0 values"),
        (
            ["--kernels", "cuda"],
            "--kernels: kernels 'cuda' cannot be used here: unknown; known: plain, thumb, viper",
        ),
        (["--speed", "9"], "unknown option --speed"),
        (["--seed"], "--seed needs 1"),
        (["--model", "/nowhere"], "--model /nowhere cannot be read"),
        (["--model", FOLDER], f"--model {FOLDER} cannot be read"),
        (["--json", "/nowhere/x"], "--json /nowhere/x cannot be written"),
        (["--json", "/"], "--json / cannot be written"),
        (["--dump", "/nowhere/x", "{out}"], "--dump /nowhere/x cannot be read"),
        (["--dump", ("{ids}", b""), "/nowhere/x"], "--dump /nowhere/x cannot be written"),
        (["--dump", ("{ids}", b"\xfe\xff\xff\xff"), "{out}"], "/out: the ids end after SEEK"),
        (["--dump", ("{ids}", b"\x01\x00\x00\x00\x01"), "{out}"], "/out: the ids end inside an id, after 1"),
        (["--dump", ("{ids}", b"\x00\x10\x00\x00"), "{out}"], "/out: token must be 0..319, got 4096"),
        (["--json", "{figures}", "--tokens", 0], "--tokens must be"),
    ],
)
def test_bad_options_are_one_line_and_status_2(words: list, message: str) -> None:
    """Before any story is told, and no file is left behind."""
    done, files = unix_app(tiny()[2], words)
    assert done.status == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert set(files) <= {"model", "ids"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "words", [["--tokens", 3, "--json", "/dev/full"], ["--dump", ("{ids}", b"\1\0\0\0"), "/dev/full"]]
)
def test_a_full_disk_is_one_line_and_status_2(words: list) -> None:
    done, _ = unix_app(tiny()[2], words)
    assert done.status == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("stories: error: --")
    assert "/dev/full" in done.stderr
    assert Path("/dev/full").is_char_device()


def test_a_run_that_fails_early_leaves_the_old_figures() -> None:
    done, files = unix_app(tiny()[2], ["--json", ("{figures}", b"old"), "--tokens", 0])
    assert (done.status, files["figures"]) == (2, b"old")


def test_files_on_cpython(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The same program: what is refused leaves nothing, what is told is written."""
    model, out, ids = tmp_path / "model", tmp_path / "out", tmp_path / "ids"
    model.write_bytes(tiny()[2])
    ids.write_bytes(bytes([1, 0, 0, 0, 0, 16, 0, 0]))
    for words in (["--json", out, "--top-p=2"], ["--dump", ids, out], ["--dump", tmp_path / "no", out]):
        with pytest.raises(SystemExit) as stop:
            app.main(["--model", str(model), *map(str, words)])
        assert stop.value.code == 2
        assert capsys.readouterr().err.startswith("stories: error: --")
        assert not out.exists()
    with pytest.raises(BadArgument, match="top_p must be"):
        app.main(model=str(model), top_p=2)


@pytest.mark.parametrize("words", [["--prompt", "-h"], ["--prompt=-h"], ["--prompt=--help", "--seed=-5"]])
def test_a_value_may_begin_with_a_dash(words: list[str]) -> None:
    prompt = words[0].partition("=")[2] or words[1]
    done, _ = unix_app(tiny()[2], [*words, "--tokens=3"])
    assert done.status == 0, done.stderr
    assert done.stdout.startswith(prompt)
    assert "# tokens: 3\n" in done.stdout


def test_words_become_options() -> None:
    assert command.parse(["--prompt=a=b", "--stop", "--seed", "-5", "--top-p=", "--dump=-x", "--lock"]) == {
        "prompt": "a=b",
        "stop": True,
        "seed": -5,
        "top_p": "",
        "dump": ("-x", "--lock"),
    }
    assert command.parse(["--stop", "-h", "--wrong"]) is None
    with pytest.raises(BadArgument, match="unknown option --help"):
        command.parse(["--help=1"])


def test_kvlab_passes_such_a_prompt_on(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = tmp_path / "model.mkvm"
    model.write_bytes(tiny()[2])
    assert cli.main(["stories", "--board", "rp2040", "--model", str(model), "--tokens=3", "--prompt=-h"]) == 0
    assert capsys.readouterr().out.startswith("-h")


def test_a_foreign_model_is_one_line_and_status_2() -> None:
    done, _ = unix_app(b"GGUF" + bytes(200), [])
    assert done.status == 2
    assert "not a board image" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help() -> None:
    done, _ = unix_app(tiny()[2], ["--help"])
    assert done.status == 0
    assert "--temperature" in done.stdout


def test_without_a_native_emitter_the_story_is_the_same(upy, tmp_path) -> None:
    """Ports without one cannot compile `@micropython.native`: the files are read without it."""
    path = tmp_path / "model"
    path.write_bytes(tiny()[2])
    shown = upy.run(
        "import sys\nfrom mpy_kv import port\nport.EMITTER = False\nimport stories\n"
        "figures = stories.main(model=sys.argv[1], tokens=30, window=30, seed=7, report=False)\n"
        "print(figures['kernels'], stories.Llama.step)",
        [path],
    )
    text, last = shown.rstrip("\n").rsplit("\n", 1)
    assert text.encode() == tell(seed=7)[0].decode(errors="replace").encode()
    assert last.startswith("plain <function step")


def test_the_app_holds_no_float() -> None:
    files = sorted((paths.APPS / "stories").rglob("*.py"))
    assert len(files) >= 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            assert not isinstance(node, ast.Div), file
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), file
            assert not (isinstance(node, ast.Name) and node.id == "float"), file
