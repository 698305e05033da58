"""Text to tokens on a board: the tokens of the quadratic algorithm, in bounded memory and n log n steps."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import encoding_reference
import pytest
import qemu_fixtures
import stories_cases  # noqa: F401  (puts boards/apps and device/ on the path)
import texts
from encoding_reference import NoToken
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import encoding
from stories.app import tell
from stories_fixtures import llama, tiny

from commandline.errors import FellShort
from kvlab import boards, cli, many, story
from kvlab.models.image import Image, pack_tokenizer
from kvlab.models.tokenizer import Tokenizer as HostTokenizer
from kvlab.paths import BOARDS
from mpy_kv.errors import BadArgument

DEVICE = Path(__file__).parent / "device"
MODEL = BOARDS / "models" / "stories.mkvm"

Tokens = list[tuple[float, bytes]]

CHARACTERS = [c.encode() for c in "abcde \né€😀"]
# What a text is made of: characters that have a token, that mostly have none, and broken UTF-8.
PIECES = [*CHARACTERS, b"Z", "ü".encode(), b"\x80", b"\xe2\x82", b"<0x41>"]


def vocabulary(seed: int) -> Tokens:
    """Random tokens: merges of merges with ties, of bytes too, some of which have none, some twice."""
    rng = random.Random(seed)
    pieces = [b"<unk>", b"<s>", b"</s>"]
    pieces += [b"<0x%02X>" % byte for byte in range(256) if rng.random() < rng.choice([0.1, 1])]
    known = [c for c in CHARACTERS if rng.random() < 0.8] or [b"a"]
    if rng.random() < 0.5:
        known += [b"<0x%02X>" % byte for byte in b"Z\x80\xe2" if b"<0x%02X>" % byte in pieces]
    merges = []
    for _ in range(rng.randrange(60)):
        joined = rng.choice(known) + rng.choice(known)
        if len(joined) <= 24:
            known.append(joined)
            merges.append(joined)
    pieces += [c for c in CHARACTERS if c in known]
    pieces += merges
    if rng.random() < 0.3:
        rng.shuffle(pieces)
    scores = rng.choice([1, 4, 1000])  # all alike, or some
    return [(-float(rng.randrange(scores)), piece) for piece in pieces]


def text(seed: int, tokens: Tokens) -> bytes:
    """Of few pieces, so that they come again; most of them texts of tokens, so that these merge."""
    rng = random.Random(seed)
    known = [piece for _, piece in tokens if not piece.startswith(b"<")]
    few = [
        rng.choice(PIECES if rng.random() < 0.4 or not known else known) for _ in range(rng.randrange(1, 9))
    ]
    return b"".join(rng.choice(few) for _ in range(rng.choice([0, 1, 2, 5, 20, 50])))


def host(tokens: Tokens) -> HostTokenizer:
    longest = max(len(piece) for _, piece in tokens)
    return HostTokenizer("--tokenizer", longest, tuple(t for _, t in tokens), tuple(s for s, _ in tokens))


def want(tokens: Tokens, data: bytes) -> list[int] | str:
    try:
        return encoding_reference.encode(tokens, data)
    except NoToken as error:
        said = "prompt has byte 0x%02x, for which none of the %d tokens stands: use plainer text"
        return said % (error.args[0], len(tokens))


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30))
@settings(max_examples=150, deadline=None)
def test_tokens_are_those_of_the_quadratic_algorithm(of_tokens: int, of_text: int) -> None:
    """From an image in place, from a file, and from one whose tables find no room."""
    tokens = vocabulary(of_tokens)
    data = text(of_text, tokens)
    whole = host(tokens)
    expected = want(tokens, data)
    assert texts.run(pack_tokenizer(whole).hex(), [data.hex()]) == [[expected]] * 3
    if isinstance(expected, list):
        assert whole.encode(data, bos=False) == expected


@given(st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_str_is_encoded(said: str) -> None:
    section = texts.Section(pack_tokenizer(tiny()[1]), True, True)
    tokens = list(zip(tiny()[1].scores, tiny()[1].tokens))
    assert encoding.encode(section, said, False) == encoding_reference.encode(tokens, said)


def cases(n: int, ways: int = 3) -> tuple[list[list[object]], list[list[object]]]:
    """What device/texts.py is given, and what it prints."""
    given, wanted = [], []
    for seed in range(n):
        tokens = vocabulary(seed)
        some = [text(8 * seed + i, tokens) for i in range(8)]
        given.append([pack_tokenizer(host(tokens)).hex(), [data.hex() for data in some]])
        wanted.append([[want(tokens, data) for data in some]] * ways)
    assert any(isinstance(each, str) for case in wanted for each in case[0])  # some are refused
    assert max(len(each) for case in wanted for each in case[0]) > 30
    return given, wanted


@pytest.mark.parametrize(("fixture", "n", "ways"), [("upy", 15, 3), ("qemu", 5, 1), ("qemu_riscv", 2, 1)])
def test_native_code_gives_the_same_tokens(fixture: str, n: int, ways: int, request, tmp_path: Path) -> None:
    given, wanted = cases(n, ways)
    file = tmp_path / "cases"
    file.write_text("".join(json.dumps(case) + "\n" for case in given))
    said = request.getfixturevalue(fixture).run(DEVICE / "texts.py", [file, ways])
    assert [json.loads(line) for line in said.splitlines()] == wanted


def test_a_port_without_an_emitter_gives_the_same_tokens(upy, tmp_path: Path) -> None:
    given, wanted = cases(5)
    file = tmp_path / "cases"
    file.write_text("".join(json.dumps(case) + "\n" for case in given))
    plain = "import sys\nfrom mpy_kv import port\nport.EMITTER = False\nsys.path.append(sys.argv[2])\n"
    plain += "import texts\ntexts.main(sys.argv[1])\n"
    plain += "assert 'stories.encoding.viper' not in sys.modules\n"
    said = upy.run(plain, [file, DEVICE])
    assert [json.loads(line) for line in said.splitlines()] == wanted


def test_text_of_more_slots_than_a_halfword_counts() -> None:
    tokens = host([(0.0, b"<s>"), (0.0, b"ab"), (0.0, b"a"), (0.0, b"b")])
    section = texts.Section(pack_tokenizer(tokens), True, True)
    assert encoding.encode(section, b"ab" * 35000, False) == [1] * 35000


@pytest.mark.parametrize("longest", [255, 256, 512])
def test_a_token_of_many_slots(longest: int) -> None:
    """Merged from its left end or in twos; of 256 and more the length of a run takes two bytes."""
    lengths = [1, 2, 4, 8, 16, 32, 64, 128]
    for more in (range(129, longest + 1), [256]):
        tokens = [(0.0, b"<s>"), *((0.0, b"a" * n) for n in (*lengths, *more))]
        section = texts.Section(pack_tokenizer(host(tokens)), True, True)
        data = b"a" * (longest + 3)
        assert encoding.encode(section, data, False) == encoding_reference.encode(tokens, data)


# Of the shipped model and of one in which everything merges with everything: instructions, bytes that were
# allocated, tokens. A second time, when the modules are there.
COSTS = """
import gc, json, sys
sys.path.append(sys.argv[1])
import texts
from instructions import count
from micropython import mem_total
from mpy_kv.errors import BadArgument
from stories import encoding
from stories.image import Image

