"""Independent model of a cache that keeps a budget of tokens: slots, shares, worths and victims in numpy.

Written from the definitions in words (docs/DESIGN.md, docstrings of mpy_kv/eviction/tokens), on top of
integer_reference.py, which has bytes and attention. Tokens are objects of a table by position; the order of
slots, which decides the order of sums, is a list of positions. Whatever a board holds in a word is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import budget_job
import integer_reference
import numpy as np
from integer_reference import Head, fits, values

NOW = 1 << 29
# name -> (what shares do, of heads the largest one counts, the newer half of the budget is protected)
POLICIES = {
    "window": ("nothing", False, False),
    "lru-attention": ("use", False, False),
    "lru-peak": ("use", True, False),
    "window-lru": ("use", False, True),
    "lfu": ("mass", False, False),
    "lfu-decay": ("decay", False, True),
    "heavy-hitters": ("mass", False, True),
}


def peaks_of(scores: np.ndarray, m: int, e: int) -> np.ndarray:
    """1 for tokens that get more than 8 / n of a head's attention, else 0."""
    u = units_of(scores, m, e)
    return (u * len(u) > 8 * u.sum()).astype(np.int64)


def units_of(scores: np.ndarray, m: int, e: int) -> np.ndarray:
    """Weights, the largest of 2^15."""
    mantissas, shifts = integer_reference.weigh(scores, m, e)
    return mantissas * 8 >> shifts


def shares_of(scores: np.ndarray, m: int, e: int, bits: int) -> np.ndarray:
    """What part of a head's attention each token gets, in 2^-bits, rounded down."""
    u = units_of(scores, m, e)
    total = int(fits(u.sum(), 1 << 15, (1 << 30) - 1))
    up = max(total.bit_length() - 16, 0)
    inverse = (1 << 30) // (total >> up)
    return fits(u * inverse, 0, 1 << 30) >> min(30 + up - bits, 31)


