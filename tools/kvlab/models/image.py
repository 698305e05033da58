"""The board image: one file with everything the stories app needs of a model, read where it lies.

`docs/SPEC.md` gives every byte. `convert` writes one from a checkpoint and its tokenizer,
`Image.parse` takes one apart again and refuses anything damaged or foreign.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput
from kvlab.element_types import IN_IMAGES, SEALED

from .calibrate import calibrate
from .limits import (
    EPS_Q32_MAX,
    EXPONENT_MAX,
    LIMITS,
    SHIFT_MAX,
    TEXT_BYTES_MAX,
    TOKEN_BYTES_MAX,
)
from .llama2c import BOS, EOS, EPS, OPTION, ROPE_BASE, Checkpoint, Config, Weights, shapes
from .quantise import GROUP, Matrix, Vector, quantise_matrix, quantise_vector
from .tokenizer import Tokenizer

MAGIC = b"MKVM"
VERSION = 1
_HEADER = struct.Struct("<4sHHIII6HII4HIIIIIIII16x")
_ENTRY = struct.Struct("<IIIIiHH")
HEADER_BYTES = _HEADER.size
ALIGN = 16  # every section and every tensor starts on a multiple
CRC_FROM = 16  # the checksum covers the file from here to its end

SHARED = 1  # flags: classifier is the embedding
HALF_SPLIT = 2  # flags: RoPE pairs (i, i + head_dim/2) instead of (2i, 2i+1)

MATRIX = 0
VECTOR = 1

Quantised = tuple[Matrix | Vector, bytes]  # a tensor, and its bytes in an image

_TURN = 1 << 32

assert HEADER_BYTES == 96
assert _ENTRY.size == 24


@dataclass(frozen=True)
class Header:
    """The 96 bytes at the start, field by field in file order."""

    magic: bytes
    version: int
    header_bytes: int
    total_bytes: int
    crc32: int
    model_id: int
    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    seq_len: int
    group: int
    flags: int
    bos: int
    eos: int
    eps_q32: int
    tensors_off: int
    tensor_count: int
    rope_off: int
    shifts_off: int
    tokenizer_off: int
    tokenizer_bytes: int
    codecs_off: int = 0  # 0: the image says nothing of the cache

    def pack(self) -> bytes:
        return _HEADER.pack(*vars(self).values())

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        """The fields as they are, unchecked; `data` has HEADER_BYTES at least."""
        return cls(*_HEADER.unpack_from(data))

    @property
    def config(self) -> Config:
        return Config(
            *(self.dim, self.hidden, self.layers, self.heads, self.kv_heads, self.vocab),
            seq_len=self.seq_len,
            shared=bool(self.flags & SHARED),
        )


@dataclass(frozen=True)
class Entry:
    """One tensor's place and shape."""

    offset: int
    rows: int
    cols: int
    row_bytes: int
    exponent: int
    kind: int
    groups: int

    def pack(self) -> bytes:
        return _ENTRY.pack(*vars(self).values())

    @property
    def bytes(self) -> int:
        return self.rows * self.row_bytes


def tensor_names(c: Config) -> Iterator[tuple[str, int | None]]:
    """(field of Weights, layer or None) in the order of the tensor table."""
    yield "embed", None
    for layer in range(c.layers):
        for field in ("att_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3"):
            yield field, layer
    yield "final_norm", None
    if not c.shared:
        yield "classifier", None


def _shape(c: Config, field: str, layer: int | None) -> tuple[int, ...]:
    shape = shapes(c)[field]
    return shape if layer is None else shape[1:]


