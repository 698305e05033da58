"""Random and extreme calls of the stories kernels, as device/stories_kernels.py takes them."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
for folder in (HERE / "device", HERE.parent / "boards" / "apps"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
import stories_kernels  # noqa: E402
from stories import kernels  # noqa: E402
from stories.kernels.tables import EXP2, SIGMOID, SINE  # noqa: E402

LIMIT = (1 << 30) - 1
MASK = 0x00FF00FF
ROOT_ONE = 1 << 14
CODES = {"B": np.uint8, "h": np.int16, "H": np.uint16, "i": np.int32}

Case = list  # [kernel, [argument, ...]]


def buffer(code: str, values) -> list[str]:
    """A buffer argument. Values are taken modulo its width."""
    wide = np.asarray(values, np.int64)
    return [code, wide.astype(CODES[code]).tobytes().hex()]


def array(argument: list[str]) -> np.ndarray:
    """The numbers of a buffer argument, int64."""
    return np.frombuffer(bytes.fromhex(argument[1]), CODES[argument[0]]).astype(np.int64)


def padded(n: int) -> int:
    return -(-n // 32) * 32


class Maker:
    """Draws cases from one seeded generator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.RandomState(seed)

    def ints(self, count: int, limit: int) -> np.ndarray:
        """Within +-limit: bell-shaped, wild, tiny, all at an end, or zero."""
        kind = self.rng.randint(6)
        if kind == 0:
            return self.rng.choice([-limit, limit], count)
        if kind == 1:
            return np.full(count, limit * self.rng.choice([-1, 0, 1]))
        if kind == 2:
            return np.clip(self.rng.randint(-3, 4, count), -limit, limit)
        size = limit * 10.0 ** -self.rng.uniform(0, 8)
        x = self.rng.standard_normal(count) * size
        if kind == 3:  # one channel far beyond the others
            x[self.rng.randint(count)] *= 300
        return np.clip(np.rint(x), -limit, limit).astype(np.int64)

    def rows(self, rows: int, groups: int, largest: bool) -> np.ndarray:
        """Matrix rows: codes 1..255, scales 0..4095, padding to a word."""
        out = np.zeros((rows, 34 * groups + (2 * groups) % 4), np.uint8)
        codes = self.rng.randint(1, 256, (rows, 32 * groups))
        scales = self.rng.randint(0, 4096, (rows, groups))
        if largest:
            codes = self.rng.choice([1, 255], codes.shape)
            scales[:] = 4095
        out[:, : 32 * groups] = codes
        out[:, 32 * groups : 34 * groups] = scales.astype("<u2").view(np.uint8)
        return out

    def n(self, most: int = 100) -> int:
        return int(self.rng.randint(1, most + 1))

    # One maker per kernel; each yields cases whose arguments respect the kernel's contract.

    def embed(self) -> Case:
        n = self.n()
        rows = self.rows(3, padded(n) // 32, self.rng.rand() < 0.3)
        at = int(self.rng.randint(3)) * rows.shape[1]
        a = [n, padded(n), 2, at, int(self.rng.randint(-45, 30))]
        return ["embed", [buffer("B", rows.ravel()), buffer("i", np.zeros(n + 3)), buffer("i", a)]]

    def norm(self) -> Case:
        n = self.n()
        v = np.concatenate([self.ints(n, LIMIT), np.full(padded(n) + 2, 99)])
        eps = int(self.rng.choice([0, 42950, (1 << 29) - 1]))
        a = [n, padded(n), n + 1, 0, 0, 0, 2, 0, int(self.rng.randint(-20, 3)), eps]
        w = np.concatenate([[77], self.ints(n, 32767)])
        w[-1] = self.rng.choice([-32768, w[-1]])
        return ["norm", [["B", buffer("h", w)[1]], buffer("i", v), buffer("i", a)]]

    def quant(self) -> Case:
        n = 32 * self.n(6)
        v = np.concatenate([self.ints(n, 1 << 30), np.full(2 + 25 * n // 32, -7)])
        if self.rng.rand() < 0.5:  # groups of very different size
            v[:n] = v[:n] >> np.repeat(self.rng.randint(0, 31, n // 32), 32)
        root = int(self.rng.choice([ROOT_ONE, 1 << 15, self.rng.randint(1 << 14, 1 << 15)]))
        a = [n, n, 0, n, root, int(self.rng.randint(-40, 20))]
        return ["quant", [buffer("i", v), buffer("i", a)]]

    def codes(self, groups: int, largest: bool) -> np.ndarray:
        """Codes [groups][8][4] of an activation vector: fours whose magnitudes add up to 258 at most."""
        fours = np.sort(self.rng.randint(0, 259, (groups, 8, 3)), 2)
        if largest:  # all at once, or shared out evenly
            alone = [[0, 0, 0], [0, 0, 258], [0, 258, 258], [258, 258, 258]]
            fours = np.array([*alone, [64, 129, 193], [65, 129, 194]])
            fours = fours[self.rng.randint(len(fours), size=(groups, 8))]
        codes = np.diff(fours, axis=2, prepend=0, append=258)
        if not largest:
            codes = codes * self.rng.randint(0, 65, (groups, 8, 1)) // 64
        return codes * self.rng.choice([-1, 1], codes.shape)

    def activation(self, groups: int, codes: np.ndarray | None = None) -> np.ndarray:
        """An activation vector made by hand; codes [groups][8][4]."""
        if codes is None:
            codes = self.codes(groups, largest=False)
        c0, c1, c2, c3 = np.moveaxis(codes, 2, 0)
        even, odd = c2 + (c0 << 16), c3 + (c1 << 16)
        body = np.zeros((groups, 25), np.int64)
        body[:, 0:24:3] = even
        body[:, 1:24:3] = odd - (even << 8)
        body[:, 2:24:3] = (1 << 15) - (even + odd) * 0x00800080
        body[:, 24] = (1 << 14) // groups
        first = [self.rng.randint(1 << 14, 1 << 15), self.rng.randint(-50, 1)]
        return np.concatenate([first, body.ravel()]).astype(np.int32).astype(np.int64)

    def matvec(self) -> Case:
        groups, rows = self.n(5), self.n(6)
        largest = self.rng.rand() < 0.3
        codes = None
        if largest and self.rng.rand() < 0.2:
            groups, rows = 256, 2
        w = self.rows(rows, groups, largest)
        if largest:
            codes = self.codes(groups, largest)
            if self.rng.rand() < 0.5:  # every product of the first row has the same sign
                signs = np.where(w[0, : 32 * groups] > 128, 1, -1).reshape(groups, 8, 4)
                codes = np.abs(codes) * signs * self.rng.choice([-1, 1])
        act = self.activation(groups, codes)
        skip = w.shape[1] - 32 * groups
        v = np.concatenate([[5], act, np.zeros(rows)])
        a = [0, rows, groups, skip, 1, 1 + len(act), int(self.rng.randint(-30, 20))]
        return ["matvec", [buffer("B", w.ravel()), buffer("i", v), MASK, buffer("i", a)]]

    def rope_table(self) -> Case:
        n = self.n(8)
        inc = self.rng.choice([0, 1, 1 << 29, 1 << 31, (1 << 32) - 1, 683565276], n)
        wild = self.rng.rand(n) < 0.6
        inc[wild] = self.rng.randint(0, 1 << 32, wild.sum())
        position = int(self.rng.choice([0, 1, 70000, (1 << 30) - 1, self.rng.randint(1 << 30)]))
        args = [buffer("i", inc), buffer("h", np.zeros(2 * n)), buffer("H", SINE)]
        return ["rope_table", [*args, buffer("i", [n, position])]]

    def rotate(self) -> Case:
        heads, pairs = self.n(4), self.n(6)
        angle = self.rng.uniform(0, 7, pairs)
        cs = np.stack([np.cos(angle), np.sin(angle)], -1).ravel() * 32767
        if self.rng.rand() < 0.3:
            cs = np.full(2 * pairs, 23170)
        v = np.concatenate([[1, 2], self.ints(2 * heads * pairs, int(self.rng.choice([32767, LIMIT])))])
        step, gap = (2, 1) if self.rng.rand() < 0.5 else (1, pairs)
        args = [buffer("i", v), buffer("h", np.zeros(2 * heads * pairs)), buffer("h", np.rint(cs))]
        return ["rotate", [*args, buffer("i", [2, heads, pairs, step, gap])]]

    def narrow(self) -> Case:
        n = self.n()
        v = np.concatenate([[3], self.ints(n, int(self.rng.choice([40000, LIMIT])))])
        return ["narrow", [buffer("i", v), buffer("h", np.zeros(n)), buffer("i", [1, n])]]

    def widen(self) -> Case:
        n = self.n()
        v = np.full(padded(n) + 1, 9)
        return ["widen", [buffer("h", self.ints(n, 32767)), buffer("i", v), buffer("i", [n, padded(n), 1])]]

    def swiglu(self) -> Case:
        n = self.n()
        v = np.concatenate([self.ints(n, LIMIT), self.ints(n, LIMIT), np.full(padded(n), 4)])
        in_place = self.rng.rand() < 0.5 and padded(n) == n
        a = [n, padded(n), 0 if in_place else 2 * n, 0, ROOT_ONE, 0, 0, n]
        return ["swiglu", [buffer("i", v), buffer("H", SIGMOID), buffer("i", a)]]

    def add(self) -> Case:
        n = self.n()
        v = np.concatenate([self.ints(n, LIMIT), self.ints(n, LIMIT)])
        return ["add", [buffer("i", v), buffer("i", [n, 0, n])]]

    def argmax(self) -> Case:
        n = self.n()
        v = np.concatenate([[LIMIT], self.ints(n, LIMIT)])
        return ["argmax", [buffer("i", v), buffer("i", [n, 1])]]

    def softmax(self) -> Case:
        n = self.n(600)
        limit = int(self.rng.choice([LIMIT, 20 << 16, 1 << 16]))
        v = np.concatenate([[8], self.ints(n, limit)])
        a = [n, 1, int(self.rng.randint(1 << 14, 1 << 15)), int(self.rng.randint(-9, 12)), 20, 0]
        return ["softmax", [buffer("i", v), buffer("H", EXP2), buffer("i", a)]]

    def pick(self) -> Case:
        n = self.n(60)
        bits = int(self.rng.choice([20, 24]))
        w = self.rng.randint(0, 1 << bits, n) >> self.rng.randint(0, bits, n)
        w[self.rng.randint(n)] = 1 << bits
        if self.rng.rand() < 0.2:
            w[:] = 1 << bits  # ties everywhere
        state = int(self.rng.choice([1, -1, -(1 << 31), self.rng.randint(1, 1 << 31)]))
        part = int(self.rng.choice([0, 1, 16384, 29491, 32767, 32768]))
        a = [n, 1, 0, 0, bits, w.sum(), part, state]
        return ["pick", [buffer("i", [0, *w]), buffer("i", a)]]


NAMES = kernels.NAMES


def draw(seed: int, each: int) -> Iterator[Case]:
    """`each` cases of every kernel."""
    maker = Maker(seed)
    for _ in range(each):
        for name in NAMES:
            yield getattr(maker, name)()


def plain(cases: list[Case]) -> list[list]:
    """Results of the plain kernels in this process."""
    return [stories_kernels.run(case, kernels.get("plain")) for case in cases]


def unix(upy, cases: list[Case], kernel_set: str, **how: str) -> list[list]:
    """Results on the unix port, or what is called like it; `how` goes to its run()."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "cases"), os.path.join(folder, "out")
        Path(source).write_text("".join(json.dumps(case) + "\n" for case in cases))
        upy.run(
            HERE / "device" / "stories_kernels.py", [source, out, kernel_set], heap_bytes=32 << 20, **how
        )
        return [json.loads(line) for line in Path(out).read_text().splitlines()]