SENTENCE = "Once upon a time there was a girl named Lily who lived with her mom in a house by the park. "
gc.threshold(-1)
with open(sys.argv[2], "rb") as file:
    real = Image(file.read(), False)
with open(sys.argv[3], "rb") as file:
    ties = texts.Section(file.read(), True, True)
found = []
for image, text in ((real, SENTENCE * 15), (ties, "a" * 1500)):
    encoding.encode(image, text[:9], True)
    for n in (40, 400, 1500):
        gc.collect()
        part = text[:n]
        cost = count(encoding.encode, image, part, True)
        gc.collect()
        before = mem_total()
        tokens = encoding.encode(image, part, True)
        found.append([cost, mem_total() - before, len(tokens)])
print(json.dumps(found))
"""
LENGTHS = (40, 400, 1500)


@pytest.fixture(scope="module")
def costs(qemu, tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    section = tmp_path_factory.mktemp("ties") / "section"
    tokens = [(0.0, b"<s>"), (0.0, b"</s>"), *((0.0, b"a" * n) for n in range(1, 33))]
    section.write_bytes(pack_tokenizer(host(tokens)))
    found: list[list[int]] = json.loads(qemu.run(COSTS, [DEVICE, MODEL, section]))
    return found


@pytest.mark.parametrize("at", [0, 3], ids=["a story", "ties"])
def test_the_cost_grows_as_n_log_n(at: int, costs) -> None:
    """The quadratic algorithm takes 12,000,000 instructions a character."""
    each = [cost / (n * math.log2(n)) for (cost, _, _), n in zip(costs[at : at + 3], LENGTHS)]
    assert each[1] <= 1.05 * each[0]
    assert each[2] <= 1.05 * each[1]
    assert costs[at + 2][0] <= 40_000 * LENGTHS[2]


@pytest.mark.parametrize("at", [0, 3], ids=["a story", "ties"])
def test_a_character_takes_eight_bytes(at: int, costs) -> None:
    """And each token the four of a list's item. Whatever was ever allocated counts, also what was dropped."""
    for (_, taken, tokens), n in zip(costs[at : at + 3], LENGTHS):
        assert taken <= 7 * n + 4 * tokens + 960
    _, taken, tokens = costs[at + 2]
    assert taken <= 8 * LENGTHS[2] + 4 * tokens


