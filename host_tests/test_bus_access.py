"""Bytes over the bus: what the running kernels count, the formula that must tell the same, and the table."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from array import array
from collections.abc import Callable
from dataclasses import asdict

import pytest
import qemu_fixtures
from known_cases import DEVICE
from stories_fixtures import SHAPES, tiny

from kvlab import boards, paths, profiles, shipped
from kvlab.bench import access as counting
from kvlab.bus import access, formula
from kvlab.bus.formula import Bytes
from kvlab.cost import count
from kvlab.models.image import Image
from kvlab.models.load import load_image
from kvlab.plan import models
from kvlab.plan.llama import image_read_bytes
from mpy_kv import Geometry, KVCache, geometry_for
from mpy_kv.errors import BadArgument
from mpy_kv.kernels.counting import Book
from mpy_kv.paged import PagedGeometry, Requests
from qemu_port import machines
from qemu_port.board import Qemu
from unix_port import compiled

EXACT = {"av": ("kv_read", "kv_write", "weights", "io_write")}  # of the others every kind


def compare(counted: formula.ByStage, told: formula.ByStage) -> None:
    """Every byte; in AV what weighs next to nothing need not be read, so vectors may be fewer there."""
    for stage in formula.STAGES:
        for kind, n in asdict(told[stage]).items():
            found = getattr(counted[stage], kind)
            if kind in EXACT.get(stage, (kind,)):
                assert found == n, (stage, kind)
            else:
                assert n * 0.8 < found <= n, (stage, kind)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_story_counts_is_what_the_formula_says(shape: str) -> None:
    """On models of other widths, heads and layers, with sinks and without, before the window is full and
    after; the counted tokens leave the logits of the fast kernels, which access.py checks."""
    checkpoint, _, image = tiny(shape)
    c = checkpoint.config
    for window, sinks, places in ((7, 3, (1, 9, 14)), (16, 0, (9,))):
        found = counting.count(image, places, 3, window=window, sinks=sinks)
        assert tuple(found.tokens) == places
        for there, by in found.tokens.items():
            compare(by, formula.token(c, min(there + 1, window + sinks), sinks=sinks))
        compare(found.prompt, formula.prompt(c, 3, window, sinks=sinks))


def test_a_token_reads_the_weights_of_its_image_and_its_cache() -> None:
    """Against what the planner makes of the image's format and the cache's, which know nothing of kernels."""
    shape = models.find("stories-mha")
    token = formula.token(shape, 256, sinks=4)
    embedding_row = shape.dim + 2 * 2
    assert token["model"].weights == shape.image_read_bytes + embedding_row
    g = geometry_for("int8", shape.layers, shape.heads, shape.kv_heads, shape.head_dim, window=256)
    assert shape.heads == shape.kv_heads  # else a row is read for each head that shares it
    assert token["qk"].kv_read + token["av"].kv_read == g.kv_bytes(256)
    assert token["append"].kv_write == g.token_bytes()


def test_stories260k_on_a_pico(needs_data) -> None:
    image = load_image(needs_data(paths.STORIES260K))
    found = counting.count(image.data, (40,), 2)
    shape = models.find("stories260k")
    compare(found.tokens[40], formula.token(shape, 41, sinks=4))
    compare(found.prompt, formula.prompt(shape, 2, 256, sinks=4))
    assert image_read_bytes(Image.parse(image.data, "test").config) == 283_744
    assert found.tokens[40]["model"].weights == 283_744 + 68
    assert found.tokens[40]["append"] == Bytes(kv_write=5 * 68, io_read=5 * 128)


# --- the counting set itself -----------------------------------------------------------------------

GEOMETRIES = [
    Geometry(1, 2, 1, 64, window=9, sinks=2),  # two slices a head
    Geometry(2, 4, 2, 6, window=9, sinks=0),  # padded rows, a scale for all heads
    Geometry(1, 3, 3, 128, window=4, sinks=1, group=32),
    Geometry(1, 4, 4, 8, capacity=12, group=16),
]


@pytest.mark.parametrize("g", GEOMETRIES, ids=range(len(GEOMETRIES)))
def test_a_cache_counts_what_the_formula_says(g: Geometry) -> None:
    """Scores alike, so that every token weighs something: exact."""
    cache = KVCache(g, kv_shift=8)
    rng = random.Random(5)
    k, v = (array("h", [rng.randrange(-900, 900) for _ in range(g.width)]) for _ in range(2))
    q = array("h", [rng.randrange(-900, 900) for _ in range(g.heads * g.head_dim)])
    q_sinks, out = array("h", q), array("h", q)
    book = Book()
    for _ in range(11):
        book.clear()
        book.count_cache(cache)
        for layer in range(g.layers):
            cache.append(layer, k, v)
            cache.attend(layer, q, out, q_sinks if g.sinks else None)
        cache.commit()
        book.stop()
    told = formula.of_cache(g, min(11, g.max_visible))
    for stage in ("append", "qk", "av"):
        counted = {kind: getattr(book.stages[stage], kind) for kind in asdict(Bytes())}
        assert counted == asdict(told[stage]), stage


@pytest.mark.parametrize("codec", ["float32", "float16", "int8-int4", "sparse"])
def test_other_element_types_count_too(codec: str) -> None:
    """Keys and values that are read are those of the visible tokens, as the geometry tells their bytes."""
    g = Geometry(2, 2, 2, 32, window=10, sinks=1, codec=codec)
    cache = KVCache(g)
    vectors = [array("f", [0.01 * (i % 7) + 0.02 * n for i in range(64)]) for n in range(3)]
    book = Book()
    for i in range(14):
        if i == 13:
            book.count_cache(cache)
        for layer in range(2):
            cache.append(layer, vectors[i % 3], vectors[1])
            cache.attend(layer, vectors[0], vectors[2])
        cache.commit()
    book.stop()
    assert book.stages["append"].kv_write >= g.token_bytes()
    read = book.stages["qk"].kv_read + book.stages["av"].kv_read
    assert g.kv_bytes(11) <= read <= 2.1 * g.kv_bytes(11)  # float's largest exponent is looked for first


def test_requests_in_blocks_count_what_a_cache_does() -> None:
    """And pages that one makes its own are moves: here of a page that two have, for the first to go on."""
    g = PagedGeometry(2, 4, 2, 16, window=30, sinks=0, block_tokens=4)
    requests = Requests(g, 12, 3, kv_shift=8)
    k, v, q = (array("h", [(7 * i) % 61 - 30 for i in range(n)]) for n in (32, 32, 64))
    out = array("h", bytes(128))
    book = Book()

    def step(request) -> None:
        for layer in range(2):
            request.append(layer, k, v)
            request.attend(layer, q, out)
        request.commit(1)

    first = requests.open()
    for _ in range(6):
        step(first)
    second = first.fork()
    for request in (first, second):
        book.count_cache(request)
    book.count_moves()
    step(second)
    step(first)
    book.stop()
    step(second)
    told = formula.of_cache(g, 7)
    for stage in ("append", "qk", "av"):
        counted = Bytes(*(getattr(book.stages[stage], kind) for kind in asdict(Bytes())))
        assert counted == told[stage].times(2), stage
    moves = book.stages["moves"]
    assert (moves.kv_read, moves.kv_write, moves.calls) == (g.block_bytes, g.block_bytes, 1)


def test_sealed_blocks_are_refused() -> None:
    from mpy_kv import cache_for

    cache = cache_for(geometry_for("int4", 1, 2, 2, 32, window=40))
    with pytest.raises(BadArgument, match="int4's sealed blocks are not counted"):
        Book().count_cache(cache)


def test_counting_that_is_off_costs_nothing(qemu) -> None:
    """The very instructions, of a cache that was never counted and of one that no longer is."""
    found = json.loads(qemu.run(DEVICE / "counting_off.py", timeout=300).splitlines()[-1])
    assert found["kernels"] == "thumb"
    assert not found["loaded"]
    assert found["same"]
    assert found["counted"] > 10 * found["never"]
    assert abs(found["after"] - found["never"]) <= 40  # a tick, to which a count is right
    assert found["kv_read"] == 2 * 7 * 16 + 7 * 2


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, tuple[int, int]]]:
    """moved(image, window, sinks, position): bytes that the emulator sees loaded and stored by a token, of
    cache and image, whatever kernel does it."""
    folder = tmp_path_factory.mktemp("traffic")
    elf = qemu_fixtures.built(count.HEAP_BYTES)
    if shutil.which("gcc") is None:
        qemu_fixtures.unavailable("no gcc")
    plugin, out = folder / "traffic.so", folder / "words"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", plugin, DEVICE / "traffic.c"], check=True)

    def run(image: bytes, *words: int) -> dict[str, tuple[int, int]]:
        with Qemu(elf=elf, flash=image, options=["-plugin", f"file={plugin},out={out}"]) as board:
            done = board.run(DEVICE / "traffic.py", words, path=[compiled.tree(machines.ARM.arch)])
        assert done.status == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["kernels"] == ["thumb", "thumb"]
        lines = [line.split() for line in out.read_text().split("mark\n")[1].splitlines()]
        seen = [(int(at), int(loaded), int(stored)) for at, loaded, stored in lines]
        return {
            name: (
                sum(loaded for at, loaded, _ in seen if first <= at < last),
                sum(stored for at, _, stored in seen if first <= at < last),
            )
            for name, (first, last) in (("cache", told["cache"]), ("image", told["image"]))
        }

    return run


@pytest.mark.parametrize("position", [3, 40])
def test_kernels_in_assembler_move_what_is_counted(position: int, moved) -> None:
    """As the emulated Cortex-M3 loads and stores it: weights, and what is stored, to the byte. A byte that a
    call reads again counts once: of scales all, read for the largest and then for each, and of values the
    rows of a batch in which one token weighs much (kernels/plain.py, SPLIT)."""
    shape, visible = models.find("stories-gqa16"), min(position + 1, 32)
    found = moved(shipped.image("stories-gqa16").read_bytes(), 30, 2, position)
    told = formula.token(shape, visible, sinks=2)
    assert found["image"] == (told["model"].weights, 0)
    assert found["cache"][1] == told["append"].kv_write
    scales = 2 * 2 * visible * shape.layers
    again = found["cache"][0] - told["qk"].kv_read - told["av"].kv_read - scales
    assert 0 <= again <= told["av"].kv_read
    assert again % (min(visible, 8) * shape.head_dim) == 0


# --- the table -------------------------------------------------------------------------------------


def stages(**by: Bytes) -> formula.ByStage:
    return {stage: by.get(stage, Bytes()) for stage in formula.STAGES}


def test_rows_by_hand() -> None:
    """A Pico: 500 MB/s of SRAM, 20 MB/s of flash."""
    token = stages(
        append=Bytes(kv_write=100, io_read=400),
        qk=Bytes(kv_read=9000, io_write=1000),
        av=Bytes(kv_read=4000, io_read=1000),
        model=Bytes(weights=20_000),
    )
    prompt = stages(append=Bytes(kv_write=200, io_read=800), model=Bytes(weights=40_000))
    pico = boards.load("rp2040").memories
    table = {row.step: row for row in access.rows(token, prompt, 2, pico)}
    assert table["qk"].bus_us == pytest.approx(20)
    assert table["token"].bus_us == pytest.approx(1031)
    assert (table["qk"].latency_ns, table["token"].latency_ns) == (20, 400)
    assert table["token"].bytes.total == 35_500
    assert table["qk"].words == {"read": "High", "write": "Low", "latency": "Low", "bandwidth": "Very High"}
    assert table["append"].words["bandwidth"] == "Low"
    assert table["prefill"].words["write"] == "Medium"
    assert table["qk"].differs() == ["latency", "bandwidth"]
    assert table["token"].differs() == []
    found = access.shares(token)
    assert found["kv_read"] == 13 / 35.5
    assert sum(found.values()) == pytest.approx(1)
    said = access.differences(list(table.values()), found)
    assert "KV write: 0.3 % of a token's bytes, the document says 25 %" in said
    assert not any(text.startswith("vectors, I/O: 6") for text in said)  # 6.8 % is near enough


def test_a_memory_without_a_latency_has_no_word_for_it() -> None:
    token = formula.token(models.find("qwen2.5-1.5b"), 2048)
    prompt = formula.prompt(models.find("qwen2.5-1.5b"), 3, 2048)
    table = access.rows(token, prompt, 3, boards.load("rp2350").memories)
    assert table[0].latency_ns is None
    assert "latency" not in table[0].words
    assert "latency" not in table[0].differs()
    assert json.dumps([row.figures() for row in table])


def test_all_boards_and_profiles_have_a_table() -> None:
    shape = models.find("stories")
    token, prompt = formula.token(shape, 100, sinks=4), formula.prompt(shape, 3, 256, sinks=4)
    places = [boards.load(name).memories for name in boards.names()]
    places += [profiles.load(name).memories for name in profiles.names()]
    for memories in places:
        for row in access.rows(token, prompt, 3, memories):
            assert row.bus_us > 0
            assert 0 < row.bytes_per_s < 1e13
