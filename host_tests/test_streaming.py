"""Weights streamed from flash: the same bits as in place, on 32 bits with a copying core in the chip's stead;
control blocks, gates and the kernels that open them on a chip whose parts move in any order."""

from __future__ import annotations

import sys
from array import array
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import qemu_fixtures
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from rp2_stream import FLASH, Chip, Dma, words

import firmware
from field_tables.stream import CHUNK, STREAM
from kvlab import shipped
from kvlab.models.image import Image
from kvlab.paths import APPS, ROOT
from mpy_kv.errors import BadArgument
from qemu_port import machines
from qemu_port.board import Qemu
from unix_port import compiled

DEVICE = Path(__file__).parent / "device"
KERNELS = ROOT / "mpy_kv" / "bus" / "stream" / "thumb.py"
OF_CHUNK = {name: at for name, at, _ in CHUNK.indexes()}
OF_STREAM = {name: at for name, at, _ in STREAM.indexes()}
RECORD = OF_CHUNK["CHUNK_FIELDS"]


class Model:
    """Chunks of a model that is streamed by mpy_kv/bus/stream/dma.py on a chip that is no chip."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch, places: int = 3, tokens: int = 3) -> None:
        self.random = random = Random(seed)
        count = places * random.randrange(2, 5)
        sizes = [random.randrange(1, 30) for _ in range(count)]
        self.chip = chip = Chip(words(random, sum(sizes)), random)
        self.chunks = array("i", bytes(4 * RECORD * count))
        self.state = array("i", bytes(4 * OF_STREAM["STREAM_FIELDS"]))
        self.ring = bytearray(4 * max(sizes) * places)
        self.sizes, self.count, self.places = sizes, count, places
        self.multiplied: list[int] = []
        self.kernels = chip.kernels(KERNELS)
        chip.add(self.state)
        records, ring = chip.add(self.chunks), chip.add(self.ring)
        self.records = records
        at = FLASH
        for i, size in enumerate(sizes):
            self._put(
                i,
                PLACE=ring + 4 * max(sizes) * (i % places),
                FROM=at,
                WORDS=size,
                NEXT=records + 4 * RECORD * ((i + 1) % count),
                FILLS=records + 4 * RECORD * ((i + places) % count),
            )
            at += 4 * size
        for name, x in {
            "NEXT": records,
            "FIRST": records,
            "PLACES": places,
            "FETCH": self.kernels["fetch"].address,  # type: ignore[attr-defined]
            "WORK": chip.called(self._matvec),
        }.items():
            self.state[OF_STREAM[f"STREAM_{name}"]] = x
        self._stand_ins(monkeypatch)

    def _put(self, i: int, **fields: int) -> None:
        for name, x in fields.items():
            self.chunks[i * RECORD + OF_CHUNK[f"CHUNK_{name}"]] = x

    def _matvec(self, r: list[int]) -> None:
        """Sees whether the rows of the chunk at r3 are those of the flash, as long as it multiplies."""
        i = (r[3] - 4 * RECORD - self.records) // (4 * RECORD)
        assert r[0] == self.chunks[i * RECORD + OF_CHUNK["CHUNK_PLACE"]]
        start, size = 4 * sum(self.sizes[:i]), 4 * self.sizes[i]
        for _ in range(self.random.choice((1, 20, 200))):
            assert self.chip.bytes_at(r[0], size) == self.chip.flash[start : start + size], f"chunk {i}"
            self.chip.turn()
        self.multiplied.append(i)

    def _stand_ins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from mpy_kv.bus.stream import dma

        self.taken: list[int] = []
        chip = self.chip
        rp2, machine = ModuleType("rp2"), ModuleType("machine")
        rp2.DMA = lambda: Dma(chip, self.taken)  # type: ignore[attr-defined]

        class Registers:
            def __getitem__(self, address: int) -> int:
                return chip.load(address)

            def __setitem__(self, address: int, x: int) -> None:
                chip.store(address, x)

        machine.mem32 = Registers()  # type: ignore[attr-defined]
        uctypes = ModuleType("uctypes")
        uctypes.bytearray_at = chip.bytes_at  # type: ignore[attr-defined]
        for module in (rp2, machine, uctypes):
            monkeypatch.setitem(sys.modules, module.__name__, module)

        def ticks_ms() -> int:
            for _ in range(100):
                chip.turn()
            return chip.turns // 1000

        clock = SimpleNamespace(ticks_ms=ticks_ms, ticks_diff=lambda a, b: a - b)
        monkeypatch.setattr(dma, "time", clock)
        monkeypatch.setattr(dma, "addressof", chip.address)
        monkeypatch.setattr(dma, "load_module", lambda name: SimpleNamespace(**self.kernels))
        self.fetching = dma.Chained()

    def prepare(self) -> str | None:
        return self.fetching.prepare(self.chunks, self.state, 4 * RECORD)

    def token(self, chunks: int | None = None) -> None:
        """So many chunks of a token, as its program's steps run; its end waits for the stream."""
        state = self.chip.address(self.state)
        self.kernels["skip"](state)
        for i in range(self.count if chunks is None else chunks):
            self.kernels["chunk"](self.records + 4 * RECORD * i, state)
        self.kernels["rest"](state)


