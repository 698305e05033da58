"""Several stories at once from one arena: each is what it is alone, and their beginning is kept once."""

from __future__ import annotations

import ast
import asyncio
import json
from dataclasses import replace
from functools import cache

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
import storytellers
from stories import app, command, many, shared
from stories.tokenizer import Tokenizer
from stories_fixtures import llama, tiny
from tiny_model import write_tiny

from commandline.errors import FellShort
from kvlab import boards, cli, story
from kvlab import many as many_stories
from kvlab.models.image import Image, convert
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.tokenizer import read_tokenizer
from mpy_kv.errors import BadArgument
from mpy_kv.paged import PagedGeometry

NO_ROOM = (
    "does not fit: MemoryError: an arena of 295712 bytes, 256 blocks of 16 tokens, in a heap of 239,776;"
    " lower --requests, --tokens, --window or --block-tokens\n"
)
LONGER = "take a longer one, or a smaller --block-tokens"
DRAGON = "Once upon a time, there was a little dragon who lived in a big forest. One day"


@pytest.fixture
def told(tmp_path, capfd):
    """`told(*words)`: exit status, stderr, figures or None of `kvlab stories`."""

    def run(*words):
        path = tmp_path / "told.json"
        path.unlink(missing_ok=True)
        status = cli.main(["stories", *map(str, words), "--json", str(path)])
        return status, capfd.readouterr().err, json.loads(path.read_text()) if path.exists() else None

    return run


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A board image of a random model with a context of 64 tokens."""
    path = tmp_path_factory.mktemp("tiny") / "model.mkvm"
    path.write_bytes(tiny()[2])
    return path


def alone(image: bytes, text: str, seed: int, **options) -> bytes:
    """The same story told in this process by the app for one."""
    parts: list[bytes] = []
    options = {"window": 30, "sinks": 4, **options}
    context = {name: options.pop(name) for name in ("window", "sinks")}
    app.tell(
        llama(image, **context), prompt=text, seed=seed, write=lambda b: parts.append(bytes(b)), **options
    )
    return b"".join(parts)


# --- kvlab stories --requests ---------------------------------------------------------------------


def test_three_stories_with_one_beginning(told) -> None:
    words = ["--board", "rp2350", "--requests", 3, "--shared-prefix", DRAGON, "--tokens", 30]
    status, err, figures = told(*words)
    assert (status, err) == (0, "")
    assert figures["equal_to_single"] is True
    assert len(set(figures["texts"])) == 3
    assert all(text.startswith(DRAGON) for text in figures["texts"])
    one = figures["stories"][0]["prompt_tokens"]
    whole = (one - 1) // 16
    assert whole >= 1
    assert figures["shared_blocks"] == whole
    assert figures["reused_tokens"] == 2 * whole * 16
    assert [each["reused_tokens"] for each in figures["stories"]] == [0] + 2 * [whole * 16]
    assert figures["peak_blocks"] == figures["total_blocks"] == whole + 3 * (-(-(one + 29) // 16) - whole)
    assert figures["alloc_bytes_per_token"] == 0
    assert figures["tokens"] == 3 * 30
    assert figures["buffer_bytes"] < figures["single_buffer_bytes"]


def test_one_that_differs_is_named(told, model, monkeypatch) -> None:
    """Compared is with runs of their own, of the app for one story; the figures are written all the same."""
    asked = []

    def alone(board, image, telling, **how):
        asked.append((telling.seed, telling.prompt, telling.window, type(telling)))
        return story.Told({"text": "other" if telling.seed == 8 else "same"}, None)

    monkeypatch.setattr(story, "tell", alone)
    monkeypatch.setattr(many_stories, "text", lambda tokenizer, ids: "same")
    words = ["--requests", 3, "--tokens", 4, "--seed", 7, "--window", 30, "--shared-prefix", "the"]
    status, err, figures = told("--model", model, *words, "--prompt", " lion")
    assert asked == [(seed, "the lion", 30, story.Telling) for seed in (7, 8, 9)]
    assert (status, err) == (1, "kvlab: error: story 2 is not what it is when told alone\n")
    assert figures["equal_to_single"] is False
    assert [one["equal_to_single"] for one in figures["stories"]] == [True, False, True]


@pytest.mark.parametrize(
    ("words", "reused", "why"),
    [
        ([2, "--block-tokens", 6], 0, f"nothing is shared: its 5 tokens fill no block of 6; {LONGER}"),
        ([2, "--block-tokens", 5], 0, "nothing is shared: at least one token of a prompt is computed anew"),
        ([2, "--block-tokens", 4], 4, None),
        ([1], 0, "one story has nobody to share it with: take more --requests"),
    ],
    ids=["less than a block", "just a block", "a block and more", "one story"],
)
def test_a_prefix_that_saves_nothing_says_why(model, tmp_path, capfd, words, reused, why) -> None:
    """Of five tokens: BOS, a space, and three letters."""
    path = tmp_path / "told.json"
    asked = ["stories", "--model", model, "--tokens", 2, "--shared-prefix", "the", "--json", path]
    status = cli.main([*map(str, asked), "--requests", *map(str, words)])
    said = " ".join(capfd.readouterr().out.split())  # wherever its lines end
    assert status == 0
    assert json.loads(path.read_text())["reused_tokens"] == reused
    assert ("--shared-prefix" in said) is (why is not None)
    assert why is None or f"--shared-prefix {why}" in said


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--shared-prefix", "a"], 2, "--shared-prefix: needs --requests"),
        (["--block-tokens", 16], 2, "--block-tokens: needs --requests"),
        (["--prompt", "a", "--prompt", "b"], 2, "--prompt: given 2 times; more than one needs --requests"),
        (["--requests", 3, "--prompt", "a", "--prompt", "b"], 2, "--prompt: given 2 times; --requests 3"),
        (["--requests", 0], 2, "'--requests': 0 is not in the range"),
        (["--requests", 2, "--block-tokens", 0], 2, "'--block-tokens': 0 is not in the range"),
        (["--requests", 2, "--peak"], 2, "--peak: not with --requests"),
        (["--requests", 2, "--firmware", "x.uf2"], 2, "--firmware: not with --requests"),
        (["--requests", 2, "--window", 600], 2, "lower --window to 60\n"),
        (["--requests", 64, "--board", "rp2040", "--tokens", 60], 1, NO_ROOM),
    ],
)
def test_refusals_are_one_line(told, model, words, status, message) -> None:
    found, err, figures = told("--model", model, *words)
    assert (found, figures) == (status, None)
    assert message in err
    assert err.count("\n") == 1


def test_an_arena_larger_than_the_largest_piece_does_not_fit(model) -> None:
    """On a heap of several areas one object must fit one of them, whatever the heap."""
    board = boards.load("esp32s3")
    small = replace(board, machine=replace(board.machine, largest_object_bytes=10_000))
    telling = many_stories.Telling(tokens=40, window=60, requests=4)
    with pytest.raises(FellShort, match="one bytearray of .* 10,000 in one piece; lower --requests"):
        many_stories.tell(small, Image.read(model), telling)


# --- the app --------------------------------------------------------------------------------------


def tell(image: bytes, **options) -> tuple[bytes, dict]:
    """many.tell() in this process, plain kernels."""
    parts: list[bytes] = []
    chosen = {"model": image, "kernels": "plain", "window": 30, "sinks": 4, **options.pop("chosen", {})}
    figures = many.tell(chosen, write=lambda b: parts.append(bytes(b)), **options)
    return b"".join(parts), figures


def pages(printed: bytes, requests: int, seed: int) -> list[bytes]:
    """What is printed, story by story."""
    found = []
    for i in range(requests):
        head = b"--- story %d of %d, seed %d ---\n" % (i + 1, requests, seed + i)
        assert printed.startswith(head)
        end = printed.find(b"\n\n--- story") if i < requests - 1 else len(printed) - 2
        found.append(printed[len(head) : end])
        printed = printed[end + 2 :]
    return found


@pytest.mark.parametrize("stop", [False, True])
def test_the_ends_of_stories(stop, tmp_path) -> None:
    """BOS and EOS, likely where there are but five tokens: a new story in the same context, or the end."""
    path, words = write_tiny(tmp_path, vocab=5)
    image = convert(read_checkpoint(path), read_tokenizer(words, 5))
    how = {"temperature": "100", "top_p": "1", "tokens": 25, "stop": stop}
    printed, figures = tell(image, requests=4, seed=7, block_tokens=4, **how)
    want = [alone(image, "", 7 + i, **how) for i in range(4)]
    assert printed == b"".join(
        b"--- story %d of 4, seed %d ---\n%s\n\n" % (i + 1, 7 + i, text) for i, text in enumerate(want)
    )
    assert any(ids.count(1) > 1 for ids in figures["ids"]) is not stop
    assert (figures["tokens"] < 100) is stop


def test_words_and_figures() -> None:
    image = tiny()[2]
    how = {"shared_prefix": "the lion", "prompt": ["", " and"], "tokens": 8}
    printed, figures = tell(image, requests=2, block_tokens=2, **how)
    first, second = pages(printed, 2, 1)
    assert first == alone(image, "the lion", 1, tokens=8)
    assert second == alone(image, "the lion and", 2, tokens=8)
    assert figures["told_tokens"] == [8, 8]
    assert [len(ids) for ids in figures["ids"]] == [n + 8 for n in figures["prompt_tokens"]]
    assert figures["alloc_bytes"] is None  # CPython does not count
    assert figures["reused_tokens"] == [0, figures["prompt_tokens"][0] // 2 * 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"requests": 0}, "requests must be 1..64, got 0"),
        ({"requests": 65}, "requests must be 1..64, got 65"),
        ({"requests": True}, "requests must be 1..64, got True"),
        ({"tokens": 0}, "tokens must be 1..1048576, got 0"),
        ({"tokens": 2_000_000}, "tokens must be 1..1048576"),
        ({"block_tokens": 0}, "block_tokens must be 1..4096, got 0"),
        ({"prompt": ["a"] * 3}, "prompt given 3 times for 2 requests"),
        ({"prompt": 5}, "prompt must be text"),
        ({"shared_prefix": b"a"}, "shared_prefix must be text"),
        ({"top_p": 2}, "top_p must be"),
        ({"chosen": {"sinks": 100}}, "lower sinks below 64"),
        ({"chosen": {"window": 100}}, "lower window to 60"),
    ],
)
def test_bad_options(options, message) -> None:
    with pytest.raises(BadArgument, match=message):
        tell(tiny()[2], **{"requests": 2, "tokens": 2, **options})


def test_words_become_options() -> None:
    words = ["--requests", "2", "--prompt", "a", "--prompt=b", "--shared-prefix", "-x", "--block-tokens", "4"]
    assert command.parse(words) == {
        "requests": 2,
        "prompt": ["a", "b"],
        "shared_prefix": "-x",
        "block_tokens": 4,
    }
    assert command.parse(["--requests", "2", "--prompt", "a"]) == {"requests": 2, "prompt": "a"}
    for words, message in (
        (["--shared-prefix", "a"], "--shared-prefix needs --requests"),
        (["--block-tokens", "4"], "--block-tokens needs --requests"),
        (["--prompt", "a", "--prompt", "b"], "--prompt given 2 times needs --requests"),
    ):
        with pytest.raises(BadArgument, match=message):
            command.parse(words)


ON_THE_PORT = """
import sys, stories
from stories import app, many
from stories.app import open_model
def told(teller):
    parts = []
    figures = teller(lambda b: parts.append(bytes(b)))
    return b"".join(parts), figures
