"""What a SealedCache must hold, in numpy: forms, lost tokens and numbers, from docs/SPEC.md and DESIGN.md.

The numbers of a sealed block come from kvlab.quality.sealed, which shares no code with mpy_kv.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kvlab.quality import codecs, sealed

BLOCK = 16


def opened_values(stored: codecs.Ranged) -> np.ndarray:
    """What a sealed block's values are re-opened as: both terms rounded down to what 24 bits hold."""
    m, s = stored.minima.astype(float), stored.scales.astype(float)
    exponent = np.maximum(_exponent(m), _exponent(s) + 4) - 12 - 25
    unit = np.exp2(exponent.astype(float))
    return (
        (np.floor(m / unit)[..., None] + np.floor((s / unit)[..., None] * stored.codes)) * unit[..., None]
    ).astype(np.float32)


def _exponent(x: np.ndarray) -> np.ndarray:
    """Exponent field of a float16, 1 where it has none of its own."""
    return np.maximum(np.abs(x).astype(np.float16).view(np.uint16).astype(int) >> 10, 1)


@dataclass
class Layer:
    """One layer's keys or values. fresh: rows by position; blocks: sealed ones by number; forms: of those,
    and of such as were re-opened and have their tokens still, what was sealed, in a row of numbers."""

    keys: bool
    groups: int
    room: int
    fresh: dict[int, codecs.Symmetric] = field(default_factory=dict)
    blocks: dict[int, sealed.Keys | codecs.Ranged] = field(default_factory=dict)
    forms: dict[int, sealed.Keys | codecs.Ranged] = field(default_factory=dict)

    def store(self, position: int, row: np.ndarray) -> None:
        self.fresh[position] = codecs.symmetric(np.asarray(row, np.float32).reshape(self.groups, -1))

    def seal(self, j: int, first: int) -> None:
        self.blocks[j] = self.forms.get(j) or self._sealed(first)
        if j not in self.forms:
            if j - 1 not in self.forms or j + 1 in self.forms:
                self.forms = {}
            self.forms[j] = self.blocks[j]
            self.forms.pop(j - self.room, None)

    def forget(self, full: int) -> None:
        """Tokens from this block on are written anew."""
        self.forms = {j: form for j, form in self.forms.items() if j < full}

    def _sealed(self, first: int) -> sealed.Keys | codecs.Ranged:
        rows = [self.fresh[p] for p in range(first, first + BLOCK)]
        one = codecs.Symmetric(
            np.stack([r.codes for r in rows])[None], np.stack([r.scales for r in rows])[None]
        )
        return sealed.keys(one) if self.keys else sealed.values(one)

    def reopen(self, j: int, first: int) -> None:
        block = self.blocks.pop(j)
        back = block.values().astype(np.float32) if self.keys else opened_values(block)
        for t in range(BLOCK):
            self.store(first + t, back[0, t])

    def read(self, position: int, j: int | None) -> np.ndarray:
        """Of a sealed block j, or of a fresh row."""
        if j is None:
            return self.fresh[position].values().ravel()
        return self.blocks[j].values()[0, position].ravel()


class Model:
    """One sequence. Tokens that a ring has lost are not forgotten here, only not visible."""

    def __init__(self, layers: int, groups: int, window: int, sinks: int, capacity: int | None) -> None:
        self.sinks, self.capacity = sinks, capacity
        self.window = window if capacity is None else capacity
        self.length, self.ring, self.evicted = 0, [], 0
        blocks = self.window // BLOCK - (capacity is not None)
        self.layers = [(Layer(True, groups, blocks), Layer(False, groups, blocks)) for _ in range(layers)]

    # Which tokens

    def full(self, length: int) -> int:
        return max(0, length - self.sinks) // BLOCK

    def first(self, j: int) -> int:
        return self.sinks + BLOCK * j

    def attends(self, p: int) -> list[int]:
        new = [r for r in range(self.length, p + 1) if r >= self.sinks]
        return [*range(min(self.sinks, p + 1)), *[r for r in self.ring + new if r > p - self.window]]

    def visible(self) -> list[int]:
        return [*range(min(self.sinks, self.length)), *self.ring]

    def _keep(self, ring: list[int]) -> None:
        self.evicted += len(self.ring) - len(ring)
        self.ring = ring

    # What happens

    def begin(self) -> None:
        """Re-open what should be fresh; of a block begun whose tokens are all lost, zeros."""
        fresh = max(0, self.full(self.length) - 1)
        gone = not self.ring
        for pair in self.layers:
            for one in pair:
                one.forget(self.full(self.length))
                for j in sorted(one.blocks, reverse=True):
                    if j >= fresh:
                        if self.first(j) < self.length:
                            one.reopen(j, self.first(j))
                        else:
                            del one.blocks[j]
                if gone:
                    for p in range(self.first(self.full(self.length)), self.length):
                        one.store(p, np.zeros_like(one.fresh[p].codes, np.float32))

    def store(self, layer: int, i: int, k: np.ndarray, v: np.ndarray) -> None:
        """Row i of a step."""
        p = self.length + i
        if i:
            self._seal(layer, p)
        for one, x in zip(self.layers[layer], (k, v), strict=True):
            one.store(p, x)

    def _seal(self, layer: int, length: int) -> None:
        for j in range(self.full(length) - 1):
            for one in self.layers[layer]:
                if j not in one.blocks and self.first(j) in one.fresh:
                    one.seal(j, self.first(j))

    def commit(self, n: int) -> None:
        seen = self.attends(self.length + n - 1)
        self.ring += [p for p in range(self.length, self.length + n) if p >= self.sinks]
        self._keep([p for p in seen if p >= self.sinks])
        self.length += n
        for layer in range(len(self.layers)):
            self._seal(layer, self.length)

    def dropped(self, stored: int) -> None:
        """An uncommitted step of which so many rows were stored in some layer."""
        if stored and self.capacity is None:
            blocks = self.window // BLOCK
            lost = self.sinks + BLOCK * (self.full(self.length + stored) - 1 - blocks)
            self._keep([p for p in self.ring if p >= lost])

    def rollback(self, n: int) -> None:
        self.length -= n
        self.ring = [p for p in self.ring if p < self.length]

    # What is read

    def is_sealed(self, layer: int, p: int) -> bool:
        return p >= self.sinks and (p - self.sinks) // BLOCK in self.layers[layer][0].blocks

    def read(self, layer: int, which: str, p: int) -> np.ndarray:
        one = self.layers[layer][which == "v"]
        if not self.is_sealed(layer, p):
            return one.read(p, None)
        j = (p - self.sinks) // BLOCK
        return one.read(p - self.first(j), j)
