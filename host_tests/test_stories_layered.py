"""A step of the model one layer at a time: the bits of one at once, wherever it is given up."""

from __future__ import annotations

import json
from itertools import product

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from known_cases import DEVICE
from stories import layered
from stories.layered import Layered
from stories_fixtures import SHAPES, llama, tiny, typed
from tiny_model import write_tiny

from kvlab import shipped
from kvlab.element_types import HELD, SEALED, USUAL
from kvlab.models.image import convert
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.tokenizer import read_tokenizer
from mpy_kv.errors import BadArgument, CacheFull, StepError

STEPS = DEVICE / "layered_steps.py"
IDS = [1, 40, 77, 3, 250, 9, 10, 11, 12, 13, 14, 15, 16, 17]


def take(step: Layered, token: int, logits: bool = True) -> int:
    step.begin(token, logits)
    calls = 1
    while step.next():
        calls += 1
    step.commit()
    return calls


def same(image: bytes, tokens: list[int], **context) -> int:
    """Calls of a step. AssertionError where bits differ."""
    at_once, apart = llama(image, **context), llama(image, **context)
    step = Layered(apart)
    calls = 0
    for token in tokens:
        at_once.step(token)
        calls = max(calls, take(step, token))
        assert bytes(apart.logits) == bytes(at_once.logits)
    assert bytes(apart.cache.buffer) == bytes(at_once.cache.buffer)
    return calls


@pytest.mark.parametrize("shape", SHAPES)
def test_the_bits_of_a_step_at_once(shape: str) -> None:
    _, _, image = tiny(shape)
    same(image, IDS, window=8, sinks=2)
    same(image, IDS[:3], window=8, mapped=False, row_buffer_bytes=1)


def test_element_types_in_turns() -> None:
    image = typed("int8-int4", "float16")
    same(image, IDS[:5], window=8, sinks=1, codec=["int8-int4", "float16"])


SEALS = "no multiple of 32"  # whose classifier is one call


def test_blocks_are_sealed_layer_by_layer() -> None:
    """In the step that fills a block behind another, and by no more calls than there are layers."""
    image = tiny(SEALS)[2]
    assert same(image, [1, *range(3, 50)], window=20, sinks=1, codec="int4") == 2 + 1 + 1 + 2
    m = llama(image, window=20, sinks=1, codec="int4")
    step = Layered(m)
    assert [take(step, 9) - 4 for _ in range(50)] == [2 * (i in (32, 48)) for i in range(50)]


@pytest.mark.parametrize("calls", range(4, 7))
def test_a_step_given_up_while_it_seals(calls: int) -> None:
    """What is sealed ahead is what the step, taken again, would seal; what is visible reads back the same."""
    image = tiny(SEALS)[2]
    at_once = llama(image, window=20, sinks=1, codec="int4")
    m = llama(image, window=20, sinks=1, codec="int4")
    step = Layered(m)
    for token in range(3, 51):
        at_once.step(token)
        take(step, token)
    was = [m.cache.read(layer, which, p) for p in m.cache.visible() for layer in (0, 1) for which in "kv"]
    step.begin(99)
    for at in range(calls):
        assert step.next() == (at < 5)
    step.cancel()
    now = [m.cache.read(layer, which, p) for p in m.cache.visible() for layer in (0, 1) for which in "kv"]
    assert now == was
    assert m.cache.check() == 0
    for token in range(60, 90):
        at_once.step(token)
        take(step, token)
        assert bytes(m.logits) == bytes(at_once.logits)
    assert bytes(m.cache.buffer) == bytes(at_once.cache.buffer)


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> bytes:
    """A model whose classifier has more weights than two of its layers."""
    folder = tmp_path_factory.mktemp("wide")
    model, words = write_tiny(folder, dim=32, hidden=40, heads=2, kv_heads=1, vocab=800)
    checkpoint = read_checkpoint(model)
    return convert(checkpoint, read_tokenizer(words, 800))


@pytest.mark.parametrize("mapped", [True, False])
def test_a_large_classifier_is_done_in_pieces(wide: bytes, mapped: bool) -> None:
    """Of no more weights than a layer; rows of a file as many at a time as there is room for."""
    for row_buffer_bytes in (4096,) if mapped else (40, 700, 1 << 16):
        how = {"window": 8, "mapped": mapped, "row_buffer_bytes": row_buffer_bytes}
        calls = same(wide, IDS[:3], **how)
        assert calls == 2 + 1 + 4
    m = llama(wide)
    step = Layered(m)
    layer = sum(a[1] * (a[2] * 32 + a[3]) for a in m.matrices[:7])
    step.begin(1)
    rows = []
    while step.next():
        rows.append(step._piece[1])
    assert step._rows * 32 <= layer
    assert sum(rows[3:]) + step._piece[1] == 800


def test_calls_of_a_step() -> None:
    """A layer each, the rest of the last one, and the classifier where logits are asked for."""
    m = llama(tiny("no multiple of 32")[2], window=8)
    assert take(Layered(m), 1) == m.layers + 1 + 1
    assert take(Layered(m), 1, False) == m.layers + 1