for window, sinks, block_tokens, how in CASES:
    chosen = {"model": sys.argv[1], "window": window, "sinks": sinks}
    begin = "the lion and the"
    texts = [begin + text for text in PROMPTS]
    printed, f = told(lambda write: many.tell(chosen, 3, begin, block_tokens, PROMPTS, write=write, **how))
    how.pop("lock")
    seed = how.pop("seed")
    want = b""
    for i in range(3):
        llama = open_model(**chosen)
        text, _ = told(lambda write: app.tell(llama, texts[i], seed=seed + i, write=write, **how))
        want += b"--- story %d of 3, seed %d ---\\n" % (i + 1, seed + i) + text + b"\\n\\n"
    spare = f["total_blocks"] - f["peak_blocks"]
    print(printed == want, f["alloc_bytes"], spare >= 0, f["reused_tokens"][1:])
"""


def test_each_is_what_it_is_alone(upy, model) -> None:
    """Windows that move past the beginning, sinks that end within a block, blocks of one token and of 64."""
    how = {"tokens": 50, "seed": 5, "lock": True}
    cases = [
        (20, 3, 8, how),
        (5, 0, 1, how),
        (30, 4, 64, {**how, "greedy": True}),
        (17, 16, 4, {**how, "temperature": 2, "top_p": 1, "stop": True}),
    ]
    prompts = [" a", "", " lion that was there and there and there"]
    code = f"CASES = {cases}\nPROMPTS = {prompts}\n{ON_THE_PORT}"
    lines = upy.run(code, [model], heap_bytes=16 << 20).splitlines()
    told, reused = zip(*[line.split(" [") for line in lines])
    assert told == ("True 0 True",) * 4
    # A block of 64 tokens is never full while the prompts begin alike.
    assert [numbers == "0, 0]" for numbers in reused] == [False, False, True, False]


def test_what_one_story_needs_is_all_that_is_loaded(upy, model) -> None:
    code = (
        "import sys, stories\nstories.main(model=sys.argv[1], tokens=3, window=8, report=False)\n"
        "print([m for m in sys.modules if 'paged' in m or 'many' in m or 'shared' in m])"
    )
    assert upy.run(code, [model]).endswith("[]\n")


def test_blocks_for_all_of_them() -> None:
    g = PagedGeometry(1, 1, 1, 8, window=40, sinks=4, block_tokens=8)
    alike, apart = [1, *range(20)], [2] * 21
    assert shared.common([alike, alike]) == 20
    assert shared.common([alike, [*alike, 5]]) == 20
    assert shared.common([alike, apart]) == 0
    assert shared.blocks(g, [alike, alike], 12, 2) == 2 + 2 * 2
    assert shared.blocks(g, [alike, alike], 13, 2) == 2 + 2 * 3
    assert shared.blocks(g, [alike, apart], 12, 2) == 2 * 4
    assert shared.blocks(g, [alike, apart, apart], 12, 2) == 2 * 4
    # All that a table can hold, when windows have moved on.
    assert shared.blocks(g, [alike, alike], 1000, 2) == 2 * g.pages


# --- asyncio --------------------------------------------------------------------------------------

TEXTS = ["the lion and the" + end for end in ("", " a", "", " lion", " the")]
HOW = {"tokens": 8, "seed": 3, "block_tokens": 4, "window": 30, "sinks": 4}


@cache
def expected() -> list[bytes]:
    return [alone(tiny()[2], text, 3 + i, tokens=8) for i, text in enumerate(TEXTS)]


def test_asyncio_tasks_on_cpython() -> None:
    found: dict[int, bytes] = {}

    def done(number, one, model) -> None:
        parts: list[bytes] = []
        one.write(Tokenizer(model.image), lambda b: parts.append(bytes(b)))
        found[number] = b"".join(parts)

    figures, tokens = asyncio.run(
        storytellers.tell(TEXTS, 2, done=done, model=tiny()[2], kernels="plain", **HOW)
    )
    assert [found[i] for i in range(len(TEXTS))] == expected()
    assert len(tokens) == len(TEXTS)
    assert figures["reused_tokens"][0] == 0
    assert min(figures["reused_tokens"][1:]) >= 4
    assert figures["heartbeats"] > 8 * len(TEXTS) / 2
    assert figures["peak_blocks"] <= figures["total_blocks"]


def test_asyncio_tasks_on_the_board(upy, model) -> None:
    code = f"""
import asyncio, sys, storytellers
from stories.tokenizer import Tokenizer
def done(number, one, llama):
    parts = []
    one.write(Tokenizer(llama.image), lambda b: parts.append(bytes(b)))
    print(number, b"".join(parts))
figures, tokens = asyncio.run(storytellers.tell({TEXTS}, 2, done=done, model=sys.argv[1], **{HOW}))
print(figures)
"""
    *lines, figures = upy.run(code, [model]).splitlines()
    found = dict(line.split(" ", 1) for line in lines)
    assert [ast.literal_eval(found[str(i)]) for i in range(len(TEXTS))] == expected()
    assert min(ast.literal_eval(figures)["reused_tokens"][1:]) >= 4
