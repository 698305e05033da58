"""Independent reference of every stored bit and of the attention in integers, vectorised in numpy int64.

Written from the definition in words (the docstrings of mpy_kv/kernels/plain.py), not from its code: tokens
are kept by position instead of by slot, magnitudes come from exact float64 arithmetic instead of bit
fields, tables from their mathematical definition, visibility from a list. Every value that a 32-bit kernel
holds in a register goes through `fits`, so a run of this file also proves that nothing overflows.

python host_tests/integer_reference.py --write    writes host_tests/goldens/
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

GOLDENS = Path(__file__).with_name("goldens")
Ints = np.ndarray

# 2^-x in 1/256 steps, unit 1/4096, rounded to nearest.
EXP2 = np.floor(4096 * 2.0 ** (-np.arange(256) / 256) + 0.5).astype(np.int64)


def fits(x: Any, low: int = -(1 << 31), high: int = (1 << 31) - 1) -> Any:
    """`x`, which a board holds in a signed word."""
    assert np.min(x) >= low, (np.min(x), low)
    assert np.max(x) <= high, (np.max(x), high)
    return x


def values(x: np.ndarray, shift: int) -> np.ndarray:
    """What the elements mean, exactly, in float64: int16 * 2^-shift, or float32 without its denormals."""
    if x.dtype.kind == "i":
        return np.ldexp(x.astype(float), -shift)
    return np.where(np.abs(x) < 2.0**-126, 0, x.astype(float))


def scale_for(largest: float, codes: int, lowest: int = -(10**6)) -> tuple[int, int]:
    """The smallest s = sm * 2^se >= largest / codes with sm of 11 bits and se >= lowest; (sm, se)."""
    mantissa, exponent = np.frexp(largest)
    whole, exponent = int(mantissa * 2**24), int(exponent) - 24  # exact: 24 significant bits
    for se in range(max(exponent + 6, lowest), exponent + 600):
        # ceil(whole * 2^exponent / (codes * 2^se))
        sm = -(-whole // (codes << (se - exponent)))
        if sm < 2048:
            return sm, se
    raise AssertionError("no scale")


def codes_of(x: np.ndarray, sm: int, se: int) -> Ints:
    """x / s rounded, halves away from zero."""
    n = np.floor(np.ldexp(np.abs(x), 1 - se)).astype(np.int64)
    return np.sign(x).astype(np.int64) * (fits(n + sm) // (2 * sm))


def encode(x: np.ndarray, group: int, most: int) -> tuple[Ints, Ints]:
    """One vector [width] to codes -most..most [width] and float16 bit patterns [groups]."""
    codes, halves = [], []
    for part in x.reshape(-1, group):
        largest = np.abs(part).max()
        if not largest:
            codes.append(np.zeros(group, np.int64))
            halves.append(0)
            continue
        sm, se = scale_for(largest, most, lowest=-24)
        assert se <= 5, "not storable"
        half = np.float16(np.ldexp(float(sm), se))
        assert float(half) == np.ldexp(float(sm), se)
        codes.append(codes_of(part, sm, se))
        halves.append(int(half.view(np.uint16)))
    return fits(np.concatenate(codes), -most, most), np.array(halves, np.int64)


def keep(x: np.ndarray, codes: Ints, group: int) -> Ints:
    """The codes of a vector, 0 for the quarter of each group, rounded down, that is smallest: the values are
    taken by size, of equal ones the lower channel first."""
    kept = np.zeros_like(codes)
    for first in range(0, len(x), group):
        by_size = sorted(range(first, first + group), key=lambda c: (-abs(x[c]), c))
        chosen = by_size[: -(-3 * group // 4)]
        kept[chosen] = codes[chosen]
    return kept


def relative(halves: Ints) -> tuple[Ints, Ints, int]:
    """Scales of all visible tokens and slices: 11 bits of each, how far its exponent is from the largest, and
    that one, as if denormals had more exponents: value = bits * 2^(largest - distance - 25)."""
    # A float16 is exact in float64, whose exponent is not limited.
    mantissas, exponents = np.frexp(halves.astype(np.uint16).view(np.float16).astype(float))
    exponents = np.where(halves, exponents + 14, -99)
    top = int(exponents.max()) if halves.any() else 1
    return np.ldexp(mantissas, 11).astype(np.int64), np.where(halves, np.minimum(top - exponents, 30), 0), top


def log2e_over_root(head_dim: int) -> tuple[int, int]:
    """log2(e) / sqrt(head_dim) = m * 2^-e, m rounded to 15 bits."""
    x = np.log2(np.e) / np.sqrt(head_dim)
    e = 15 - int(np.frexp(x)[1])
    m = int(np.floor(np.ldexp(x, e) + 0.5))
    return (m, e) if m < 1 << 15 else (m >> 1, e - 1)


def to_halves(x: np.ndarray) -> np.ndarray:
    """float16 of the values of a vector."""
    assert np.abs(x).max() <= 65504, "not storable"
    return x.astype(np.float16)


def fixed(x: np.ndarray, top: int, below: Ints, places: int) -> Ints:
    """float16 numbers [n][dim] in units of 2^(top - 16 - places), each token's times 2^below, rounded towards
    zero; 0 if they are then 2^(places + 1) times smaller than what has the exponent `top`. Where bits may be
    cut off, a negative one becomes what is less in magnitude, always. Where `below` is not 0, those that have
    no exponent count as of exponent 0, hidden bit included."""
    bits = x.view(np.uint16).astype(int)
    fields = (bits >> 10 & 31) + below[:, None]
    steps = np.floor(np.ldexp(1.0, places + np.maximum(fields, 1) - top))
    sizes = ((bits & 1023) + np.where(fields, 1024, 0)) * steps / 512
    negative = np.where((steps > 0) & (steps < 512), 1 - np.ceil(sizes), -sizes)
    most = 1 << places + 2
    return fits(np.where(bits >> 15, negative, np.floor(sizes)).astype(np.int64), -most, most)


def exponents(x: np.ndarray) -> Ints:
    """Of each token's largest float16 number, as if denormals had more of them; of nothing -9."""
    largest = np.abs(x.astype(float)).max(-1)
    return np.where(largest, np.frexp(largest)[1] + 14, -9)


