"""The program: sampling from a seed, the end of a story, its figures, and errors of one line."""

from __future__ import annotations

import ast
import json

import numpy as np
import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import app
from stories.sampler import Sampler, thousandths
from stories_fixtures import llama, tiny, unix_app

from kvlab import paths
from mpy_kv.errors import BadArgument


def tell(seed: int = 1, tokens: int = 30, **options) -> tuple[bytes, dict]:
    """A story of the tiny model in this process."""
    parts: list[bytes] = []
    model = llama(tiny()[2], window=30, sinks=4)
    figures = app.tell(model, seed=seed, tokens=tokens, write=lambda b: parts.append(bytes(b)), **options)
    return b"".join(parts), figures


def test_a_seed_tells_the_same_story_everywhere() -> None:
    want, figures = tell(seed=7, prompt="the lion")
    assert want.startswith(b"the lion")
    words = ["--seed", 7, "--tokens", 30, "--window", 30, "--prompt", "the lion", "--json", "{figures}"]
    for kernels in ("plain", "viper"):
        done, files = unix_app(tiny()[2], [*words, "--kernels", kernels])
        assert done.status == 0, done.stderr
        shown = json.loads(files["figures"])
        assert done.stdout.encode() == want.decode(errors="replace").encode() + b"\n"
        assert shown["kernels"] == kernels
        for key in ("prompt_tokens", "tokens", "stories", "kv_bytes", "buffer_bytes", "evicted_tokens"):
            assert shown[key] == figures[key], key
        assert kernels == "plain" or shown["alloc_bytes_per_token"] == 0


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
    [("0.85", 850), ("1", 1000), (0.8, 800), (2, 2000), ("0.0019", 1), ("100", 100000), ("0", 0)],
)
def test_decimals_without_floats(text: object, milli: int) -> None:
    assert thousandths("temperature", text, 0, 100000) == milli


@pytest.mark.parametrize("text", ["-1", "1e-3", "", "hot", "1.2.3", "100.1", None])
def test_bad_decimals(text: object) -> None:
    with pytest.raises(BadArgument, match="temperature must be"):
        thousandths("temperature", text, 0, 100000)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--temperature", "warm"], "temperature must be a number such as 0.85, got 'warm'"),
        (["--top-p", "1.5"], "top_p must be 0.000..1.000"),
        (["--window", "600"], "lower window to 60"),
        (["--window", "x"], "--window needs a whole number, got 'x'"),
        (["--tokens", "0"], "tokens must be a positive whole number, got 0"),
        (["--sinks", "-1"], "sinks must be 0.."),
        (
            ["--kernels", "thumb"],
            "--kernels: kernels 'thumb' cannot be used here: unknown; known: plain, viper",
        ),
        (["--speed", "9"], "unknown option --speed"),
        (["--seed"], "--seed needs 1"),
        (["--model", "/nowhere"], "--model /nowhere cannot be read"),
        (["--dump", ("{ids}", b"\xfe\xff\xff\xff"), "{out}"], "the ids end after SEEK"),
        (["--dump", ("{ids}", b"\x00\x10\x00\x00"), "{out}"], "token must be 0..319, got 4096"),
    ],
)
def test_bad_options_are_one_line_and_status_2(words: list, message: str) -> None:
    done, _ = unix_app(tiny()[2], words)
    assert done.status == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr + done.stdout


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