def test_native_code_stays_where_its_memory_is_never_given_back(monkeypatch) -> None:
    """On an ESP32 each loading would take more of it."""

    class Viper:
        __name__ = "stories.encoding.viper"

    kept: list[str] = []
    for name, value in (("kept", kept), ("load_module", lambda name: Viper)):
        monkeypatch.setattr(encoding, name, value)
    monkeypatch.setattr(encoding.port, "EMITTER", True)
    for platform, after in (("rp2", []), ("esp32", [Viper.__name__]), ("esp32", [Viper.__name__])):
        monkeypatch.setattr(encoding.sys, "platform", platform)
        section = texts.Section(pack_tokenizer(tiny()[1]), True, True)
        assert encoding._open(section, encoding.array("i", bytes(4 * 19)))[0] is Viper
        assert kept == after


STAYS = """
import sys
from mpy_kv.transient import kept, load_module, unload_all
kept.append("stories.encoding.plain")
plain = load_module("stories.encoding.plain")
load_module("stories.encoding")
unload_all()
print("stories.encoding" in sys.modules, load_module("stories.encoding.plain") is plain)
"""


def test_what_is_kept_is_not_loaded_anew(upy) -> None:
    assert upy.run(STAYS) == "False True\n"


def refused(said: str, call: Callable[[], object]) -> None:
    with pytest.raises(BadArgument) as error:
        call()
    assert str(error.value) == said


def test_a_prompt_that_finds_no_room_is_named(monkeypatch) -> None:
    """Before it has become tokens by its bytes, after that by its tokens."""
    section = texts.Section(pack_tokenizer(tiny()[1]), True, True)
    monkeypatch.setattr(encoding, "free_bytes", lambda: 900)
    made = encoding._numbers
    for room in range(2):
        sizes = iter([40] * room + [0])
        monkeypatch.setattr(
            encoding, "_numbers", lambda n, sizes=sizes: made(n) if next(sizes) else no_room()
        )
        said = "prompt of 41 bytes takes 294 more to become tokens, and 900 bytes are free: shorten it"
        refused(said, lambda: encoding.encode(section, "e" * 41, True))


