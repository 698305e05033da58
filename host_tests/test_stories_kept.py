"""What a story may keep: each element type and policy, by the same options of the app and of kvlab."""

from __future__ import annotations

import json
import re
import tempfile
from array import array
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import app, many
from stories_fixtures import tiny

from kvlab import boards, cli, paths, shipped, story
from kvlab.element_types import HELD
from mpy_kv import Geometry
from mpy_kv.errors import BadArgument
from mpy_kv.eviction.tokens import POLICIES
from mpy_kv.token_eviction import BudgetCache
from unix_port import port

SAMPLED = shipped.told("stories")
TOKENS = 150
BUDGET = 64
PROMPT = "Once upon a time there was a little dragon"

# With these a model of this size tells on; a plain sum of attention keeps what was there first, and ruins it.
SANE = sorted(set(POLICIES) - {"lfu"})

# Of the last words, how many differ at least: a story goes on, a ruined one repeats itself.
LEAST_NEW = 0.4

# And how many the same model says elsewhere, with all that it remembers.
LEAST_KNOWN = 0.8


# Every telling of the shipped model in this file.
SHORT = ("--tokens", 2)
OF_CODEC = {codec: ("--codec", codec, "--window", BUDGET) for codec in HELD}
OF_POLICY = {policy: ("--policy", policy, "--budget", BUDGET) for policy in POLICIES}
OF_BOTH = {
    codec: ("--policy", "window-lru", "--budget", BUDGET, "--codec", codec)
    for codec in ("float16", "int8-int4", "sparse")
}
ALL = ()
REFERENCES = [
    ("--codec", codec, "--window", 20, "--greedy", "--tokens", 6) for codec in ("float32", "float16")
]
RINGS = [("--window", BUDGET - 4, *more) for more in ((), ("--codec", "int4"))]
AS_RINGS = [("--policy", "window", "--budget", BUDGET, *more) for more in ((), ("--codec", "int4"))]
PEAK = ("--policy", "lru-peak", *SHORT)
PEAKS = [PEAK, (*PEAK, "--window", 40, "--sinks", 4), (*PEAK, "--budget", 44, "--sinks", 4)]
COMPRESSED = ("--policy", "lru-peak", "--budget", BUDGET, "--compress", "0.5", *SHORT)
COMMAND = (
    "--codec",
    "int8-int4",
    "--policy",
    "lru-attention",
    "--budget",
    48,
    "--compress",
    "0.5",
    "--tokens",
    70,
)
TELLINGS = [
    *(*OF_CODEC.values(), *OF_POLICY.values(), *OF_BOTH.values(), ALL, *REFERENCES, *RINGS, *AS_RINGS),
    *(*PEAKS, COMPRESSED, COMMAND),
]

TELL = """
import gc, json, sys, stories
from stories.command import parse
with open(sys.argv[1], "rb") as file:
    model = file.read()
with open(sys.argv[2]) as file:
    tellings = json.load(file)
for words in tellings:
    gc.collect()
    figures = stories.main(model=model, report=False, **parse(words))
    print("@@@" + json.dumps(figures) + "@@@")
"""


def run(model: Path, lines: Sequence[Sequence[object]]) -> list[tuple[str, dict[str, Any]]]:
    """(text, figures) of each line of options, in one run of the unix port: what it loads is loaded once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.json"
        path.write_text(json.dumps([[str(word) for word in line] for line in lines]))
        done = port.run(["-c", TELL, str(model), str(path)], heap_bytes=3 << 20, timeout_s=300)
    assert done.status == 0, done.stderr
    parts = done.stdout.split("@@@")
    told = [
        (text.strip(), json.loads(figures)) for text, figures in zip(parts[::2], parts[1::2], strict=False)
    ]
    assert len(told) == len(lines)
    return told


@cache
def tellings() -> dict[tuple[object, ...], tuple[str, dict[str, Any]]]:
    usual = ("--prompt", PROMPT, "--seed", 5, "--tokens", TOKENS)
    return dict(zip(TELLINGS, run(paths.SHIPPED, [(*usual, *words) for words in TELLINGS]), strict=True))


def told(*words: object) -> tuple[str, dict[str, Any]]:
    """(text, figures) of the shipped model on the unix port, by its fastest kernels."""
    return tellings()[words]


def common(a: str, b: str) -> int:
    """Characters that both begin with."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def assert_sane(text: str) -> None:
    words = text.split()[-30:]
    assert len(words) >= 20
    assert len(set(words)) >= LEAST_NEW * len(words), text
    found = [word.strip('.,!?"').lower() in known() for word in words]
    assert sum(found) >= LEAST_KNOWN * len(words), text