@dataclass
class Head:
    """What one query head sees: codes [n][head_dim], scale bits [n][slices]; first the sinks. Of floats
    float16 numbers take the place of codes."""

    k: Ints
    k_scales: Ints
    v: Ints
    v_scales: Ints
    sinks: int
    v_unit: int = 1  # what a step of a value's code counts in sums of 8-bit codes
    floats: bool = False


def query_codes(q: np.ndarray, qs: np.ndarray | None) -> tuple[Ints, Ints, int, int]:
    """Codes -64..64 of q and of the sinks' query on one scale (sm, se)."""
    both = q if qs is None else np.concatenate([q, qs])
    largest = np.abs(both).max()
    sm, se = scale_for(largest, 64) if largest else (1024, 0)
    codes = fits(codes_of(both, sm, se), -64, 64)
    return codes[: len(q)], codes[-len(q) :], sm, se


def code_dots(head: Head, rows: Ints) -> tuple[Ints, Ints, Ints, int]:
    """(dots [n][slices], and of their scales bits, distances, the exponent)."""
    n, slices = head.k_scales.shape
    # The kernels add unsigned codes, two products to a word, and subtract the offset at once.
    fits(((head.k + 128) * rows).reshape(n, slices, -1).cumsum(-1), -(1 << 28), 1 << 28)
    return (head.k * rows).reshape(n, slices, -1).sum(-1), *relative(head.k_scales)