@pytest.mark.parametrize("seed", range(40))
def test_each_chunk_is_multiplied_as_the_flash_has_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(seed, monkeypatch)
    assert model.prepare() is None
    asked: list[int] = []
    for _ in range(4):
        part = model.random.choice((model.count, model.count - 2, model.random.randrange(model.count)))
        model.token(part)
        asked += range(part)
        assert model.multiplied == asked
        for _ in range(60):
            model.chip.turn()
        assert model.chip.idle(), "something moves between two tokens"


def test_places_that_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    for places in (1, 2, 6):
        with monkeypatch.context() as patch:
            model = Model(places, patch, places=places)
            assert model.prepare() is None
            model.token()
            model.token()
            assert model.multiplied == [*range(model.count)] * 2


def test_channels_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(1, monkeypatch)
    assert model.prepare() is None
    assert len(model.taken) == 2
    model.fetching.close()
    assert model.taken == []
    assert model.chip.idle()


def test_a_stream_that_delivers_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(2, monkeypatch)
    model.chip.frozen = True
    assert model.prepare() == "chunk 0 does not arrive"


def test_a_stream_that_delivers_something_else_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(3, monkeypatch)
    model.chip.spoilt = True
    assert model.prepare() == "chunk 0 is not what the flash has"


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("    str(r6, [r7, 0])\n", ""),  # a gate that stays open
        ("    str(r2, [r4, 60])\n", ""),  # a channel that is not started again
        ("    str(r6, [r4, 0])  # CHUNK_READY\n    ldr(r7", "    ldr(r7"),  # a chunk that stays ready
    ],
)
def test_a_kernel_that_leaves_out_a_store_is_found(
    line: str, instead: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = KERNELS.read_text()
    assert line in text
    broken = tmp_path / "thumb.py"
    broken.write_text(text.replace(line, instead))
    monkeypatch.setattr(sys.modules[__name__], "KERNELS", broken)
    found = 0
    for seed in range(8):
        with monkeypatch.context() as patch:
            patch.setattr("rp2_stream.MOST_TURNS", 60_000)
            model = Model(seed, patch)
            try:
                assert model.prepare() is None
                for _ in range(3):
                    model.token()
            except AssertionError:
                found += 1
    assert found


def test_no_such_chip() -> None:
    from mpy_kv.bus.stream.dma import Chained

    with pytest.raises(BadArgument, match="stream needs an RP2040 or RP2350"):
        Chained()


def test_sizes_that_are_refused() -> None:
    from stories.streaming import making

    for size in (0, -1, 15, "16384", True, 1 << 21):
        with pytest.raises(BadArgument, match=r"stream must be 16\.\.1048576 bytes"):
            making.ring(size)
    assert len(making.ring(16387)) == 16384


@pytest.mark.parametrize("name", shipped.NAMES)
def test_bits_are_those_of_weights_read_in_place(name: str) -> None:
    """Told and of a prompt, in places of any size, after a step that failed half-way; nothing allocated."""
    qemu_fixtures.needed_by("qemu_arm")
    data = Image.read(shipped.image(name)).data
    elf = firmware.build(firmware.MOST_HEAP_BYTES, firmware.ARM)
    with Qemu(elf=elf, flash=data) as board:
        done = board.run(DEVICE / "streamed.py", path=[compiled.tree(machines.ARM.arch)], timeout_s=120)
    assert done.status == 0, done.stdout + done.stderr
    assert done.stdout.strip().splitlines()[-1] == "same"


def test_a_port_that_cannot_stream_says_so(upy: Any) -> None:
    code = f"""
import sys
sys.path.append({str(APPS)!r})
import stories
try:
    stories.main(["--model", {str(shipped.image(shipped.NAMES[0]))!r}, "--stream", "16384", "--window", "8"])
except SystemExit as end:
    print("exit", end.args[0])
"""
    done = upy.run(code, heap_bytes=4 << 20)
    assert done.strip().endswith("exit 2")