@cache
def known() -> set[str]:
    """Words of the texts that ship with the model."""
    return {word.lower() for word in re.findall(r"[\w']+", SAMPLED.read_text())}


@pytest.mark.parametrize("codec", OF_CODEC)
def test_every_element_type_tells(codec: str) -> None:
    text, figures = told(*OF_CODEC[codec])
    assert (figures["codec"], figures["policy"], figures["budget"]) == (codec, "window", BUDGET + 4)
    assert figures["alloc_bytes"] == 0
    assert figures["evicted_tokens"] == figures["position"] - figures["budget"] > 80
    assert_sane(text)


def test_float32_tells_for_reference() -> None:
    """Its kernels are plain, and allocate: the figures say so."""
    (text, figures), (same, _) = (told(*words) for words in REFERENCES)
    assert figures["alloc_bytes_per_token"] > 0
    assert text == same


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_tells(policy: str) -> None:
    text, figures = told(*OF_POLICY[policy])
    assert (figures["codec"], figures["policy"], figures["budget"]) == ("int8", policy, BUDGET)
    assert figures["alloc_bytes"] == 0
    assert figures["evicted_tokens"] == figures["position"] - BUDGET > 80
    # Before anything leaves it is the story of one who keeps all.
    assert common(text, told(*ALL)[0]) >= 140
    if policy in SANE:
        assert_sane(text)


@pytest.mark.parametrize("codec", OF_BOTH)
def test_policies_take_other_element_types(codec: str) -> None:
    text, figures = told(*OF_BOTH[codec])
    assert (figures["codec"], figures["evicted_tokens"]) == (codec, figures["position"] - BUDGET)
    assert figures["alloc_bytes"] == 0
    assert_sane(text)


def test_a_window_policy_is_the_ring() -> None:
    """To the byte, sinks included; int4 can have it, too."""
    for words, of_policy_words in zip(RINGS, AS_RINGS, strict=True):
        ring, figures = told(*words)
        same, of_policy = told(*of_policy_words)
        assert same == ring
        for name in ("window", "sinks", "budget", "policy", "buffer_bytes", "evicted_tokens"):
            assert of_policy[name] == figures[name], name


def test_a_policy_without_a_budget_has_the_size_of_the_window() -> None:
    for words, sizes in zip(PEAKS, ((256, 0, 256), (40, 4, 44), (40, 4, 44)), strict=True):
        _, figures = told(*words)
        assert (figures["window"], figures["sinks"], figures["budget"]) == sizes


def test_a_prompt_is_compressed_once() -> None:
    _, figures = told(*COMPRESSED)
    n = figures["prompt_tokens"]
    left = n - (n + 1) // 2
    assert figures["compressed_tokens"] == figures["evicted_tokens"] == left > 3
    assert figures["alloc_bytes"] == 0
    _, figures = told(*PEAKS[0])
    assert (figures["compressed_tokens"], figures["evicted_tokens"]) == (None, 0)


def filled(tokens: int) -> BudgetCache:
    cache = BudgetCache(Geometry(1, 1, 1, 8, window=20, sinks=0), kv_shift=4, policy="lru-peak")
    k, out = array("h", range(8)), array("h", bytes(16))
    for _ in range(tokens):
        cache.append(0, k, k)
        cache.attend(0, k, out)
        cache.commit()
    return cache


