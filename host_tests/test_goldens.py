"""Golden files: plain on CPython, plain and viper on the unix port give the reference's bits."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import integer_reference
import numpy as np
import pytest
from jobs import Job
from kv_reference import Layout

NAMES = sorted(path.stem for path in integer_reference.GOLDENS.glob("*.json"))


class Golden:
    """One golden job: what goes in, and the bytes that must come out."""

    def __init__(self, name: str) -> None:
        at = integer_reference.GOLDENS / name
        self.job = json.loads(at.with_suffix(".json").read_text())
        self.raw = (at.parent / self.job.get("data", name)).with_suffix(".data").read_bytes()
        self.want = at.with_suffix(".out").read_bytes()
        g = self.job["geometry"]
        int16 = self.job["cache"].get("kv_shift") is not None
        width, q_row = g["kv_heads"] * g["head_dim"], g["heads"] * g["head_dim"]
        data = np.frombuffer(self.raw, "<i2" if int16 else "<f4")
        self.data = data.reshape(-1, g["layers"], 2 * width + 2 * q_row)
        cuts = np.cumsum([width, width, q_row])
        self.runner = Job(g, self.job["ops"], *np.split(self.data, cuts, axis=-1), **self.job["cache"])
        assert self.runner.data == self.raw
        self.layout = Layout(**g)

    def reference(self) -> integer_reference.Run:
        """The whole job in the reference."""
        return integer_reference.Run(self.job["geometry"], self.job["cache"], self.data).run(self.job["ops"])

    def image(self, outputs: np.ndarray, buffer: bytes, visible: list[int]) -> bytes:
        """The bytes of a run in the order of the golden file."""
        raw = [outputs.tobytes()]
        slots = [self.layout.slot(p) for p in visible]
        for layer in range(self.layout.layers):
            for value in (False, True):
                codes, _ = self.layout.planes(buffer, layer, value)
                if self.layout.floats:
                    raw.append(codes[:, slots].transpose(1, 0, 2).astype("<f2").tobytes())
                    continue
                raw.append((codes[:, slots] + 128).astype(np.uint8).transpose(1, 0, 2).tobytes())
                at = self.layout.plane_at(layer, value) + self.layout.codes[value]
                halves = np.frombuffer(buffer, "<u2", self.layout.groups * self.layout.slots, at)
                raw.append(halves.reshape(self.layout.groups, -1)[:, slots].T.tobytes())
        return b"".join(raw)


@functools.cache
def visible(name: str) -> list[int]:
    """Positions at the end, by the reference."""
    return Golden(name).reference().visible()


def test_there_are_goldens() -> None:
    assert len([name for name in NAMES if name.startswith("int8_int4")]) >= 7
    assert len([name for name in NAMES if name.startswith("sparse")]) >= 7
    assert len([name for name in NAMES if name.startswith("float16")]) >= 7
    assert len(NAMES) >= 15


@pytest.mark.parametrize("name", NAMES)
def test_reference_still_writes_them(name: str, tmp_path: Path) -> None:
    assert Golden(name).reference().image() == Golden(name).want


@pytest.mark.parametrize("where", ["plain on CPython", "plain on unix", "viper on unix"])
@pytest.mark.parametrize("name", NAMES)
def test_every_runtime_gives_the_same_bits(name: str, where: str, upy) -> None:
    golden = Golden(name)
    if where == "plain on CPython":
        outputs, buffer = golden.runner.plain()
    else:
        outputs, buffer = golden.runner.unix(upy, where.split()[0])
    got = golden.image(outputs, buffer, visible(name))
    rows = outputs.nbytes
    want_outputs = np.frombuffer(golden.want[:rows], outputs.dtype).reshape(outputs.shape)
    differing = np.argwhere(outputs.view(f"u{outputs.itemsize}") != want_outputs.view(f"u{outputs.itemsize}"))
    assert not len(differing), f"first differing output (row, channel): {differing[0]}"
    assert got == golden.want
    if where != "plain on CPython":
        assert buffer == golden.runner.plain()[1], "scratch differs, though nothing that counts does"