def test_parts_of_a_step() -> None:
    m = llama(tiny("no multiple of 32")[2], window=8)
    step = Layered(m)
    step.begin(1)
    seen = []
    while step.slot != layered.DONE:
        seen.append((step.layer, step.slot))
        step.part()
    of_layer = (layered.WEIGHTS, layered.KV_WRITE, layered.KV_READ)
    want = [*product(range(m.layers), of_layer), (m.layers, layered.WEIGHTS), (m.layers + 1, layered.WEIGHTS)]
    assert seen == want


def test_wherever_a_step_is_given_up_the_cache_is_as_before() -> None:
    """Before each part, then told on: the same text."""
    image = tiny()[2]
    at_once = llama(image, window=8, sinks=2)
    for token in IDS:
        at_once.step(token)
    parts = 3 * at_once.layers + 1 + 2  # a classifier in two pieces
    for at in range(parts + 1):
        m = llama(image, window=8, sinks=2)
        step = Layered(m)
        for token in IDS[:-1]:
            take(step, token)
        before = m.cache.length, m.cache.visible(), m.cache.read(0, "k", 5)
        step.begin(99)
        for _ in range(at):
            step.part()
        if at % 2:
            step.cancel()
        else:
            step = Layered(m)  # forgotten
        assert (m.cache.length, m.cache.visible(), m.cache.read(0, "k", 5)) == before
        assert m.cache.check() == 0
        take(step, IDS[-1])
        assert bytes(m.logits) == bytes(at_once.logits), at


def test_what_raises_ends_the_step() -> None:
    """Of the cache: it is full."""
    m = llama(tiny()[2], capacity=2)
    step = Layered(m)
    take(step, 1)
    take(step, 2)
    step.begin(3)
    with pytest.raises(CacheFull):
        step.next()
    assert m.cache.length == 2
    with pytest.raises(StepError, match="no step is in progress"):
        step.next()
    m.cache.rollback(1)
    take(step, 2)


def test_what_is_refused() -> None:
    m = llama(tiny()[2], window=8)
    step = Layered(m)
    for token in (-1, m.vocab):
        with pytest.raises(BadArgument, match=f"got {token}"):
            step.begin(token)
    with pytest.raises(StepError, match="no step is in progress"):
        step.commit()
    step.cancel()
    step.begin(1)
    with pytest.raises(StepError, match=r"is in progress: commit\(\) or cancel\(\) it"):
        step.begin(1)
    with pytest.raises(StepError, match=r"not done: call next\(\)"):
        step.commit()
    while step.next():
        pass
    with pytest.raises(StepError, match=r"is done: commit\(\) it"):
        step.next()
    m.step(7)  # somebody else's
    with pytest.raises(StepError, match="the cache has gone on"):
        step.commit()
    take(step, 2)
    assert m.cache.length == 2


# --- On devices -----------------------------------------------------------------------------------

CASES = [(shipped.NAMES[0], codec) for codec in HELD] + [(name, USUAL) for name in shipped.NAMES[1:]]


@pytest.mark.parametrize(("model", "codec"), CASES)
def test_bits_and_allocations(model: str, codec: str, upy) -> None:
    said = json.loads(upy.shared.run(STEPS, [shipped.image(model), codec]))
    most = {"stories-gqa16": 6}.get(model, 7)
    assert said.pop("calls") == (11 if codec == SEALED else most)  # without logits, and a layer a call seals
    assert said == {"programs": False, "differed": [], "allocated": 0}


def test_bits_of_a_file(upy) -> None:
    said = json.loads(upy.shared.run(STEPS, [shipped.image(shipped.NAMES[0]), USUAL, "viper", 700]))
    assert said == {"programs": False, "calls": 7, "differed": [], "allocated": 0}


@pytest.mark.parametrize("model", shipped.NAMES)
def test_bits_and_allocations_on_32_bits(model: str, qemu) -> None:
    said = json.loads(qemu.run(STEPS, [shipped.image(model), USUAL]))
    assert said.pop("calls") == (6 if model == "stories-gqa16" else 7)
    assert said == {"programs": True, "differed": [], "allocated": 0}


def test_bits_of_a_large_classifier_on_32_bits(wide: bytes, tmp_path, qemu) -> None:
    path = tmp_path / "wide.mkvm"
    path.write_bytes(wide)
    said = json.loads(qemu.run(STEPS, [path, USUAL]))
    assert said == {"programs": True, "calls": 2 + 1 + 4, "differed": [], "allocated": 0}


def test_bits_of_a_file_on_32_bits(qemu) -> None:
    said = json.loads(qemu.run(STEPS, [shipped.image(shipped.NAMES[0]), USUAL, "thumb", 700]))
    del said["allocated"]  # by this board's files
    assert said == {"programs": False, "calls": 7, "differed": []}