def test_a_ratio_may_be_a_pair() -> None:
    """So that a program without floats can name it."""
    for part, whole in ((1, 2), (500, 1000), (1, 3), (7, 8), (5, 5), (1, 1000)):
        pair, number = filled(13), filled(13)
        assert pair.compress((part, whole)) == number.compress(part / whole)
        assert pair.visible() == number.visible()
        assert pair.check() == 0
    for bad in ((0, 1), (2, 1), (-1, 2), (1, 2.0), (1, 0), (1,), (1, 2, 3), ("1", 2), True):
        with pytest.raises(BadArgument, match="^keep_ratio must be above 0 and at most 1"):
            filled(3).compress(bad)


REFUSED = [
    (["--codec", "int4", "--policy", "lfu"], "--codec int4 seals blocks of 16 tokens, of which policy lfu"),
    (["--policy", "lru-peak", "--budget", "65"], "--budget 65 is more than the 64 tokens the model was"),
    (["--policy", "window", "--budget", "65"], "--budget 65 is more than the 64 tokens the model was"),
    (
        ["--policy", "lfu", "--budget", "4", "--sinks", "4"],
        "--budget 4 leaves no token beside 4 sinks: at least 5",
    ),
    (["--policy", "window", "--budget", "4"], "--budget 4 leaves no token beside 4 sinks: at least 5"),
    (["--budget", "20"], "--budget 20 needs --policy: one of heavy-hitters, lfu, "),
    (
        ["--policy", "lfu", "--budget", "20", "--window", "16"],
        "--budget 20 holds window and sinks together: leave",
    ),
    (["--policy", "lfu", "--window", "600"], "lower --window to 64"),
    (["--compress", "0.5"], "--compress needs --policy: one that weighs tokens"),
    (["--policy", "window", "--compress", "0.5"], "--compress needs --policy: one that weighs tokens"),
    (["--policy", "lfu", "--compress", "0"], "--compress must be 0.001..1.000, got '0'"),
    (["--requests", "2", "--policy", "lfu"], "--policy"),
    (["--requests", "2", "--budget", "20"], "--budget"),
    (["--requests", "2", "--compress", "0.5"], "--compress"),
    (["--requests", "2", "--codec", "int4"], "--codec 'int4' seals blocks of one sequence"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=lambda value: "_".join(value)[:40])
def test_what_cannot_be_is_one_line_and_status_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, figures = tmp_path / "model", tmp_path / "figures"
    model.write_bytes(tiny()[2])
    with pytest.raises(SystemExit) as end:
        app.main(["--model", str(model), "--json", str(figures), *words])
    shown = capsys.readouterr()
    assert end.value.code == 2
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert (shown.out, figures.exists()) == ("", False)


def test_requests_take_other_element_types(tmp_path: Path) -> None:
    """Each story is what it is alone."""
    model = tmp_path / "model"
    model.write_bytes(tiny()[2])
    usual = ("--tokens", 25, "--window", 20, "--prompt", "a")
    several = ("--requests", 2, "--block-tokens", 8)
    kinds = ("float16", "sparse", "int8-int4")
    lines = [(*usual, "--codec", kind, *more) for kind in kinds for more in (several, ("--seed", 2))]
    found = run(model, lines)
    for kind, (text, figures), (alone, of_alone) in zip(kinds, found[::2], found[1::2], strict=True):
        assert (figures["codec"], figures["alloc_bytes_per_token"]) == (kind, 0)
        assert of_alone["evicted_tokens"] > 0
        assert text.split("seed 2 ---\n")[1].strip() == alone


def test_names_that_are_none() -> None:
    for policy in ("lru", "", 3, ["lfu"]):
        with pytest.raises(BadArgument, match="^policy .* is unknown; known: heavy-hitters, "):
            app.open_model(tiny()[2], policy=policy)
    with pytest.raises(BadArgument, match="^budget and sinks must be whole numbers"):
        app.open_model(tiny()[2], policy="lfu", budget=1.5)
    with pytest.raises(BadArgument, match="^policy is not for several stories"):
        many.open_arena(["a"], 5, model=tiny()[2], policy="lfu")


LOADED = """
import json, sys, stories
from stories.command import parse
stories.main(model=sys.argv[1], report=False, **parse(sys.argv[2:]))
print("@@@" + json.dumps(sorted(sys.modules)))
"""

FOR_A_MOMENT = ("inspect", "params", "plain", "raise_errors", "selfcheck", "selfcheck_float16", "setup")

OPTIONAL = (
    "mpy_kv.token_eviction",
    "mpy_kv.eviction",
    "mpy_kv.per_layer",
    "mpy_kv.paged",
    "mpy_kv.int4_blocks",
    "stories.many",
)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), ()),
        (("--policy", "window", "--budget", 20), ("mpy_kv.eviction",)),
        (("--policy", "lru-peak", "--compress", "0.5"), ("mpy_kv.token_eviction", "mpy_kv.eviction")),
        (("--codec", "int4"), ("mpy_kv.int4_blocks",)),
        *((("--codec", name), ()) for name in ("float16", "int8-int4", "sparse")),
    ],
    ids=["nothing asked for", "window", "policy", "int4", "float16", "int8-int4", "sparse"],
)
def test_what_nobody_asks_for_is_not_loaded(
    words: tuple[object, ...], wanted: tuple[str, ...], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    model.write_bytes(tiny()[2])
    line = ["--tokens", "2", "--window", "20"] if "--budget" not in words else ["--tokens", "2"]
    done = port.run(["-c", LOADED, str(model), *line, *map(str, words)], heap_bytes=3 << 20, timeout_s=60)
    assert done.status == 0, done.stderr
    loaded = json.loads(done.stdout.split("@@@")[1])
    assert {name for name in OPTIONAL if name in loaded} == set(wanted)
    # Nor what was needed for a moment, nor what that needed.
    assert "stories.budgets" not in loaded
    parts = [name.split(".") for name in loaded]
    assert [name for name in parts if name[0] == "mpy_kv" and name[-1] in FOR_A_MOMENT] == []


# --- kvlab ---------------------------------------------------------------------------------------


@pytest.fixture
def kvlab(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """`kvlab(*words)`: exit status, stderr, figures or None of `kvlab stories` with the shipped model."""

    def run(*words: object) -> tuple[int, str, dict[str, Any] | None]:
        path = tmp_path / "told.json"
        path.unlink(missing_ok=True)
        status = cli.main(["stories", *map(str, words), "--json", str(path)])
        err = capfd.readouterr().err
        return status, err, json.loads(path.read_text()) if path.exists() else None

    return run


def test_the_command_tells_as_the_app(kvlab) -> None:
    status, err, figures = kvlab("--seed", 5, "--prompt", PROMPT, *COMMAND)
    assert (status, err) == (0, "")
    assert (figures["codec"], figures["policy"], figures["budget"]) == ("int8-int4", "lru-attention", 48)
    assert figures["compressed_tokens"] > 3
    assert figures["alloc_bytes_per_token"] == 0
    assert figures["evicted_tokens"] == figures["position"] - 48
    assert figures["text"] == told(*COMMAND)[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--codec", "int4", "--policy", "lru-peak"], "--codec int4 seals blocks of 16 tokens"),
        (["--policy", "lru-peak", "--budget", 513], "--budget 513 is more than the 512 tokens"),
        (["--requests", 2, "--policy", "lfu"], "--policy: is for one story, as requests share blocks"),
        (["--requests", 2, "--budget", 40], "--budget: is for one story, as requests share blocks"),
        (["--requests", 2, "--compress", 0.5], "--compress: is for one story, as requests share blocks"),
        (["--policy", "lru"], "'--policy': 'lru' is not one of 'window', 'lru-attention'"),
    ],
    ids=lambda value: "_".join(map(str, value))[:40],
)
def test_the_command_names_the_option_to_change(kvlab, words: list[object], message: str) -> None:
    status, err, figures = kvlab(*words)
    assert (status, figures) == (2, None)
    assert message in err
    assert err.count("\n") == 1


def test_several_stories_take_another_element_type(kvlab) -> None:
    """Each is what it is alone, which the command compares."""
    words = ("--requests", 2, "--codec", "int8-int4", "--tokens", 12, "--block-tokens", 8)
    status, err, figures = kvlab("--board", "rp2350", "--shared-prefix", PROMPT, *words)
    assert status == 0, err
    assert (figures["codec"], figures["equal_to_single"]) == ("int8-int4", True)
    assert figures["reused_tokens"] == 8
    assert figures["alloc_bytes_per_token"] == 0
    one = Geometry(5, 8, 4, 8, codec="int8-int4", window=figures["stories"][0]["prompt_tokens"] + 8, sinks=4)
    assert figures["single_buffer_bytes"] == 2 * one.bytes()


def test_the_smallest_heap_is_that_of_the_same_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def smallest(script: Path, arguments: list[str], *_rest: object, **_options: object) -> int:
        found[:] = arguments
        return 123_456

    monkeypatch.setattr(story.launcher, "smallest_heap", smallest)
    told = story.Told({"window": 40, "sinks": 0}, SimpleNamespace(heap_peak_bytes=None))
    asked = story.Telling(tokens=500, policy="lfu", budget=40, codec="float16", compress="0.5")
    peak = story.with_peak(boards.load("rp2040"), paths.SHIPPED.read_bytes(), asked, told)
    assert peak.figures["heap_peak_bytes"] == 123_456
    pairs = dict(zip(found[::2], found[1::2]))
    assert (pairs["--policy"], pairs["--budget"], pairs["--codec"]) == ("lfu", "40", "float16")
    assert pairs["--tokens"] == "8"
    assert not {"--window", "--sinks", "--compress"} & set(found)


def test_the_report_says_what_compress_did_and_which_kernels_allocate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from kvlab.commands import stories

    f: dict[str, Any] = dict.fromkeys(("heap_peak_bytes", "instructions", "machine_code_bytes"))
    f |= {"tokens": 5, "seconds": 0.1, "kernels": "viper", "kv_bytes": 1, "buffer_bytes": 2}
    f |= {"policy": "lfu", "window": 9, "sinks": 0, "evicted_tokens": 3, "compressed_tokens": 3}
    f |= {"position": 6, "context_tokens": 512, "heap_live_bytes": 4, "heap_limit_bytes": 5}
    f |= {"codec": "float32", "cache_kernels": "plain", "alloc_bytes_per_token": 7, "notes": []}
    f |= {"reused_tokens": 0, "saved_bytes": None}
    f |= {"tokens_per_s": None, "modelled": "no figure: not counted"}
    stories.show(boards.load("rp2040"), story.Told(f, SimpleNamespace()))
    shown = capsys.readouterr().out
    assert "no figure: not counted" in shown
    assert "3 tokens dropped once the prompt was read" in shown
    assert "7 B, by plain kernels" in shown
    f |= {"compressed_tokens": None, "codec": ["int8", "sparse"], "alloc_bytes_per_token": 0}
    f |= {"tokens_per_s": 25.31, "first_word_s": 8.4, "first_word_remembered_s": 1.3}
    f |= {"prompt_tokens_per_s": 28.1, "modelled": "125 MHz"}
    stories.show(boards.load("rp2040"), story.Told(f, SimpleNamespace()))
    shown = capsys.readouterr().out
    pace = "first word after 8.4 s (1.3 s once its kernels are remembered), a prompt's 28.1 tokens/s: 125 MHz"
    assert pace in " ".join(shown.split())
    assert "compressed" not in shown
    assert "element types" in shown
    assert "by plain kernels" not in shown
