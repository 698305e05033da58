"""The whole model: the same logits on every runtime, close to float32, and nothing allocated."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import files
from stories.image import Image
from stories.model import make_cache
from stories_fixtures import (
    SHAPES,
    dump,
    half_split,
    llama,
    parse_logits,
    tiny,
    typed,
    unix_app,
    unix_dump,
)

from kvlab.models.image import convert
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.reference import Reference, cross_entropy
from kvlab.models.tokenizer import find_tokenizer
from mpy_kv.errors import BadArgument, CacheFull

RESET, SEEK = files.RESET, files.SEEK


def random_ids(count: int, vocab: int, seed: int = 1) -> list[int]:
    return np.random.RandomState(seed).randint(0, vocab, count).tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_runtime_gives_the_same_logits(shape: str) -> None:
    """Plain and viper, mapped and row by row, any row buffer; evictions, RESET and SEEK on the way."""
    checkpoint, _, image = tiny(shape)
    ids = random_ids(45, checkpoint.config.vocab)
    ids = [*ids, RESET, *ids[:6], SEEK, 70000, *ids[6:20]]
    context = {"window": 13, "sinks": 3}
    want = dump(image, ids, **context)
    assert len(want) == 16 + 4 * checkpoint.config.vocab * 65
    assert dump(image, ids, mapped=False, row_buffer_bytes=1, **context) == want
    for kernels in ("plain", "viper"):
        assert unix_dump(image, ids, kernels=kernels, **context) == want, kernels
    assert unix_dump(image, ids, mapped=True, **context) == want
    assert unix_dump(image, ids, row_buffer_bytes=700, **context) == want


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_close_to_float(shape: str) -> None:
    checkpoint, _, image = tiny(shape)
    c = checkpoint.config
    ids = random_ids(c.seq_len, c.vocab)
    got = parse_logits(unix_dump(image, ids, window=c.seq_len, sinks=0))
    want = Reference(c, checkpoint.weights, np.float64).forward(ids)
    error = np.sqrt(((got - want) ** 2).mean() / want.var())
    assert error < 0.06
    assert (got.argmax(-1) == want.argmax(-1)).mean() > 0.85


@pytest.mark.parametrize("window", [5, 20])
def test_window_and_sinks_are_close_to_float(window: int) -> None:
    """The same window, with sinks scored by a query of their own position, as the reference does."""
    checkpoint, _, image = tiny()
    c = checkpoint.config
    ids = random_ids(60, c.vocab)
    got = parse_logits(unix_dump(image, ids, window=window, sinks=4))
    want = Reference(c, checkpoint.weights, np.float64).forward(ids, window=window, sinks=4)
    wrong = Reference(c, checkpoint.weights, np.float64).forward(ids, window=window + 1, sinks=4)
    assert np.sqrt(((got - want) ** 2).mean() / want.var()) < 0.06
    assert np.sqrt(((got - wrong) ** 2).mean() / want.var()) > 0.1


def test_half_split_pairs_are_the_same_model_with_rows_swapped() -> None:
    """Rows of wq and wk reordered from pairs of neighbours to pairs of halves: identical logits."""
    checkpoint, tokenizer, image = tiny()
    c = checkpoint.config
    order = np.arange(c.head_dim).reshape(-1, 2).T.ravel()  # even channels, then odd ones

    def reorder(w: np.ndarray) -> np.ndarray:
        return w.reshape(c.layers, -1, c.head_dim, c.dim)[:, :, order].reshape(w.shape)

    w = checkpoint.weights
    weights = dataclasses.replace(w, wq=reorder(w.wq), wk=reorder(w.wk))
    swapped = convert(dataclasses.replace(checkpoint, weights=weights), tokenizer)
    ids = random_ids(40, c.vocab)
    want = dump(image, ids, window=20)
    shifts = slice(*_shift_bytes(image))
    swapped = swapped[: shifts.start] + image[shifts] + swapped[shifts.stop :]
    assert dump(half_split(swapped), ids, window=20) == want
    assert dump(half_split(image), ids, window=20) != want
    assert unix_dump(half_split(swapped), ids, window=20, sinks=0) == want


def _shift_bytes(image: bytes) -> tuple[int, int]:
    """Where the calibrated shifts lie: another order of the same rows may calibrate otherwise."""
    at, layers = np.frombuffer(image, "<u4", 1, 64)[0], np.frombuffer(image, "<u2", 1, 24)[0]
    return int(at), int(at + 4 * layers)


def test_a_step_cut_short_changes_nothing() -> None:
    image = tiny()[2]
    ids = random_ids(12, 320)
    whole = llama(image, window=6, sinks=2)
    broken = llama(image, window=6, sinks=2)
    for token in ids:
        whole.step(token)
        for kernel in ("norm", "swiglu", "rotate"):
            good = getattr(broken.kernels, kernel)
            calls = [0]

            def fail(*arguments, good=good, calls=calls):
                calls[0] += 1
                if calls[0] == 2:
                    raise KeyboardInterrupt
                return good(*arguments)

            setattr(broken.kernels, kernel, fail)
            try:
                with pytest.raises(KeyboardInterrupt):
                    broken.step(token)
            finally:
                setattr(broken.kernels, kernel, good)
            assert broken.cache.length == whole.cache.length - 1
        broken.step(token)
        assert list(broken.logits) == list(whole.logits)
    assert broken.cache.check() == 0


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    model = llama(tiny()[2], window=6)
    for token in (-1, 320):
        with pytest.raises(BadArgument, match=rf"0\.\.319, got {token}"):
            model.step(token)
    assert model.cache.length == 0


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (
            {"window": 61, "sinks": 4},
            "65 tokens .window 61 . sinks 4. is more than the 64 .* lower window to 60",
        ),
        ({"capacity": 65}, "65 tokens .capacity. .* lower capacity"),
        ({"window": 600}, "600 .* 64 .* lower window to 64"),
        ({"sinks": 70}, "71 tokens .* lower sinks below 64"),
        ({"window": "many"}, "window must be a whole number, got 'many'"),
        ({"sinks": "few"}, "sinks must be a whole number, got 'few'"),
    ],
)
def test_a_context_beyond_the_training_is_refused(context: dict, message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        llama(tiny()[2], **context)
    assert llama(tiny()[2], window=60, sinks=4).cache.geometry.max_visible == 64


def test_a_cache_of_another_shape_is_refused() -> None:
    model, other = llama(tiny()[2], window=6), llama(tiny("own classifier")[2], window=6)
    with pytest.raises(BadArgument, match="heads 2, the model 4"):
        type(model)(model.image, other.cache)


def test_default_context_fits_the_training() -> None:
    image = llama(tiny("wide heads")[2], window=1).image
    assert make_cache(image).geometry.max_visible == 40
    assert make_cache(image, sinks=4).geometry.max_visible == 40
    for options, sinks in (({}, 4), ({"window": 9}, 4), ({"sinks": 1}, 1), ({"policy": "lfu"}, 0)):
        assert make_cache(image, **options).geometry.sinks == sinks
    assert make_cache(image, capacity=9).geometry.sinks == 0


def test_a_cache_is_of_the_types_that_the_image_names() -> None:
    """Unless others are asked for; where layers differ, each is to the bit that of its type."""
    mixed = typed("int8-int4", "int8")
    codecs = ["int8-int4", "int8"] * 5
    codecs = codecs[: Image(mixed).layers]
    for image, options, want in (
        (mixed, {}, tuple(codecs)),
        (mixed, {"codec": "int8"}, "int8"),
        (tiny()[2], {"codec": codecs[::-1]}, tuple(codecs[::-1])),
        (typed("int8-int4"), {}, "int8-int4"),
        (tiny()[2], {}, "int8"),
    ):
        assert llama(image, window=20, **options).cache.geometry.codec == want
    model, int8 = llama(mixed, window=20, sinks=2), llama(tiny()[2], window=20, sinks=2)
    for token in range(30):
        for each in (model, int8):
            each.step(token)
    assert model.logits.tolist() != int8.logits.tolist()
    assert model.cache.check() == 0
    first = llama(tiny()[2], window=20, sinks=2, codec="int8-int4")
    for token in range(30):
        first.step(token)
    g = model.cache.geometry.of(0)
    assert bytes(model.cache.buffer[: g.layer_bytes]) == bytes(first.cache.buffer[: g.layer_bytes])


def test_past_the_capacity_the_cache_is_full() -> None:
    model = llama(tiny()[2], capacity=5)
    for token in range(5):
        model.step(token)
    with pytest.raises(CacheFull, match="capacity 5 reached"):
        model.step(5)
    assert model.cache.length == 5


ALLOCATIONS = """
import sys, micropython, stories
from stories import app
words = sys.argv[1:]
mapped = words[0] == "mapped"
with open(words[1], "rb") as f:
    source = f.read() if mapped else f
    llama = app.open_model(source, 30, 4)
    figures = app.tell(llama, "the lion", 2200, temperature=words[2], seed=5, lock=True, write=lambda b: None)
    print(figures["alloc_bytes"], figures["tokens"], figures["evicted_tokens"], llama.cache.check())
    # The measure sees what it should: 32 bytes and more for a copy of each token's text.
    wasteful = app.tell(llama, "", 50, temperature=words[2], write=lambda b: bytes(b))
    print(wasteful["alloc_bytes"] >= 32 * 49)
    try:
        app.tell(llama, "", 50, lock=True, write=lambda b: bytes(b))
    except MemoryError:
        print("locked")
