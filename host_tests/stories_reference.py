"""Independent integer reference of the stories kernels, vectorised in numpy int64.

Written from the definitions in words (the docstrings of stories/kernels/plain.py), not from the code:
codes are unpacked, tables come from their mathematical definition, square roots and bit lengths from
Python. Every value that a 32-bit kernel holds in a register goes through `fits`, so that running it
also proves that nothing overflows.

python host_tests/stories_reference.py --write    writes host_tests/goldens/stories/cases.jsonl
"""

from __future__ import annotations

import json
import sys
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from stories_cases import LIMIT, ROOT_ONE, Case, array, buffer, draw

GOLDEN = Path(__file__).with_name("goldens") / "stories" / "cases.jsonl"
UNIT = 1 << 15
GROUP = 25  # elements of an activation vector for 32 numbers

_quarter = np.arange(258).clip(max=256)
SINE = np.floor(np.sin(_quarter / 256 * np.pi / 2) * UNIT + 0.5).astype(np.int64)
SIGMOID = np.floor(UNIT / (1 + np.exp(-_quarter / 16)) + 0.5).astype(np.int64)
EXP2 = np.floor(UNIT * 2.0 ** (-np.arange(66).clip(max=64) / 64) + 0.5).astype(np.int64)


def fits(x: Any) -> Any:
    """`x`, which a board holds in a signed 32-bit word."""
    assert np.min(x) >= -(1 << 31), np.min(x)
    assert np.max(x) < 1 << 31, np.max(x)
    return x


def halved(x: Any, shift: int) -> Any:
    """x / 2^shift rounded, halves up."""
    return x if shift == 0 else fits(x + (1 << (shift - 1))) >> shift


def scaled(x: np.ndarray, exponent: int) -> np.ndarray:
    """x * 2^exponent, rounded and saturated; exponents beyond +-31 count as that."""
    e = min(31, max(-31, exponent))
    if e < 0:
        x = np.floor(np.ldexp(x.astype(float), e) + 0.5).astype(np.int64)
    else:
        x = np.clip(x, -(LIMIT >> e), LIMIT >> e) << e
    return np.clip(x, -LIMIT, LIMIT)


def fold(x: np.ndarray) -> int:
    """How far to shift so that the largest magnitude is below 2^15."""
    return max(0, int(np.abs(x).max(initial=0)).bit_length() - 15)


def lookup(table: np.ndarray, x: np.ndarray, bits: int) -> np.ndarray:
    """table at x / 2^bits, interpolated linearly, halves up."""
    low, high = table[x >> bits], table[(x >> bits) + 1]
    use = min(bits, 15)  # the lower bits of x have no say
    part = (x & ((1 << bits) - 1)) >> (bits - use)
    return low + halved(fits((high - low) * part), use)


def matrix(w: np.ndarray, at: int, rows: int, groups: int, skip: int) -> tuple[np.ndarray, np.ndarray]:
    """(codes [rows][groups][32], scales [rows][groups]) of matrix rows."""
    step = 32 * groups + skip
    raw = w[at : at + rows * step].reshape(rows, step)
    halves = raw[:, 32 * groups : 34 * groups].reshape(rows, groups, 2)
    return raw[:, : 32 * groups].reshape(rows, groups, 32) - 128, halves[..., 0] + (halves[..., 1] << 8)


def embed(w, v, a):
    n, width, dst, at, exponent = a
    groups = width // 32
    codes, scales = matrix(w, at, 1, groups, 2 * groups)
    v[dst : dst + n] = scaled((codes * scales[..., None]).reshape(-1)[:n], exponent)