def score(head: Head, q: np.ndarray, qs: np.ndarray | None) -> tuple[Ints, int, int]:
    """(scores [n], m, e): log2 weight = score * m * 2^-e."""
    n, dim = head.k.shape
    slices = head.k_scales.shape[1]
    codes, sink_codes, sm, se = query_codes(q, qs)
    most = max(int(np.abs(codes).sum()), int(np.abs(sink_codes).sum()))
    down = 0
    while (127 * most >> down) + slices > 1 << 19:
        down += 1
    rows = np.where(np.arange(n)[:, None] < head.sinks, sink_codes, codes)
    if head.floats:
        own = exponents(head.k)
        below = own.max() - np.maximum(own, 12)
        below = np.where(below < 4, 0, np.minimum(below, 30))
        spare = 8 - max(3, (dim - 1).bit_length())  # a sum of dim products of 6 and 17 + spare bits fits
        dots = fits((fixed(head.k, own.max(), below, 15 + spare) * rows).cumsum(-1))[:, -1:]
        factors, distances = np.full((n, 1), 1 << max(0, -spare)), below[:, None] + max(0, spare)
        top = own.max() - 6
    else:
        dots, factors, distances, top = code_dots(head, rows)
    scores = fits(fits((fits(dots) >> down) * factors, -(1 << 30), 1 << 30) >> distances).sum(-1)
    fits(scores, -(1 << 30), 1 << 30)
    root, root_e = log2e_over_root(dim)
    product = fits(sm * root)
    cut = 10 if product < 1 << 25 else 11
    # value = score * 2^down (dot) * sm 2^se (query) * 2^(top - 25) (key scale) * root 2^-root_e
    return scores, fits(product >> cut, 1 << 14, (1 << 15) - 1), root_e - se - down - top + 25 - cut


def weigh(scores: Ints, m: int, e: int) -> tuple[Ints, Ints]:
    """2^(score - largest) as mantissas <= 4096 and right shifts; beyond 28 doublings 0."""
    below = fits(scores.max() - scores, 0)
    e -= 8  # steps of 1/256
    if e < 1:  # one unit of score is more than 28 doublings
        t = np.where(below, 1 << 20, 0)
    else:
        cut = min(max(e - 17, 0), 31)
        small = below >> cut
        e = min(e, 17)
        near = np.minimum(small, (1 << 16) - 1)
        t = fits(near * m) >> e  # rounded down
        t = np.where(small < 1 << 16, t, 1 << 20)
    seen = t < 7168
    return np.where(seen, EXP2[t & 255], 0), np.where(seen, t >> 8, 0)