"""


@pytest.mark.parametrize("temperature", ["0", "0.9"])
@pytest.mark.parametrize("where", ["mapped", "file"])
def test_nothing_is_allocated_per_token(where: str, temperature: str, upy, tmp_path) -> None:
    """Heap lock and mem_total over 2,199 tokens, sampling, printing and evictions included."""
    path = tmp_path / "model"
    path.write_bytes(tiny()[2])
    shown = upy.run(ALLOCATIONS, [where, path, temperature], heap_bytes=8 << 20).split("\n")
    told, tokens, evicted, broken = map(int, shown[0].split())
    assert (told, tokens, broken) == (0, 2200, 0)
    assert evicted > 2100
    assert shown[1:3] == ["True", "locked"]


def test_ram_is_what_the_arrays_take() -> None:
    mapped, streamed = llama(tiny()[2], window=6), llama(tiny()[2], False, 4096, window=6)
    assert 2000 < mapped.ram_bytes() < 4000
    assert streamed.ram_bytes() - mapped.ram_bytes() == 4096 + 64 * 5 + 28


@pytest.fixture(scope="module")
def real(needs_data):
    """(checkpoint, tokenizer, image) of stories260K."""
    path = needs_data("stories260K/stories260K.bin")
    checkpoint = read_checkpoint(path)
    tokenizer = find_tokenizer(path, checkpoint.config.vocab)
    return checkpoint, tokenizer, convert(checkpoint, tokenizer)


def test_the_real_model_tells_its_story(real) -> None:
    words = ["--greedy", "--tokens", 40, "--json", "{figures}", "--lock"]
    for mapped in (True, False):
        done, _ = unix_app(real[2], words, mapped)
        assert done.status == 0, done.stderr
        assert done.stdout.startswith(
            "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
        )


def test_the_real_model_runs_on(real) -> None:
    """5,000 tokens, ten times what the model was trained for, in a window of 128 and 4 sinks."""
    words = ["--tokens", 5000, "--window", 128, "--sinks", 4, "--seed", 3, "--lock"]
    done, _ = unix_app(real[2], words, mapped=True)
    assert done.status == 0, done.stderr
    assert "# position: 5001" in done.stdout
    assert "# alloc_bytes: 0" in done.stdout
    assert "# evicted_tokens: 4869" in done.stdout


def test_loss_does_not_depend_on_the_position(real, needs_data) -> None:
    """The same 1,000 tokens after the same 200, which end at position 199, 3,999 and 68,999."""
    text = needs_data("corpus/stories.jsonl").read_text().splitlines()[-10:]
    stories = [real[1].encode(json.loads(line)["text"]) for line in text]
    ids = [token for story in stories for token in story][:1200]
    run: list[int] = []
    for position in (200, 4000, 69000):
        run += [RESET, *ids[:4], SEEK, position - 196, *ids[4:]]
    logits = parse_logits(unix_dump(real[2], run, window=128, sinks=4)).reshape(3, 1200, -1)
    losses = [cross_entropy(x[200:-1], ids[201:]).mean() for x in logits]
    assert min(losses) > 0.5
    assert max(losses) / min(losses) < 1.005