def _aligned(n: int, to: int = ALIGN) -> int:
    return -(-n // to) * to


def row_bytes(cols: int) -> int:
    """Bytes of one row of a matrix: padded codes, scales, padding to a multiple of 4."""
    groups = -(-cols // GROUP)
    return _aligned(groups * (GROUP + 2), 4)


def pack_matrix(m: Matrix) -> bytes:
    """Rows of codes + 128 and their scales."""
    rows = m.codes.shape[0]
    out = np.zeros((rows, row_bytes(m.cols)), np.uint8)
    width = m.codes.shape[1]
    scale_bytes = 2 * m.scales.shape[1]
    out[:, :width] = m.codes.astype(np.int16) + 128
    out[:, width : width + scale_bytes] = np.ascontiguousarray(m.scales, "<u2").view(np.uint8)
    return out.tobytes()


def unpack_matrix(data: bytes, e: Entry) -> Matrix:
    """The reverse of pack_matrix for the bytes of entry `e`."""
    raw = np.frombuffer(data, np.uint8, e.bytes, e.offset).reshape(e.rows, e.row_bytes)
    width = e.groups * GROUP
    scales = np.ascontiguousarray(raw[:, width : width + 2 * e.groups]).view("<u2")
    codes = (raw[:, :width].astype(np.int16) - 128).astype(np.int8)
    return Matrix(codes, scales, e.exponent, e.cols)


def rope_increments(head_dim: int) -> NDArray[np.uint32]:
    """Phase of each pair per position in units of 2**-32 turns: (head_dim/2,)."""
    freqs = [ROPE_BASE ** (-2.0 * i / head_dim) for i in range(head_dim // 2)]  # radians
    return np.array([round(f / (2 * math.pi) * _TURN) for f in freqs], np.uint32)


def tokenizer_bytes(t: Tokenizer) -> int:
    """Length of what `pack_tokenizer` makes."""
    return 16 + 4 * (len(t) + 1) + 2 * _aligned(2 * len(t), 4) + sum(map(len, t.tokens))


def pack_tokenizer(t: Tokenizer) -> bytes:
    """Counts, offsets, ranks, sorted ids, blob (the spec's tokenizer section)."""
    blob = b"".join(t.tokens)
    offsets = np.cumsum([0, *map(len, t.tokens)])
    head = struct.pack("<4I", len(t), max(map(len, t.tokens)), len(blob), 0)
    ranks = _padded(np.array(t.ranks, "<u2").tobytes(), 4)
    order = _padded(np.array(t.sorted_ids, "<u2").tobytes(), 4)
    return head + offsets.astype("<u4").tobytes() + ranks + order + blob


def unpack_tokenizer(data: bytes, name: str) -> Tokenizer:
    """The reverse of pack_tokenizer; scores come back as minus the rank: encoding is the same."""

    def bad(what: str) -> BadInput:
        return BadInput(f"{name}: damaged tokenizer section: {what}: convert the model again")

    if len(data) < 16:
        raise bad(f"{len(data)} bytes, its counts alone take 16")
    vocab, longest, blob_bytes, _ = struct.unpack_from("<4I", data)
    table = _aligned(2 * vocab, 4)
    need = 16 + 4 * (vocab + 1) + 2 * table + blob_bytes
    if len(data) != need:
        raise bad(f"{vocab} tokens of {blob_bytes} bytes take {need} bytes, not {len(data)}")
    offsets = np.frombuffer(data, "<u4", vocab + 1, 16).tolist()
    at = 16 + 4 * (vocab + 1)
    ranks = np.frombuffer(data, "<u2", vocab, at).tolist()
    order = tuple(np.frombuffer(data, "<u2", vocab, at + table).tolist())
    blob = data[at + 2 * table :]
    steps = list(zip(offsets, offsets[1:], strict=False))
    if offsets[0] != 0 or offsets[-1] != blob_bytes or any(b < a for a, b in steps):
        raise bad("token offsets are not ascending from 0 to the end of the blob")
    tokens = tuple(blob[a:b] for a, b in steps)
    if max(map(len, tokens), default=0) != longest:
        raise bad(f"longest token is not the {longest} bytes it states")
    t = Tokenizer(name, longest, tokens, tuple(-float(r) for r in ranks))
    if t.sorted_ids != order or list(t.ranks) != ranks:
        raise bad("its ranks or sorted ids are out of order")
    return t


def _padded(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)


def convert(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    seq_len: int | None = None,
    shifts: NDArray[np.int8] | None = None,
    done: Callable[[int], None] | None = None,
) -> bytes:
    """Checkpoint and tokenizer -> image. The same input always gives the same bytes.

    `seq_len` shortens the context the image promises, never lengthens it. `shifts` (layers, 3)
    for k, v and q skips the calibration, which calls `done(1)` for each of its `STEPS` tokens.
    Raises BadInput when the model exceeds what the app on a board takes.
    """
    c = checkpoint.config
    seq_len = _check_seq_len(seq_len, c.seq_len)
    name = checkpoint.path.name
    _check_shape(replace(c, seq_len=seq_len), name, "pass a smaller model")
    _check_tokenizer(c, tokenizer)
    if shifts is None:
        shifts = calibrate(c, checkpoint.weights, done)
    tensors = _quantised(checkpoint)
    tokenizer_data = pack_tokenizer(tokenizer)
    rope = rope_increments(c.head_dim).astype("<u4").tobytes()
    tensors_off = _aligned(HEADER_BYTES)
    rope_off = _aligned(tensors_off + _ENTRY.size * len(tensors))
    shifts_off = _aligned(rope_off + len(rope))
    tokenizer_off = _aligned(shifts_off + 4 * c.layers)
    entries, end = _placed(tensors, _aligned(tokenizer_off + len(tokenizer_data)))
    if end >= _TURN:
        raise BadInput(
            f"{name}: the image would take {end} bytes, its format ends at {_TURN - 1}: pass a smaller model"
        )

    header = Header(
        *(MAGIC, VERSION, HEADER_BYTES, end, 0, checkpoint.crc32),
        *(c.dim, c.hidden, c.layers, c.heads, c.kv_heads, c.head_dim, c.vocab, seq_len, GROUP),
        *(SHARED if c.shared else 0, BOS, EOS, round(EPS * _TURN)),
        *(tensors_off, len(entries), rope_off, shifts_off, tokenizer_off, len(tokenizer_data)),
    )
    out = bytearray(end)
    out[:HEADER_BYTES] = header.pack()
    for at, data in (
        (tensors_off, b"".join(e.pack() for e in entries)),
        (rope_off, rope),
        (shifts_off, np.pad(np.asarray(shifts, np.int8), ((0, 0), (0, 1))).tobytes()),
        (tokenizer_off, tokenizer_data),
        *((entry.offset, data) for entry, (_, data) in zip(entries, tensors)),
    ):
        out[at : at + len(data)] = data
    struct.pack_into("<I", out, 12, zlib.crc32(out[CRC_FROM:]))
    return bytes(out)


def _quantised(checkpoint: Checkpoint) -> list[Quantised]:
    """Every tensor in the order of the table. BadInput for weights that no exponent of a board reaches."""
    tensors: list[Quantised] = []
    for field, layer in tensor_names(checkpoint.config):
        values = getattr(checkpoint.weights, field)
        values = values if layer is None else values[layer]
        if values.ndim == 2:
            m = quantise_matrix(values)
            tensors.append((m, pack_matrix(m)))
        else:
            v = quantise_vector(values)
            tensors.append((v, v.values.astype("<i2").tobytes()))
        exponent = tensors[-1][0].exponent
        if abs(exponent) > EXPONENT_MAX:
            raise BadInput(
                f"{checkpoint.path.name}: {_place(field, layer)} has weights of up to "
                f"{np.abs(values).max():.3g}, which need an exponent of {exponent}; a board takes "
                f"{-EXPONENT_MAX} to {EXPONENT_MAX}: pass a model whose training did not diverge"
            )
    return tensors


def _placed(tensors: Sequence[Quantised], offset: int) -> tuple[list[Entry], int]:
    """Entries of the table for tensors that lie from `offset` on, and where they end."""
    entries = []
    for tensor, data in tensors:
        if isinstance(tensor, Matrix):
            rows, groups = tensor.scales.shape
            shape = (rows, tensor.cols, row_bytes(tensor.cols), tensor.exponent, MATRIX, groups)
        else:
            shape = (1, len(tensor.values), len(data), tensor.exponent, VECTOR, 0)
        entries.append(Entry(offset, *shape))
        offset = _aligned(offset + len(data))
    return entries, offset


def with_codecs(image: Image, codecs: Sequence[str]) -> bytes:
    """The image with the element type that the cache should have in each layer, in place of those it names.

    Raises BadInput for what an image cannot name.
    """
    ids = bytes(IN_IMAGES.index(name) if name in IN_IMAGES else 255 for name in codecs)
    if len(ids) != image.config.layers:
        raise BadInput(f"{image.name}: {len(ids)} element types for {image.config.layers} layers")
    _parse_codecs(ids, image.name)
    header = image.header
    at = header.codecs_off or _aligned(len(image.data))
    out = bytearray(image.data)
    if not header.codecs_off:
        out += bytes(at + _aligned(len(ids)) - len(out))
    out[at : at + len(ids)] = ids
    out[:HEADER_BYTES] = replace(header, total_bytes=len(out), codecs_off=at).pack()
    struct.pack_into("<I", out, 12, zlib.crc32(out[CRC_FROM:]))
    return bytes(out)


def _check_seq_len(asked: int | None, trained: int) -> int:
    if asked is None:
        return trained
    if not 1 <= asked <= trained:
        raise BadInput(f"--seq-len {asked} is out of range: the model was trained for 1 to {trained} tokens")
    return asked


def _check_shape(c: Config, name: str, remedy: str) -> None:
    for field, most in LIMITS.items():
        value = getattr(c, field)
        if value > most:
            what = "pass a smaller --seq-len" if field == "seq_len" else remedy
            raise BadInput(f"{name}: {field} {value} is more than the {most} a board takes: {what}")


def _check_tokenizer(c: Config, t: Tokenizer) -> None:
    if len(t) != c.vocab:
        raise BadInput(
            f"{t.name}: holds {len(t)} tokens, the model's vocabulary has "
            f"{c.vocab}: pass the tokenizer it was trained with"
        )
    longest = max(map(len, t.tokens))
    if not 1 <= longest <= TOKEN_BYTES_MAX:
        raise BadInput(
            f"{t.name}: its longest token has {longest} bytes, a board takes 1 to {TOKEN_BYTES_MAX}: "
            "pass another tokenizer"
        )
    if (text := sum(map(len, t.tokens))) > TEXT_BYTES_MAX:
        raise BadInput(
            f"{t.name}: its tokens have {text} bytes, a board takes {TEXT_BYTES_MAX}: pass another tokenizer"
        )


def _place(field: str, layer: int | None) -> str:
    return field if layer is None else f"{field} of layer {layer}"


@dataclass(frozen=True)
class Image:
    """A checked image taken apart."""

    name: str
    data: bytes
    header: Header
    entries: tuple[Entry, ...]
    rope: NDArray[np.uint32]  # (head_dim/2,)
    shifts: NDArray[np.int8]  # (layers, 3): k, v, q
    tokenizer: Tokenizer
    codecs: tuple[str, ...] | None = None  # element type of the cache by layer, where the image names any

    @property
    def config(self) -> Config:
        return self.header.config

    @classmethod
    def read(cls, path: str | Path, option: str = OPTION) -> Image:
        """Read a file. Raises BadInput when it is missing, foreign, cut short or damaged.

        `option` is what the user passed it as; messages start with it.
        """
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as e:
            raise BadInput(f"{option} {path}: cannot be read: {e.strerror or e}") from None
        return cls.parse(data, f"{option} {path.name}")

    @classmethod
    def parse(cls, data: bytes, name: str = "image") -> Image:
        """Take an image apart; BadInput with one reason when it is not intact."""
        header = _parse_header(data, name)
        c = header.config
        entries = _parse_entries(data, header, name)
        rope = np.frombuffer(data, "<u4", c.head_dim // 2, header.rope_off)
        shifts = np.frombuffer(data, np.int8, 4 * c.layers, header.shifts_off).reshape(-1, 4)
        end = header.tokenizer_off + header.tokenizer_bytes
        _check_shifts(shifts[:, :3], name)
        tokenizer = unpack_tokenizer(data[header.tokenizer_off : end], name)
        if len(tokenizer) != c.vocab:
            raise BadInput(
                f"{name}: damaged: {len(tokenizer)} tokens for a vocabulary of {c.vocab}: "
                "convert the model again"
            )
        _check_tokenizer(c, tokenizer)
        codecs = None
        if header.codecs_off:
            codecs = _parse_codecs(data[header.codecs_off : header.codecs_off + c.layers], name)
        return cls(name, data, header, entries, rope, shifts[:, :3], tokenizer, codecs)

    def tensor(self, index: int) -> Matrix | Vector:
        """The tensor at `index` of the table."""
        e = self.entries[index]
        if e.kind == MATRIX:
            return unpack_matrix(self.data, e)
        return Vector(np.frombuffer(self.data, "<i2", e.cols, e.offset), e.exponent)

    def weights(self) -> Weights:
        """Every tensor as the floats it stands for (float32 holds each exactly)."""
        found: dict[str, list[NDArray[np.float32]]] = {}
        for index, (field, _) in enumerate(tensor_names(self.config)):
            found.setdefault(field, []).append(self.tensor(index).dequantise().astype(np.float32))
        found.setdefault("classifier", found["embed"])
        every = shapes(self.config)
        return Weights(**{k: np.stack(v).reshape(every[k]) for k, v in found.items()})

    def sections(self) -> dict[str, int]:
        """Bytes of the file by what they hold; they add up to its length."""
        h, out = self.header, {"header": HEADER_BYTES}
        out["tensor table"] = _ENTRY.size * h.tensor_count
        out["rope and shifts"] = 4 * (h.head_dim // 2) + 4 * h.layers
        out["tokenizer"] = h.tokenizer_bytes
        if h.codecs_off:
            out["element types"] = h.layers
        for (field, _), e in zip(tensor_names(self.config), self.entries, strict=True):
            kind = {"embed": "embedding", "classifier": "classifier"}.get(field, "attention")
            if field.endswith("norm"):
                kind = "norms"
            elif field in ("w1", "w2", "w3"):
                kind = "feed-forward"
            out[kind] = out.get(kind, 0) + e.bytes
        out["padding"] = h.total_bytes - sum(out.values())
        return out


def _parse_header(data: bytes, name: str) -> Header:
    """Check magic, version, length and checksum in that order, then the fields."""

    def bad(what: str) -> BadInput:
        return BadInput(f"{name}: {what}")

    if data[:4] != MAGIC:
        raise bad(
            f"not a board image: it starts with {data[:4].hex() or 'nothing'}, not with "
            f"{MAGIC.hex()} (MKVM): make one with `kvlab convert`"
        )
    if len(data) < HEADER_BYTES:
        raise bad(f"cut short: {len(data)} bytes, the header alone takes {HEADER_BYTES}: copy it again")
    h = Header.unpack(data)
    if h.version != VERSION or h.header_bytes != HEADER_BYTES:
        raise bad(
            f"image version {h.version} with a header of {h.header_bytes} bytes, this kvlab reads "
            f"version {VERSION} with {HEADER_BYTES}: convert the model again"
        )
    if h.total_bytes != len(data):
        what = "cut short" if len(data) < h.total_bytes else "has bytes left over"
        raise bad(f"{what}: {len(data)} bytes, its header says {h.total_bytes}: copy it again")
    crc = zlib.crc32(data[CRC_FROM:])
    if crc != h.crc32:
        raise bad(f"damaged: checksum {crc:08x}, its header says {h.crc32:08x}: copy or convert it again")
    _check_fields(h, name)
    return h


def _check_fields(h: Header, name: str) -> None:
    """Guards against a faulty writer: the checksum holds. BadInput."""

    def bad(what: str) -> BadInput:
        return BadInput(f"{name}: {what}")

    counts = (h.dim, h.hidden, h.layers, h.heads, h.kv_heads, h.head_dim, h.vocab, h.seq_len)
    if 0 in counts or h.heads * h.head_dim != h.dim or h.heads % h.kv_heads or h.head_dim % 2:
        raise bad(
            f"inconsistent: dim {h.dim}, hidden {h.hidden}, layers {h.layers}, heads {h.heads}, "
            f"kv_heads {h.kv_heads}, head_dim {h.head_dim}, vocab {h.vocab}, seq_len {h.seq_len}: "
            "convert the model again"
        )
    _check_shape(h.config, name, "convert a smaller model")
    for field, value, most in (("bos", h.bos, h.vocab - 1), ("eps_q32", h.eps_q32, EPS_Q32_MAX)):
        if value > most:
            raise bad(f"inconsistent: {field} {value}, a board takes 0 to {most}: convert the model again")
    if h.group != GROUP or h.flags & ~SHARED:
        raise bad(
            f"group {h.group} with flags {h.flags:#x}, this kvlab reads group {GROUP} with flags "
            f"0 or {SHARED}: convert the model again"
        )
    for field, size in (
        ("tensors", _ENTRY.size * h.tensor_count),
        ("rope", 2 * h.head_dim),
        ("shifts", 4 * h.layers),
        ("tokenizer", h.tokenizer_bytes),
        ("codecs", h.layers),
    ):
        offset = getattr(h, f"{field}_off")
        if field == "codecs" and not offset:
            continue
        if offset < HEADER_BYTES or offset % ALIGN or offset + size > h.total_bytes:
            raise bad(
                f"inconsistent: {field} at {offset} with {size} bytes, in a file of {h.total_bytes} "
                f"(multiples of {ALIGN}): convert the model again"
            )


def _parse_entries(data: bytes, h: Header, name: str) -> tuple[Entry, ...]:
    """The tensor table, each entry held to the shape that the header demands."""
    names = list(tensor_names(h.config))
    if h.tensor_count != len(names):
        raise BadInput(
            f"{name}: inconsistent: {h.tensor_count} tensors where its shape needs {len(names)}: "
            "convert the model again"
        )
    entries = []
    for index, (field, layer) in enumerate(names):
        e = Entry(*_ENTRY.unpack_from(data, h.tensors_off + _ENTRY.size * index))
        shape = _shape(h.config, field, layer)
        if len(shape) == 2:
            want = (*shape, row_bytes(shape[1]), MATRIX, -(-shape[1] // GROUP))
        else:
            want = (1, shape[0], 2 * shape[0], VECTOR, 0)
        have = (e.rows, e.cols, e.row_bytes, e.kind, e.groups)
        if have != want or e.offset % ALIGN or e.offset < HEADER_BYTES or e.offset + e.bytes > len(data):
            raise BadInput(
                f"{name}: inconsistent: {_place(field, layer)} has (rows, cols, row bytes, kind, groups) "
                f"{have} at {e.offset}, its shape needs {want}: convert the model again"
            )
        if abs(e.exponent) > EXPONENT_MAX:
            raise BadInput(
                f"{name}: inconsistent: {_place(field, layer)} has the exponent {e.exponent}, a board takes "
                f"{-EXPONENT_MAX} to {EXPONENT_MAX}: convert the model again"
            )
        entries.append(e)
    return tuple(entries)


def _check_shifts(shifts: NDArray[np.int8], name: str) -> None:
    for layer, of_layer in enumerate(shifts.tolist()):
        for what, shift in zip("kvq", of_layer, strict=True):
            if abs(shift) > SHIFT_MAX:
                raise BadInput(
                    f"{name}: inconsistent: {what}_shift {shift} of layer {layer}, a board takes "
                    f"{-SHIFT_MAX} to {SHIFT_MAX}: convert the model again"
                )


def _parse_codecs(ids: bytes, name: str) -> tuple[str, ...]:
    """The element type of each layer from its byte."""
    for layer, each in enumerate(ids):
        if each >= len(IN_IMAGES):
            raise BadInput(
                f"{name}: inconsistent: element type {each} of layer {layer}, a board knows 0 to "
                f"{len(IN_IMAGES) - 1}: write them again with `kvlab quality --gate --image`"
            )
    codecs = tuple(IN_IMAGES[each] for each in ids)
    if SEALED in codecs and len(set(codecs)) > 1:
        raise BadInput(
            f"{name}: inconsistent: {SEALED} in some layers, it takes all or none: write them again"
            " with `kvlab quality --gate --image`"
        )
    return codecs