def norm(w, v, a):
    n, width, dst, _, _, _, at, src, exponent, eps = a
    w = w.astype(np.uint8).tobytes()
    weights = np.frombuffer(w, "<i2", n, at).astype(np.int64)
    x = v[src : src + n].copy()
    s = fold(x)
    x = halved(x, s)
    v[dst : dst + width] = 0
    v[dst : dst + n] = fits(x * weights)
    square = int(fits(int((x * x).sum()) // int(n) + (int(eps) >> (2 * s))))
    root = ROOT_ONE
    if square:
        # To 29 or 30 bits by fours; the exponent of the root moves by twos.
        moved = (30 - square.bit_length()) // 2
        square = square << 2 * moved if moved >= 0 else square >> -2 * moved
        root = isqrt(square)
        root += square - root * root > root
        exponent += moved
    a[4], a[5] = root, exponent


def quant(v, a):
    _, n, src, act, root, exponent = a
    x = v[src : src + n].reshape(-1, 8, 4)
    # Of a group, a quarter of what its heaviest four adds up to, by magnitudes less 1 where negative.
    tops = fits((np.abs(x) - (x < 0)) // 4).sum(2).max(1) + 4
    s = fold(tops)
    total = int((tops >> s).sum())
    out = v[act : act + 2 + GROUP * len(x)]
    # total / root as a mantissa of 15 bits, first from 30 bits of total.
    up = 30 - total.bit_length()
    mantissa = fits((total << up) + root // 2) // int(root)
    exponent += s - 20 - up
    while mantissa >= UNIT:
        mantissa = (mantissa + 1) // 2
        exponent += 1
    out[0], out[1] = mantissa, exponent
    scales = fits(((tops >> s) << 14) + total // 2) // total
    codes = np.zeros(x.shape, np.int64)
    for of_group, group, top in zip(codes, x, tops):
        down = max(0, int(top).bit_length() - 13)
        unit = int(halved(top, down))
        up = max(0, 13 - unit.bit_length())
        inverse = (2**28 - 1) // (unit << up) << up
        of_group[:] = halved(fits(halved(group, down) * inverse), 22)
    out[2:] = pack(codes, scales)


def word(x: Any) -> Any:
    """x modulo 2^32, as a signed 32-bit word holds it."""
    return (np.asarray(x, np.int64) + (1 << 31)) % (1 << 32) - (1 << 31)


def pack(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Groups of an activation vector, without its mantissa and exponent; codes [groups][8][4]."""
    assert np.abs(codes).sum(2).max() <= 258
    assert np.abs(codes).sum((1, 2)).max() <= 8 * 258
    c0, c1, c2, c3 = np.moveaxis(codes, 2, 0)
    even, odd = c2 + (c0 << 16), c3 + (c1 << 16)
    # What the offsets of 128 add to the products of four, less what rounds the lower half.
    offset = 128 * ((c0 + c1 + c2 + c3 << 16) + c2 + c3)
    three = np.stack([even, odd - (even << 8), UNIT - offset], 2)
    return word(np.concatenate([three.reshape(-1, 24), scales[:, None]], 1)).ravel()


def unpack(act: np.ndarray) -> tuple[int, int, np.ndarray, np.ndarray]:
    """(mantissa, exponent, codes [groups][8][4], scales [groups]) of an activation vector."""
    body = act[2:].reshape(-1, GROUP)
    even = body[:, 0:24:3]
    odd = word(body[:, 1:24:3] + (even << 8))
    c2, c3 = (((x & 0xFFFF) ^ 0x8000) - 0x8000 for x in (even, odd))
    codes = np.stack([(even - c2) >> 16, (odd - c3) >> 16, c2, c3], -1)
    return int(act[0]), int(act[1]), codes, body[:, 24]


def matvec(w, v, mask, a):
    at, rows, groups, skip, act, dst, exponent = a
    mantissa, e, codes, scales = unpack(v[act : act + 2 + GROUP * groups])
    weights, weight_scales = matrix(w, at, rows, groups, skip)
    fours = weights.reshape(rows, groups, 8, 4)
    # The sum of a four is the upper half of a 32-bit word; its lower half holds 2^15 and two products.
    products = (fours * codes).sum(-1)
    assert np.abs(products).max() < UNIT
    lower = UNIT + (fours[..., :2] * codes[..., 2:]).sum(-1)
    assert lower.min() >= 0
    assert lower.max() < 1 << 16
    dots = products.sum(-1)
    terms = halved(fits(dots * weight_scales), 14) * scales
    fits(np.abs(terms).sum(1))  # in whatever order they are added
    product = fits(np.floor_divide(terms.sum(1) * mantissa, UNIT))
    if 29 + e + int(exponent) < 0:
        assert np.abs(halved(product, 1)).max() <= LIMIT
    v[dst : dst + rows] = scaled(product, 29 + e + int(exponent))


def rope_table(inc, cs, sine, a):
    n, position = a
    phase = (inc % (1 << 32)).astype(object) * int(position) % (1 << 32)
    for i, p in enumerate(phase.astype(np.int64)):
        quadrant, p = p >> 30, p & LIMIT
        sin, cos = (min(int(lookup(SINE, np.int64(x), 22)), 32767) for x in (p, (1 << 30) - p))
        for _ in range(quadrant):
            sin, cos = cos, -sin
        cs[2 * i], cs[2 * i + 1] = cos, sin


def rotate(v, dst, cs, a):
    src, heads, pairs, step, gap = a
    x = np.clip(v[src : src + 2 * heads * pairs], -32767, 32767).reshape(heads, 2 * pairs)
    first = step * np.arange(pairs)
    x0, x1 = x[:, first], x[:, first + gap]
    cos, sin = cs[0::2], cs[1::2]
    out = np.zeros_like(x)
    out[:, first] = halved(fits(x0 * cos - x1 * sin), 15)
    out[:, first + gap] = halved(fits(x0 * sin + x1 * cos), 15)
    dst[:] = np.clip(out, -32767, 32767).ravel()


def narrow(v, dst, a):
    src, n = a
    dst[:n] = np.clip(v[src : src + n], -32767, 32767)


def widen(src, v, a):
    n, width, dst = a
    v[dst : dst + width] = 0
    v[dst : dst + n] = src[:n]


def swiglu(v, table, a):
    n, width, dst, _, _, _, gate, up = a
    g, u = v[gate : gate + n].copy(), v[up : up + n].copy()
    m = np.abs(g)
    near = m < 16 << 16
    t = lookup(SIGMOID, np.where(near, m, 0), 12)
    t = np.where(g < 0, UNIT - t, t)
    # m * t / 2^15 in two halves of 6 and 14 bits
    inside = np.where(near, m, 0)
    product = (fits((inside >> 6) * t) + (fits((inside & 63) * t) >> 6) + 256) >> 9
    size = np.where(near, product, np.where(g > 0, m, 0))
    v[gate : gate + n] = silu = np.where(g < 0, -size, size)
    s, s_up = fold(silu), fold(u)
    v[dst : dst + width] = 0
    v[dst : dst + n] = fits(halved(silu, s) * halved(u, s_up))
    a[5] = s + s_up - 32 + 14


def add(v, a):
    n, x, y = a
    v[x : x + n] = np.clip(fits(v[x : x + n] + v[y : y + n]), -LIMIT, LIMIT)


def argmax(v, a):
    n, at = a
    return int(v[at : at + n].argmax())


def softmax(v, exp2, a):
    n, at, mantissa, exponent, bits, _ = a
    x = v[at : at + n]
    d = np.minimum(fits(x.max() - x), LIMIT)
    t = d * mantissa >> 15
    t = t >> -exponent if exponent < 0 else np.minimum(t, LIMIT >> exponent) << exponent
    part = lookup(EXP2, fits(t) & 0xFFFF, 10)
    whole = np.minimum(t >> 16, 31)
    w = np.where(whole <= bits, fits(part << 15) >> (30 - bits) >> whole, 0)
    v[at : at + n] = w
    a[5] = fits(w.sum())


def xorshift(state: int) -> int:
    """Marsaglia's xorshift32 (13, 17, 5), one step."""
    state ^= state << 13 & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ (state << 5 & 0xFFFFFFFF)


def pick(v, a):
    n, at, _, _, _, total, part, state = a
    w = v[at : at + n]
    order = np.arange(n)
    if part < UNIT:
        goal = int(total) * int(part) >> 15
        order = np.argsort(-w, kind="stable")
        order = np.sort(order[: int((np.cumsum(w[order]) > goal).argmax()) + 1])
    order = order[w[order] > 0]
    mass = int(w[order].sum())
    state = xorshift(int(state) & 0xFFFFFFFF)
    a[7] = state - (1 << 32) if state >> 31 else state
    (mh, ml), (rh, rl) = divmod(mass, UNIT), divmod(state >> 2, UNIT)
    left = fits(mh * rh + (fits(rh * ml + rl * mh) >> 15))
    return int(order[(np.cumsum(w[order]) > left).argmax()])


def result(case: Case) -> list:
    """[returned value, hex of every buffer], as device/stories_kernels.py gives."""
    name, arguments = case
    values = [x if isinstance(x, int) else array(x).copy() for x in arguments]
    returned = globals()[name](*values) or 0
    ends = [buffer(x[0], y)[1] for x, y in zip(arguments, values) if not isinstance(x, int)]
    return [returned, *ends]


def golden_lines() -> list[str]:
    """Five cases of every kernel with their results."""
    return [json.dumps([case, result(case)]) for case in draw(seed=20, each=5)]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text("\n".join(golden_lines()) + "\n")
