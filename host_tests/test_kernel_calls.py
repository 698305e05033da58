"""Kernels in assembler that call one another: their addresses, and loops that are the same by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import thumb32

from kernelgen import files
from kvlab import shipped
from kvlab.paths import ROOT

CALLED = {
    "mpy_kv/kernels/thumb.py": {"qk": 4, "score": 4, "weights": 4, "av": 4, "emit": 3, "scales": 4},
    "mpy_kv/kernels/float16/thumb.py": {"scales": 4, "qk": 4, "av": 4},
    "mpy_kv/kernels/int8_int4/thumb.py": {"av": 4},
    "mpy_kv/eviction/tokens/thumb.py": {"uses": 4},
    "mpy_kv/bus/stream/thumb.py": {"chunk": 2, "skip": 1, "rest": 1, "fetch": 2},
    "boards/apps/stories/kernels/thumb.py": {
        "embed": 3,
        "norm": 3,
        "quant": 2,
        "matvec": 4,
        "rope_table": 4,
        "rotate": 4,
        "narrow": 3,
        "widen": 3,
        "swiglu": 3,
        "add": 2,
    },
}
# What the assembler puts before a function is one instruction.
ENTRY = thumb32.CODE - 2


@pytest.mark.parametrize(("file", "name"), [(file, name) for file in CALLED for name in CALLED[file]])
def test_a_kernel_tells_its_address(file: str, name: str) -> None:
    run = thumb32.load(ROOT / file)[name]
    # Its other arguments may be anything, and nothing is read or written.
    buffer = np.zeros(4, np.int32)
    assert run(*[buffer] * (CALLED[file][name] - 1), 0) == ENTRY
    assert run.steps == 5  # type: ignore[attr-defined]
    assert not buffer.any()


def test_no_other_kernel_does() -> None:
    assert set(CALLED) <= set(files.FILES.values())
    for file in files.FILES.values():
        asks = {
            part.partition("(")[0]
            for part in (ROOT / file).read_text().split("\ndef ")[1:]
            if "label(ASKED)" in part
        }
        assert asks == set(CALLED.get(file, ())), file


CACHES = r"""
import sys
from array import array
from mpy_kv import cache_for, geometry_for, kernels
from mpy_kv.token_eviction import BudgetCache
from mpy_kv.transient import unload_all

def run(cache, g, name, by_name):
    if by_name:
        cache.attention[0].call_by_name()
    k = array("f", [0] * g.width)
    v = array("f", [0] * g.width)
    q = array("f", [0] * (g.heads * g.head_dim))
    out = array("f", q)
    x = 1
    total = []
    for token in range(40):
        for vector in (k, v, q):
            for i in range(len(vector)):
                x = (x * 1103515 + 12345) & 0xFFFFFF
                vector[i] = ((x >> 8) - 32768) / 8192
        for layer in range(g.layers):
            cache.append(layer, k, v)
            cache.attend(layer, q, out)
        cache.commit()
        total.append(bytes(out))
    return b"".join(total), bytes(cache.buffer)

for codec, shape, more in (
    ("int8", (2, 8, 4, 8), {}),
    ("int8", (2, 6, 2, 16), {"group": 32}),
    ("int8", (1, 4, 2, 32), {"group": 8}),
    ("int8", (1, 3, 1, 12), {"sinks": 2}),
    ("int8", (2, 1, 1, 8), {}),
    ("float16", (2, 4, 2, 8), {}),
    ("int8-int4", (2, 4, 2, 16), {}),
    ("int8-int4", (1, 4, 4, 8), {"group": 16}),
    ("sparse", (1, 4, 2, 8), {}),
    ("int4", (1, 4, 2, 8), {}),
    ("lru-peak", (2, 8, 4, 8), {}),
    ("heavy-hitters", (2, 4, 4, 8), {}),
):
    policy = codec if codec[:3] in ("lru", "hea") else None
    found = []
    for by_name in (False, True):
        g = geometry_for("int8" if policy else codec, *shape, window=16, **dict({"sinks": 0}, **more))
        if policy:
            cache = BudgetCache(g, policy=policy, kernels=kernels.get("thumb"))
        else:
            cache = cache_for(g, kernels=kernels.of(codec).get("thumb"))
        if not by_name:
            print(codec, cache.attention[0].calls is not None)
        found.append(run(cache, g, codec, by_name))
    print(codec, "same" if found[0] == found[1] else "DIFFERENT")
    unload_all()
"""


def test_the_loop_in_assembler_does_what_the_one_by_name_does(qemu) -> None:
    lines = [line.rsplit(" ", 1) for line in qemu.run(CACHES).splitlines()]
    asked = [(codec, said) for codec, said in lines if said in ("True", "False")]
    assert [said for codec, said in lines if said not in ("True", "False")] == ["same"] * 12
    # Where a kernel is not in assembler, or seals blocks, there is the loop by name alone.
    assert {codec for codec, said in asked if said == "False"} == {"sparse", "int4"}


MODEL = r"""
import sys
from stories.image import Image
from stories.model import Llama, make_cache
from stories import kernels

def logits(buffered, name, sinks):
    image = Image(open(sys.argv[1], "rb").read() if buffered else open(sys.argv[1], "rb"))
    llama = Llama(image, make_cache(image, window=8, sinks=sinks), kernels.get(name))
    total = []
    for token in (1, 400, 300, 2, 77, 9, 10, 11, 12, 13, 14, 15, 16, 17):
        llama.step(token, token != 2)
        total.append(bytes(llama.logits))
    print(name, llama.programs is not None)
    return b"".join(total)

for sinks in (0, 2):
    want = logits(True, "viper", sinks)
    print(logits(True, "thumb", sinks) == want, logits(False, "thumb", sinks) == want)
"""


def test_a_program_does_what_calls_by_name_do(qemu) -> None:
    """Of a model that is mapped alone: one of a file reads its weights between calls."""
    said = qemu.run(MODEL, [Path(shipped.image(shipped.NAMES[0]))]).splitlines()
    assert said == ["viper False", "thumb True", "thumb False", "True True"] * 2
