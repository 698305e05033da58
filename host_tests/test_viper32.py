"""Viper as a 32-bit board runs it: the bits of plain, within its buffers and its alignment."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import numpy as np
import pytest
import viper32
from jobs import Job, cache_job
from test_attention import extreme
from test_goldens import NAMES, Golden
from test_twins import random_job

from mpy_kv import kernels
from mpy_kv.kernels import params
from mpy_kv.kernels.kernel_registry import KernelSet

VIPER = Path(params.__file__).with_name("viper.py")


@pytest.fixture(scope="module")
def on_32_bits() -> dict[str, KernelSet]:
    shared = viper32.load(VIPER)
    found = {"int8": KernelSet("viper32", shared, kernels.NAMES)}
    for codec in ("int8-int4", "sparse", "float16"):
        own = viper32.load(VIPER.parent / codec.replace("-", "_") / "viper.py")
        found[codec] = kernels.of(codec)._set_of("viper32", {**shared, **own})
    return found


@pytest.fixture(autouse=True)
def _known(on_32_bits: dict[str, KernelSet], monkeypatch: pytest.MonkeyPatch) -> None:
    """cache_job asks for kernels by name."""
    real = kernels.of

    class Known:
        def __init__(self, codec: str) -> None:
            self.codec = codec

        def get(self, name: str) -> KernelSet:
            return on_32_bits[self.codec] if name == "viper32" else real(self.codec).get(name)

    monkeypatch.setattr(kernels, "of", Known)


def check(job: Job) -> None:
    out = io.BytesIO()
    cache_job.run(job.job, io.BytesIO(job.data), out, "viper32")
    outputs, buffer = job.split(out.getvalue())
    plain, plain_buffer = job.plain()
    assert outputs.tobytes() == plain.tobytes()
    assert buffer == plain_buffer


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_goldens(name: str) -> None:
    check(Golden(name).runner)


RANDOM = [("int8", s) for s in range(100, 112)] + [("int8-int4", 112), ("sparse", 368), ("sparse", 418)]
RANDOM += [("float16", 503), ("float16", 505), ("float16", 510)]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("codec", "seed"), RANDOM)
def test_random_jobs(codec: str, seed: int) -> None:
    check(random_job(seed, codec))


@pytest.mark.exhaustive
@pytest.mark.parametrize("mixed", [False, True], ids=["same", "opposite"])
@pytest.mark.parametrize("size", [0.0, 64.0, 1e30], ids=["flat", "peaked", "huge"])
def test_extremes(size: float, mixed: bool) -> None:
    check(extreme(8, 8, 70, np.full(8, size), mixed)[0])


def test_many_slices() -> None:
    """Where the sum of dots, each rounded down, is largest: see test_attention."""
    check(extreme(128, 1, 6, np.array([64, 22] + [23] * 11 + [15] * 115, float), True)[0])


def compiled(body: str) -> viper32.Callable[..., int]:
    source = "def f(p: ptr32, n: int) -> int:\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    return viper32.kernel(ast.parse(source).body[0])  # type: ignore[arg-type]


def test_the_emulation_counts_as_a_board_does() -> None:
    memory = np.array([7, 0xFFFFFFFF, 0x80000000, 0], np.uint32)
    assert compiled("return int(p[1])")(memory, 0) == -1
    assert compiled("p[3] = n << 16\nreturn (n << 16) >> 16")(memory, 0x8000) == -0x8000
    assert memory[3] == 0x80000000
    assert compiled("n += int(p[0]) * n\nreturn n")(memory, 0x20000000) == 0
    assert compiled("q = ptr8(int(p) + 4)\nreturn q[3]")(memory, 0) == 255


FAULTS = {
    "return ptr32(int(p) + 2)[0]": "access of 4 bytes at",
    "return p[4]": "is in none of",
    "return p[n]": "is in none of",
    "return 1 << 32 - n": "shift of 1 by 33",
    "return 1 >> n": "shift by -1",
    "return 5 // (n + 1)": "division by 0",
    "return 1 << 31": "allocates",
}


@pytest.mark.parametrize("body", FAULTS)
def test_the_emulation_sees(body: str) -> None:
    with pytest.raises(AssertionError, match=FAULTS[body]):
        compiled(body)(np.zeros(4, np.uint32), -1)


@pytest.mark.parametrize("body", ["return -n", "return n ^ 0x40000000"])
def test_the_emulation_refuses(body: str) -> None:
    with pytest.raises(AssertionError):
        compiled(body)
