"""Independent float64 reference of the cache, written from docs/SPEC.md alone; shares no code with mpy_kv."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Layout:
    """Where the bytes of a cache lie (docs/SPEC.md)."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int = 256
    sinks: int = 0
    capacity: int | None = None
    group: int = 32
    codec: str = "int8"

    def __post_init__(self) -> None:
        self.slots = self.sinks + self.window + 1 if self.capacity is None else self.capacity
        self.width = self.kv_heads * self.head_dim
        self.floats = self.codec.startswith("float")  # no groups, no scales
        if self.floats:
            self.group = self.width
        self.slice_width = min(self.group, self.head_dim)
        self.slices = self.head_dim // self.slice_width
        self.groups = 0 if self.floats else self.width // self.group
        self.scales = -(-self.groups * self.slots * 2 // 4) * 4
        # Of K and V.
        self.bits = {"int8": (8, 8), "int8-int4": (8, 4), "sparse": (8, 8)}.get(self.codec)
        if self.floats:
            self.bits = (int(self.codec[5:]),) * 2
        self.slice_bytes = [-(-self.slice_width * bits // 32) * 4 for bits in self.bits]
        self.codes = [self.kv_heads * self.slots * self.slices * size for size in self.slice_bytes]
        if self.codec == "sparse":
            self.bitmap, self.kept = -(-self.group // 8), -(-3 * self.group // 4)
            self.v_row = -(-(self.bitmap + self.kept) // 4) * 4
            self.codes[1] = self.groups * self.slots * self.v_row
        self.layer = sum(self.codes) + 2 * self.scales

    def slot(self, p: int) -> int:
        if self.capacity is not None or p < self.sinks:
            return p
        return self.sinks + (p - self.sinks) % (self.window + 1)

    def planes(self, buffer: bytes, layer: int, value: bool) -> tuple[np.ndarray, np.ndarray]:
        """codes [kv_heads][slots][head_dim] as signed ints, scales [groups][slots] as float64; of floats what
        they are, and no scales."""
        at = self.plane_at(layer, value)
        if self.floats:
            size = self.bits[value] // 8
            found = np.frombuffer(buffer, f"<f{size}", self.codes[value] // size, at).astype(float)
            rows = found.reshape(self.kv_heads, self.slots, -1)[..., : self.head_dim]
            return rows, np.ones((0, self.slots))
        codes = np.frombuffer(buffer, np.uint8, self.codes[value], at).astype(int)
        if value and self.codec == "sparse":
            codes = self.spread(codes.reshape(self.groups, self.slots, self.v_row)) + 128
        if self.bits[value] == 4:
            codes = np.stack([codes & 15, codes >> 4], axis=-1) - 8
        else:
            codes = codes - 128
        codes = codes.reshape(self.kv_heads, self.slots, self.slices, -1)
        codes = codes[..., : self.slice_width].reshape(self.kv_heads, self.slots, self.head_dim)
        scales = np.frombuffer(buffer, "<f2", self.groups * self.slots, at + self.codes[value])
        return codes, scales.reshape(self.groups, self.slots).astype(float)

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """Codes of every channel, 0 where none is kept, [kv_heads][slots][head_dim], of rows of a bitmap and
        the codes of its set bits, [groups][slots][v_row]."""
        bits = np.unpackbits(rows[..., : self.bitmap].astype(np.uint8), axis=-1, bitorder="little")
        bits = bits[..., : self.group].astype(bool)
        place = np.clip(self.bitmap + bits.cumsum(-1) - 1, 0, self.v_row - 1)
        codes = np.where(bits, np.take_along_axis(rows, place, axis=-1) - 128, 0)
        codes = codes.transpose(1, 0, 2).reshape(self.slots, self.kv_heads, self.head_dim)
        return codes.transpose(1, 0, 2)

    def plane_at(self, layer: int, value: bool) -> int:
        """Offset of a layer's K or V."""
        return layer * self.layer + value * (self.codes[0] + self.scales)

    def read(self, buffer: bytes, layer: int, value: bool) -> np.ndarray:
        """Dequantised [slots][width]."""
        codes, scales = self.planes(buffer, layer, value)
        if self.floats:
            return codes.transpose(1, 0, 2).reshape(self.slots, self.width)
        flat = codes.transpose(1, 0, 2).reshape(self.slots, self.groups, self.group)
        return (flat * scales.T[:, :, None]).reshape(self.slots, self.width)


def encode(x: np.ndarray, group: int, most: int = 127) -> tuple[np.ndarray, np.ndarray]:
    """Codes and float16 scales of rows x [..., width], from the rule in words: the smallest float16 s with
    most * s >= max|x|, codes round(x / s), halves away from zero. most: 127 of int8, 7 of int4."""
    x = np.asarray(x, float)
    g = x.reshape(*x.shape[:-1], -1, group)
    need = np.abs(g).max(-1) / most
    s = need.astype(np.float16)
    s = np.where(s.astype(float) < need, np.nextafter(s, np.float16(np.inf)), s).astype(np.float16)
    step = np.where(s > 0, s, 1).astype(float)[..., None]
    codes = np.sign(g) * np.floor(np.abs(g) / step + 0.5)
    return codes.reshape(x.shape).astype(int), s


def quantise_query(q: np.ndarray, qs: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """The same query as the kernels see it: 7-bit codes times the smallest 11-bit-mantissa scale with
    64 s >= largest; q [head_dim], and the sinks' query on the same scale."""
    top = np.abs(q).max() if qs is None else max(np.abs(q).max(), np.abs(qs).max())
    if not top:
        return q * 0.0, None if qs is None else qs * 0.0
    need = float(top) / 64
    e = np.floor(np.log2(need)) - 10
    s = np.ceil(need / 2.0**e) * 2.0**e

    def code(x: np.ndarray) -> np.ndarray:
        return np.sign(x) * np.floor(np.abs(x) / s + 0.5) * s

    return code(q.astype(float)), None if qs is None else code(qs.astype(float))


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, sinks: int = 0, qs: np.ndarray | None = None
) -> np.ndarray:
    """softmax(q k^T / sqrt(d)) v in float64; the first `sinks` rows scored with qs. q [d], k, v [n, d]."""
    score = k @ q
    if qs is not None and sinks:
        score[:sinks] = k[:sinks] @ qs
    score = score / np.sqrt(q.shape[-1])
    w = np.exp(score - score.max())
    return (w / w.sum()) @ v