@dataclass
class BudgetRun(integer_reference.Run):
    """A job of device/budget_job.py, run here."""

    policy: str = "window"
    recent: int | None = None
    slots: list[int | None] = field(default_factory=list)  # of the ring: position of its token
    worth: dict[int, int] = field(default_factory=dict)  # by position
    halved: int = 0
    most: int = 0
    evicted: int = 0
    shown: list[list[int]] = field(default_factory=list)
    victims: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.slots = [None] * (self.window + 1)
        self.kind, self.peak, half = POLICIES[self.policy]
        if self.recent is None:
            self.recent = max(1, self.window // 2) if half else 1
        self.heads = self.geometry["layers"] * self.geometry["heads"]
        self.row_bits = self.bits(self.heads)

    @staticmethod
    def bits(rows: int) -> int:
        return max(b for b in range(21) if rows << b < 1 << 29)

    def shifts(self, layer: int) -> tuple[int, int, int, int | None]:
        if not self.int16:
            return 0, 0, 0, None
        return budget_job.K_SHIFT, budget_job.V_SHIFT, budget_job.K_SHIFT, budget_job.V_SHIFT

    # Places

    def ring_tokens(self) -> list[int]:
        return sorted(p for p in self.slots if p is not None)

    def close_up(self) -> None:
        """The last token goes to the first hole, until there is none before it."""
        while True:
            free = self.slots.index(None)
            last = max((i for i, p in enumerate(self.slots) if p is not None), default=-1)
            if last < free:
                return
            self.slots[free], self.slots[last] = self.slots[last], None

    def victim(self, worth: dict[int, int], recent: int) -> int:
        """The least worthy, of equals the older; of the newest positions only where there is no other."""
        kept = self.ring_tokens()
        return min(
            kept, key=lambda p: (p >= self.length - recent, 0 if p >= self.length - recent else worth[p], p)
        )

    # Steps

    def tokens(self, first: int, n: int, attended: bool, layers: int | None = None) -> None:
        """A step; of so many layers, then left: nothing but the order of slots may have changed."""
        new = [p for p in range(self.length, self.length + n) if p >= self.sinks]
        kept = self.ring_tokens()
        if len(kept) < self.window:
            self.close_up()
        if not kept:
            self.halved = self.most = 0
        gone = None
        if len(kept) + len(new) > self.window:
            assert n == 1
            gone = self.victim(self.worth, self.recent)
        before = list(self.slots)
        at = self.slots.index(None)
        self.slots[at : at + len(new)] = new
        assert len(self.slots) == self.window + 1
        order = list(range(min(self.sinks, self.length + n)))
        order += [p for p in self.slots if p is not None and p != gone]

        rows = self.heads * n
        bits = self.bits(rows)
        total = np.zeros(len(order), np.int64)
        for layer in range(layers or self.geometry["layers"]):
            for i in range(n):
                self.store(first + i, layer, self.length + i)
                if attended:
                    seen = [p for p in order if p <= self.length + i]
                    self.outputs.append(self.attention(first + i, layer, seen, total, bits))
        fits(total, 0, (1 << 29) - 1)
        if layers:
            self.slots = before
            return
        for p in new:
            self.worth[p] = NOW + 1 if self.kind == "use" else 0
        self.length += n
        if gone is not None:
            self.slots[self.slots.index(gone)] = None
            self.victims.append(gone)
            self.evicted += 1
        self.watch(dict(zip(order, total.tolist())), rows, bits, n, len(order))
        self.ring = self.ring_tokens()

    def attention(self, token: int, layer: int, seen: list[int], total: np.ndarray, bits: int) -> np.ndarray:
        """Output row of a token that sees `seen`, in this order; each head's shares go to `total`."""
        g = self.geometry
        sinks = sum(p < self.sinks for p in seen)
        k, ks = self.planes(layer, "k", seen)
        v, vs = self.planes(layer, "v", seen)
        dim, group = g["head_dim"], g["group"]
        slices = dim // min(dim, group)
        _, _, q, qs = self.parts(token, layer)
        _, _, q_shift, out_shift = self.shifts(layer)
        out = []
        for h in range(g["heads"]):
            kv = h * g["kv_heads"] // g["heads"]
            cut = slice(kv * dim // group, kv * dim // group + slices)
            mine = slice(h * dim, (h + 1) * dim)
            unit = 1 if self.v_most == 127 else 16
            head = Head(k[:, kv], ks[:, cut], v[:, kv], vs[:, cut], sinks, unit)
            sink_query = values(qs[mine], q_shift) if self.sinks else None
            one = values(q[mine], q_shift)
            out.append(integer_reference.attend(head, one, sink_query, out_shift))
            scores = integer_reference.score(head, one, sink_query)
            if self.peak:
                total[: len(seen)] |= peaks_of(*scores)
            else:
                total[: len(seen)] += shares_of(*scores, bits)
        return np.concatenate(out)

    def watch(self, total: dict[int, int], rows: int, bits: int, n: int, visible: int) -> None:
        if self.kind == "nothing":
            return
        limit = 0 if self.peak else (rows << bits) // (2 * visible)
        down = (self.heads << self.row_bits).bit_length() - 21
        up = self.row_bits - bits
        drop = 0
        if self.kind == "mass":
            while self.most >> drop >= 1 << 28 or n >> self.halved + drop > 64:
                drop += 1
            self.halved = min(self.halved + drop, 20)
        tokens = [p for p in self.ring_tokens() if p in total]
        for p in tokens:
            old, x = self.worth[p], total[p]
            if self.kind == "use":
                self.worth[p] = NOW if x > limit else max(old - 1, 0)
                continue
            if self.kind == "decay":
                old = old * 61 // 64
                x //= n
            else:
                old >>= drop
            self.worth[p] = fits(old + int(np.floor(np.ldexp(x, up - down - self.halved))), 0, NOW - 1)
        if self.kind == "mass":
            self.most = max((self.worth[p] for p in tokens), default=0)

    # The rest

    def forget(self, positions: Any) -> None:
        self.slots = [None if p in positions else p for p in self.slots]
        self.ring = self.ring_tokens()

    def rollback(self, n: int) -> None:
        self.length -= n
        self.forget([p for p in self.ring_tokens() if p >= self.length])

    def compress(self, ratio: float, recent: int) -> None:
        kept = self.ring_tokens()
        safe = [p for p in kept if p >= self.length - recent]
        stay = max(int(np.floor(len(kept) * ratio + 0.5)), 1, len(safe))
        by_worth = sorted((p for p in kept if p not in safe), key=lambda p: (self.worth[p], p))
        leave = by_worth[: len(kept) - stay] if kept else []
        self.evicted += len(leave)
        self.forget(leave)

    def visible(self) -> list[int]:
        return list(range(min(self.sinks, self.length))) + self.ring_tokens()

    def run(self, ops: list) -> BudgetRun:
        token = 0
        for name, *about in ops:
            if name in ("step", "prefill", "silent"):
                n = about[0] if about else 1
                self.tokens(token, n, name != "silent")
                token += n
            elif name == "append-only":
                self.tokens(token, 1, True, layers=1)
                token += 1
            elif name != "abort":
                getattr(self, name)(*about)
            self.shown.append(self.visible())
        return self


def reference(job: dict[str, Any]) -> BudgetRun:
    """The model after a job. `group` must be given."""
    g, options = dict(job["geometry"]), dict(job["cache"])
    int16 = options.pop("int16", False)
    tokens = sum(op[1] if op[0] in ("prefill", "silent") else 1 for op in job["ops"])
    data = []
    for token in range(tokens):
        layers = []
        for layer in range(g["layers"]):
            parts = budget_job.vectors(job, token, layer)
            shifts = (budget_job.K_SHIFT, budget_job.V_SHIFT, budget_job.K_SHIFT, budget_job.K_SHIFT)
            kind = np.int16 if int16 else np.float32
            row = [
                np.array(x, kind) if int16 else np.ldexp(np.array(x, kind), -s) for x, s in zip(parts, shifts)
            ]
            layers.append(np.concatenate(row))
        data.append(layers)
    cache = {"kv_shift": [[budget_job.K_SHIFT, budget_job.V_SHIFT]] * g["layers"]} if int16 else {}
    return BudgetRun(g, cache, np.array(data), **options).run(job["ops"])


def expected(job: dict[str, Any]) -> dict[str, Any]:
    """What device/budget_job.py should print."""
    run = reference(job)
    kept = run.ring_tokens()
    return {
        "outputs": rows_of(run, job),
        "visible": run.shown,
        "worth": [[p, run.worth[p] if run.kind != "nothing" else 0] for p in kept],
        "evicted": run.evicted,
    }


def rows_of(run: BudgetRun, job: dict[str, Any]) -> list[str]:
    """Outputs as the device prints them: a string for each attend."""
    rows = iter(run.outputs)
    found = []
    for name, *about in job["ops"]:
        if name in ("step", "prefill"):
            for _ in range(run.geometry["layers"]):
                n = about[0] if about else 1
                found.append(b"".join(next(rows).tobytes() for _ in range(n)).hex())
        elif name == "append-only":
            found.append(next(rows).tobytes().hex())
    return found