@dataclass
class Batch:
    """Small weights of a batch of 8 tokens: in each part weights, the factor of their sums, and how far the
    product is shifted down into the unit of all batches."""

    parts: list[tuple[Ints, int, int]]

    @classmethod
    def of(cls, u: Ints, total: int, scaled: int, batches: int) -> Batch:
        """u: weights times scales; total: the sum of all weights, which says what unit sums have; scaled: of
        all `batches` the sum of u >> 13. One that all together weigh less than 2^-12 of that is left out."""
        whole = int(fits(u.sum()))
        size = whole.bit_length()
        down = total.bit_length() + 1 - size
        if whole <= scaled * 2 >> batches.bit_length() or down > 31:
            return cls([])
        assert down >= 1
        # In 1/2^15 of the power of two above the sum, rounded down.
        parts, sums = (np.floor(np.ldexp(x, 15 - size)).astype(np.int64) for x in (u, np.array(whole)))
        step = int(sums) // 128 + 1
        step += (step - 1) // 64
        assert 131 <= step <= 259
        fine = fits(parts * int(np.floor(2**21 / step + 0.5)))  # 20 bits behind the point
        if whole >> 11 > scaled and down < 27:
            # A quarter of all: in 32nds of the unit, cut off where the sum so far is.
            cuts = np.diff(np.cumsum(fine) >> 15, prepend=0)
            assert down + 5 < 32
            return cls([(cuts >> 5, 64 * step, down), (cuts & 31, 64 * step, down + 5)])
        small = fits((fine + 2**19) // 2**20)
        off = int((small.sum() << 20) - sums * int(np.floor(2**21 / step + 0.5)))
        moved = (small << 20) - fine
        while small.max() >= 64 and abs(off) > 1.25 * 2**20:
            up = 1 if off > 0 else -1
            farthest = int(np.argmax(moved * up))
            small[farthest] -= up
            moved[farthest] = 0
            off -= up << 20
        count = int(small.sum())
        factor = int(fits(int(sums) * int(np.floor(2**21 / count + 0.5)))) >> 14
        return cls([(small, factor, down)])


def mix(head: Head, mantissas: Ints, shifts: Ints) -> tuple[Ints, int, int]:
    """Sums of weight * scale * code per channel: (sums, their binary exponent, weights' sum)."""
    n, dim = head.v.shape
    slices = head.v_scales.shape[1]
    if head.floats:
        largest = int(exponents(head.v).max())
        factors, lower, top = np.full((n, 1), (1024 << 5) + 1), np.ones((n, 1), int), largest - 6
    else:
        bits, distances, top = relative(head.v_scales)
        factors = np.where(bits, bits * 32 + distances + 1, 0)
        lower = distances + 1
    total = int(((mantissas << 15) >> shifts).sum())
    assert total < 1 << 46
    sums = []
    for piece in range(slices):
        u = fits(fits(mantissas * factors[:, piece]) >> lower[:, piece] >> shifts, 0, (1 << 27) - 1)
        if head.floats:
            codes = fixed(head.v, largest, np.zeros(n, int), 20)
        else:
            codes = fits(head.v * head.v_unit + 128, 1, 255).reshape(n, slices, -1)[:, piece]
        scaled = sum(int(u[at : at + 8].sum()) >> 13 for at in range(0, n, 8))
        acc = np.zeros(codes.shape[1], np.int64)
        corr = 0
        for at in range(0, n, 8):
            for p, factor, down in Batch.of(u[at : at + 8], total, scaled, -(-n // 8)).parts:
                fits(p, 0, 257)
                fits(factor, 0, (1 << 22) // 245)
                lane = (codes[at : at + 8] * p[:, None]).sum(0)
                if head.floats:
                    # Rounded, where the others are cut off: they are from an offset that is cut off as well.
                    fits((fits(lane) >> 15) * factor)
                    acc = fits(acc + (fits((lane * factor >> 15) + ((1 << down) >> 1)) >> down))
                    continue
                fits(lane, 0, 65535)
                acc = fits(acc + (fits(lane * factor) >> down), 0, (1 << 29) - 1)
                corr = fits(corr + (fits(128 * int(p.sum()) * factor) >> down))
        fits(acc - corr, -(1 << 28), (1 << 28) - 1)
        sums.append(acc - corr)
    return fits(np.concatenate(sums)), top - (head.v_unit.bit_length() - 1), total


def attend(head: Head, q: np.ndarray, qs: np.ndarray | None, out_shift: int | None) -> np.ndarray:
    """One head's output [head_dim]: float32, or int16 in units of 2^-out_shift."""
    mantissas, shifts = weigh(*score(head, q, qs))
    sums, top, total = mix(head, mantissas, shifts)
    inverse = (1 << 30) // (total >> total.bit_length() - 16)
    x = top - 36  # value = sums / 2^13 * inverse * 2^x
    if out_shift is None:
        # 15 bits of a sum, to nearest, times the inverse, of which 24 bits are kept; below the smallest
        # normal number: 0
        mantissa, up = np.frexp(np.abs(sums).astype(float))
        z = np.floor(np.ldexp(mantissa, 15) + 0.5) * inverse
        mantissa, exponent = np.frexp(z)
        cut = np.ldexp(np.floor(np.ldexp(mantissa, 24)), exponent - 24 + x + up - 28)
        return (np.sign(sums) * np.where(cut < 2.0**-126, 0, cut)).astype(np.float32)
    z = fits((fits(sums + (1 << 12)) >> 13) * inverse)
    s = -(x + out_shift)
    if s > 30:
        v = z * 0
    elif s > 0:
        v = fits(z + (1 << (s - 1))) >> s
    else:
        v = fits(np.clip(z, -32767, 32767) << min(-s, 15))
    return np.clip(v, -32767, 32767).astype(np.int16)


@dataclass
class Run:
    """A job of jobs.py, run here. Options as in Geometry and KVCache; group must be given."""

    geometry: dict
    cache: dict
    data: np.ndarray  # [token][layer][k, v, q, q_sinks]
    length: int = 0
    ring: list[int] = field(default_factory=list)
    stored: dict = field(default_factory=dict)  # (layer, "k" or "v", position) -> codes, scale bits
    outputs: list[np.ndarray] = field(default_factory=list)
    memo: dict = field(default_factory=dict)  # vector -> its code: tests of extremes repeat themselves

    def __post_init__(self) -> None:
        g = self.geometry
        self.sinks = g.get("sinks", 0)
        self.window = g.get("capacity") or g["window"]
        self.width = g["kv_heads"] * g["head_dim"]
        self.q_row = g["heads"] * g["head_dim"]
        self.int16 = self.cache.get("kv_shift") is not None
        self.v_most = 7 if self.geometry.get("codec") == "int8-int4" else 127
        self.sparse = self.geometry.get("codec") == "sparse"
        self.floats = self.geometry.get("codec") == "float16"

    def shifts(self, layer: int) -> tuple[int, int, int, int | None]:
        """k, v, q, out."""
        if not self.int16:
            return 0, 0, 0, None

        def of(value: Any) -> Any:
            return value[layer] if isinstance(value, list) else value

        pair = of(self.cache["kv_shift"])
        k, v = pair if isinstance(pair, list) else (pair, pair)
        q, out = of(self.cache.get("q_shift")), of(self.cache.get("out_shift"))
        return k, v, k if q is None else q, v if out is None else out

    def parts(self, token: int, layer: int) -> list[np.ndarray]:
        w, r = self.width, self.q_row
        return np.split(self.data[token, layer], [w, 2 * w, 2 * w + r])

    def store(self, token: int, layer: int, position: int) -> None:
        k, v, _, _ = self.parts(token, layer)
        k_shift, v_shift, _, _ = self.shifts(layer)
        if self.floats:
            for which, x, shift in (("k", k, k_shift), ("v", v, v_shift)):
                exact = values(x, shift)
                # Signs of zeros too, and of what counts as one.
                exact = np.copysign(exact, x.astype(float)) if x.dtype.kind == "f" else exact
                self.stored[layer, which, position] = to_halves(exact), np.ones(0, np.int64)
            return
        group = self.geometry["group"]
        for which, x, shift, most in (("k", k, k_shift, 127), ("v", v, v_shift, self.v_most)):
            thin = self.sparse and which == "v"
            key = shift, most, thin, x.tobytes()
            if key not in self.memo:
                self.memo[key] = encode(values(x, shift), group, most)
                if thin:
                    codes, halves = self.memo[key]
                    self.memo[key] = keep(values(x, shift), codes, group), halves
            self.stored[layer, which, position] = self.memo[key]

    def planes(self, layer: int, which: str, positions: list[int]) -> tuple[Ints, Ints]:
        """codes [n][kv_heads][head_dim], scale bits [n][groups] of some positions."""
        got = [self.stored[layer, which, p] for p in positions]
        g = self.geometry
        codes = np.array([c for c, _ in got]).reshape(len(got), g["kv_heads"], g["head_dim"])
        if self.floats:
            return codes, np.ones((len(got), 1), np.int64)
        return codes, np.array([s for _, s in got]).reshape(len(got), self.width // g["group"])

    def seen(self, position: int, ring: list[int]) -> list[int]:
        first = list(range(min(self.sinks, position + 1)))
        return first + [p for p in ring if position - self.window < p <= position]

    def row(self, token: int, layer: int, position: int, ring: list[int]) -> np.ndarray:
        g = self.geometry
        seen = self.seen(position, ring)
        sinks = sum(p < self.sinks for p in seen)
        k, ks = self.planes(layer, "k", seen)
        v, vs = self.planes(layer, "v", seen)
        dim, group = g["head_dim"], g.get("group", self.width)
        slices = dim // min(dim, group)
        _, _, q, qs = self.parts(token, layer)
        _, _, q_shift, out_shift = self.shifts(layer)
        out = []
        for h in range(g["heads"]):
            kv = h * g["kv_heads"] // g["heads"]
            cut = slice(None) if self.floats else slice(kv * dim // group, kv * dim // group + slices)
            mine = slice(h * dim, (h + 1) * dim)
            unit = 1 if self.v_most == 127 else 16
            head = Head(k[:, kv], ks[:, cut], v[:, kv], vs[:, cut], sinks, unit, self.floats)
            sink_query = values(qs[mine], q_shift) if self.sinks else None
            out.append(attend(head, values(q[mine], q_shift), sink_query, out_shift))
        return np.concatenate(out)

    def tokens(self, first: int, n: int, attended: bool) -> None:
        grown = self.ring + [p for p in range(self.length, self.length + n) if p >= self.sinks]
        for layer in range(self.geometry["layers"]):
            for i in range(n):
                self.store(first + i, layer, self.length + i)
                if attended:
                    self.outputs.append(self.row(first + i, layer, self.length + i, grown))
        self.length += n
        self.ring = [p for p in grown if p >= self.length - self.window]

    def run(self, ops: list) -> Run:
        for name, *args in ops:
            if name == "step":
                self.tokens(args[0], 1, True)
            elif name == "prefill":
                self.tokens(args[0], args[1], True)
            elif name == "prefill-commit":
                self.tokens(args[0], args[1], False)
            elif name == "rollback":
                self.length -= args[0]
                self.ring = [p for p in self.ring if p < self.length]
            elif name == "seek":
                self.length, self.ring = args[0], []
            else:
                assert name == "append-only", name
        return self

    def visible(self) -> list[int]:
        return list(range(min(self.sinks, self.length))) + self.ring

    def image(self) -> bytes:
        """Outputs, then per layer K codes and scales, V codes and scales of the visible tokens."""
        raw = [np.array(self.outputs).astype("<i2" if self.int16 else "<f4").tobytes()]
        for layer in range(self.geometry["layers"]):
            for which in "kv":
                codes, scales = self.planes(layer, which, self.visible())
                if self.floats:
                    raw.append(codes.astype("<f2").tobytes())
                    continue
                raw += [(codes + 128).astype(np.uint8).tobytes(), scales.astype("<u2").tobytes()]
        return b"".join(raw)


def golden_jobs() -> dict[str, tuple[dict, dict, list, np.ndarray]]:
    """name -> geometry, cache options, ops, data. Wide coverage in few bytes."""
    rng = np.random.default_rng(20)

    def noise(tokens: int, layers: int, width: int, q_row: int, spread: float = 1) -> np.ndarray:
        x = rng.normal(size=(tokens, layers, 2 * width + 2 * q_row))
        return x * np.exp(rng.normal(size=(tokens, layers, 1)) * spread)

    jobs: dict[str, tuple[dict, dict, list, np.ndarray]] = {}

    # Ring wrapped twice, sinks with a query of their own, aborts, rollback past the window, seek.
    g = {"layers": 2, "heads": 8, "kv_heads": 4, "head_dim": 8, "window": 9, "sinks": 3, "group": 32}
    ops: list = [["step", t] for t in range(24)] + [["append-only", 24], ["step", 24], ["rollback", 5]]
    ops += [["step", t] for t in range(20, 26)] + [["rollback", 12], ["step", 26], ["seek", 69000]]
    ops += [["step", t] for t in range(27, 32)]
    jobs["sinks_float32"] = g, {}, ops, noise(32, 2, 32, 64).astype("<f4")

    # int16 with shifts per layer, several slices a row, a prefill longer than the window.
    g = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 48, "window": 7, "sinks": 2, "group": 16}
    cache = {"kv_shift": [[9, 11], 10], "q_shift": [8, 9], "out_shift": [11, 12]}
    ops = [["prefill", 0, 5], ["step", 5], ["prefill", 6, 15], ["prefill-commit", 21, 3], ["step", 24]]
    x = np.clip(np.floor(noise(25, 2, 96, 192, 0.3) * 1024), -32768, 32767)
    jobs["slices_int16"] = g, cache, ops, x.astype("<i2")

    # head_dim 5, 6, 12: a slice that ends within a word, a group of several heads, an odd number of words.
    for dim, group in ((5, 5), (6, 12), (12, 4)):
        g = {
            "layers": 1,
            "heads": 4,
            "kv_heads": 2,
            "head_dim": dim,
            "window": 10,
            "sinks": 0,
            "group": group,
        }
        ops = [["prefill", 0, 4]] + [["step", t] for t in range(4, 26)]
        jobs[f"head_dim_{dim}"] = g, {}, ops, noise(26, 1, 2 * dim, 4 * dim).astype("<f4")

    # Zero vectors, one-value groups, same-sign extremes, subnormals, huge and tiny queries.
    g = {"layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 64, "window": 20, "sinks": 0, "group": 32}
    y = noise(30, 1, 64, 128, 0)
    y[3] = 0
    y[4, 0, :64] = 0
    y[5, 0, 128:] = 0
    y[6] = 1
    y[7, 0, :128] = 127 * 65504.0
    y[8, 0, :64] = -127 * 65504.0
    y[9, 0, 64:128] = 1e-39  # denormal: reads as 0
    y[10, 0, :128] *= 1e-7  # float16 subnormal scales
    y[11, 0, :128] *= 3e-9  # below them: some codes survive on the smallest scale
    y[12, 0, 128:] *= 1e30
    y[13, 0, 128:] *= 1e-30
    y[14, 0, 128:] = 1e-40
    y[15, 0, 1] = 100 * np.abs(y[15]).max()  # one outlier channel
    y[16, 0, 128:] *= 40  # peaked weights
    y[17, 0, 128:256] = -0.0
    ops = [["step", t] for t in range(30)]
    jobs["extremes_float32"] = g, {}, ops, y.astype("<f4")

    g = {"layers": 1, "heads": 3, "kv_heads": 3, "head_dim": 8, "capacity": 24, "group": 4}
    z = np.clip(np.floor(noise(24, 1, 24, 24, 2) * 300), -32768, 32767)
    z[2] = -32768
    z[3] = 32767
    z[4] = 0
    z[5, 0, :24] = 1
    z[6, 0, :24] = -1
    ops = [["step", t] for t in range(20)] + [["rollback", 6], ["prefill", 14, 10]]
    jobs["extremes_int16"] = g, {"kv_shift": 0, "out_shift": 3}, ops, z.astype("<i2")

    # Queries of every size, from all weights equal to one token alone; every third with the largest mantissa.
    g = {"layers": 1, "heads": 48, "kv_heads": 2, "head_dim": 4, "window": 11, "sinks": 0, "group": 2}
    x = noise(16, 1, 8, 192, 0)
    queries = x[..., 16:208].reshape(16, 48, 4)
    queries *= np.exp2(np.arange(-24, 24) / 1.5)[:, None]
    sizes = np.exp2(np.floor(np.log2(np.abs(queries).max(-1, keepdims=True))))
    queries[::3] = (
        np.where(np.abs(queries[::3]) >= sizes[::3], 2 - 2.0**-23, queries[::3] / sizes[::3]) * sizes[::3]
    )
    x[..., 16:208] = queries.reshape(16, 1, 192)
    jobs["query_sizes"] = (
        g,
        {},
        [["prefill-commit", 0, 12], *[["step", t] for t in range(12, 16)]],
        x.astype("<f4"),
    )

    # Shifts at the ends of their range: scales at both ends of float16; results far below one and far
    # beyond int16, by a shift more or less.
    shifts = [(31, 31, 31), (-7, -31, 5)]
    shifts += [(-7, 8, s) for s in (25, 26, 27, 28, 31)]
    shifts += [(0, 8, s) for s in (-11, -12, -13, -14)]
    g = {"layers": len(shifts), "heads": 1, "kv_heads": 1, "head_dim": 4, "window": 5, "sinks": 1, "group": 4}
    x = np.floor(noise(10, len(shifts), 4, 4, 1) * 500).clip(-32768, 32767)
    k, q, o = (list(c) for c in zip(*shifts))
    cache = {"kv_shift": [[a, a] for a in k], "q_shift": q, "out_shift": o}
    jobs["shifts_int16"] = g, cache, [["step", t] for t in range(10)], x.astype("<i2")

    # Values in 4 bits: the same data, but for extremes that would not be storable.
    dims = [f"head_dim_{dim}" for dim in (5, 6, 12)]
    for name in ("sinks_float32", "slices_int16", *dims, "extremes_int16"):
        g, *rest = jobs[name]
        jobs[f"int8_int4_{name}"] = {**g, "codec": "int8-int4"}, *rest
    for name in ("sinks_float32", "slices_int16", *dims, "extremes_int16", "extremes_float32"):
        g, *rest = jobs[name]
        jobs[f"sparse_{name}"] = {**g, "codec": "sparse"}, *rest
    g, cache, ops, y = jobs["extremes_float32"]
    y = y.copy()
    y[7, 0, 64:128] = 7 * 65504.0
    y[8, 0, 64:128] = -7 * 65504.0
    jobs["int8_int4_extremes_float32"] = {**g, "codec": "int8-int4"}, cache, ops, y

    # float16: likewise; and numbers at its ends, so small that all are denormals among them.
    for name in ("sinks_float32", "slices_int16", *dims, "extremes_int16"):
        g, *rest = jobs[name]
        jobs[f"float16_{name}"] = {**without_group(g), "codec": "float16"}, *rest
    g, cache, ops, y = jobs["extremes_float32"]
    y = y.copy()
    y[7, 0, :128] = 65504.0
    y[8, 0, :64] = -65504.0
    y[8, 0, 64:128] = -7 * 2.0**-24
    y[10:12, 0, :128] = np.ldexp(np.arange(256).reshape(2, 128) - 128, -26)
    y[15, 0, 1] = 60000.0
    g = {**without_group(g), "window": 5, "codec": "float16"}
    jobs["float16_extremes_float32"] = g, cache, ops, y
    x = np.ldexp(np.floor(noise(9, 1, 6, 6) * 3), -25)
    x[..., 12:] = np.ldexp(x[..., 12:], 36)
    g = {"layers": 1, "heads": 2, "kv_heads": 2, "head_dim": 3, "window": 8, "sinks": 0, "codec": "float16"}
    jobs["float16_denormals"] = g, {}, [["step", t] for t in range(9)], x.astype("<f4")
    return jobs


def without_group(geometry: dict) -> dict:
    return {name: value for name, value in geometry.items() if name != "group"}


def write() -> None:
    GOLDENS.mkdir(exist_ok=True)
    written: dict[bytes, str] = {}
    for name, (geometry, cache, ops, data) in golden_jobs().items():
        run = Run(geometry, cache, data).run(ops)
        job = {"geometry": geometry, "cache": cache, "ops": ops}
        raw = data.tobytes()
        if raw in written:
            job["data"] = written[raw]  # whose file holds it
        else:
            written[raw] = name
            (GOLDENS / f"{name}.data").write_bytes(raw)
        (GOLDENS / f"{name}.json").write_text(json.dumps(job) + "\n")
        (GOLDENS / f"{name}.out").write_bytes(run.image())


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    write()