def no_room() -> None:
    raise MemoryError


def test_a_prompt_that_a_cache_has_no_room_for_is_named() -> None:
    """With its tokens and the limit, before any is run."""
    model = llama(tiny()[2], capacity=9)
    said = "prompt has 12 tokens; the cache has room for 9 of 9: shorten it"
    refused(said, lambda: tell(model, prompt="e" * 10, write=len))
    assert model.cache.length == 0
    told = tell(model, prompt="e" * 6, tokens=1, greedy=True, stop=True, write=len)
    assert (told["prompt_tokens"], model.cache.length) == (8, 9)


@pytest.mark.parametrize("board", ["rp2040", pytest.param("qemu_arm", marks=pytest.mark.exhaustive)])
def test_a_prompt_as_long_as_the_context_fits_a_pico(board: str) -> None:
    """At the window that it has by itself. The next token would be the 513th."""
    if board == "qemu_arm":
        qemu_fixtures.needed_by(board)
    image = MODEL.read_bytes()
    shipped = Image.parse(image)
    context = shipped.header.config.seq_len
    prompt = ("Once upon a time there was a girl named Lily who lived with her mom by the park. " * 20)[:1594]
    assert len(shipped.tokenizer.encode(prompt)) == context
    told = story.tell(boards.load(board), image, story.Telling(prompt=prompt, tokens=1, greedy=True))
    assert (told.figures["window"], told.figures["position"]) == (256, context + 1)
    assert told.figures["text"].startswith(prompt.strip())


@pytest.mark.parametrize("bytes_", [8000, 60000])
def test_a_prompt_that_is_too_long_for_a_pico_is_named(bytes_: int, capfd) -> None:
    line = ["stories", "--board", "rp2040", "--model", str(MODEL), "--prompt", "a" * bytes_]
    assert cli.main(line) == 2
    said = capfd.readouterr().err
    assert f"--prompt of {bytes_} bytes takes {7 * bytes_ + 7} more to become tokens, and" in said
    assert said.endswith("bytes are free: shorten it\n")


NO_WORD = "does not fit: no word"


def test_a_long_prompt_is_blamed_where_it_may_be_the_cause() -> None:
    """The board had no room, and could not say for what."""
    report = SimpleNamespace(fits=False, outcome="does not fit", stdout="", stderr="", verdict=NO_WORD)
    for telling, more in (
        (story.Telling(prompt="a" * 1999), ""),
        (story.Telling(prompt="é" * 1000), ", or shorten --prompt, of 2,000 bytes"),
        (many.Telling(prompts=("b", "a" * 2000), shared_prefix="c"), ", or shorten --prompt, of 2,001 bytes"),
    ):
        with pytest.raises(FellShort) as error:
            story.judge(report, telling)
        assert str(error.value) == f"{NO_WORD}; lower {telling.ROOM}{more}"


@pytest.mark.exhaustive
def test_a_token_of_a_prompt_costs_what_a_told_one_does_on_a_pico() -> None:
    """All that comes with it: modules loaded, text made tokens, garbage collected."""
    qemu_fixtures.needed_by("qemu_arm")
    board, image = boards.load("qemu_arm"), MODEL.read_bytes()

    def instructions(prompt: str, tokens: int) -> int:
        telling = story.Telling(prompt=prompt, tokens=tokens, greedy=True)
        return int(story.tell(board, image, telling).figures["instructions"])

    prompt = ("Once upon a time there was a girl named Lily who lived with her mom by the park. " * 5)[:400]
    more = len(Image.parse(image).tokenizer.encode(prompt)) - 1
    start = instructions("", 1)
    assert instructions(prompt, 1) - start <= 1.1 * (instructions("", 1 + more) - start)
