"""Board images: every byte as specified, every weight within half a step, the rest refused."""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from stories.errors import ImageError
from stories.image import Image as BoardImage
from stories_fixtures import patched
from tiny_model import tiny_tokens, tiny_weights, tokenizer_bytes, write_tiny

from commandline.errors import BadInput
from kvlab import cli, paths
from kvlab.element_types import IN_IMAGES
from kvlab.models import image
from kvlab.models.calibrate import calibrate, shift_for
from kvlab.models.image import Entry, Image, convert, rope_increments, row_bytes, tensor_names, with_codecs
from kvlab.models.limits import (
    EPS_Q32_MAX,
    EXPONENT_MAX,
    LIMITS,
    SHIFT_MAX,
    TEXT_BYTES_MAX,
    TOKEN_BYTES_MAX,
)
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.load import load_checkpoint, load_image
from kvlab.models.quantise import GROUP, quantise_matrix, quantise_vector
from kvlab.models.reference import Reference

MICRO = {"dim": 4, "hidden": 6, "layers": 1, "heads": 2, "kv_heads": 1, "vocab": 5, "seq_len": 3}
PER_LAYER = ["att_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3"]
SMALL = {"dim": 48, "hidden": 70, "layers": 2, "heads": 6, "kv_heads": 3, "vocab": 330}


@pytest.fixture(scope="module")
def micro(tmp_path_factory):
    return load_image(write_tiny(tmp_path_factory.mktemp("micro"), **MICRO)[0])


# --- quantisation ------------------------------------------------------------------------------

WEIGHTS = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, max_side=70),
    elements=st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, -1.0, 127.0, 1e-30]),
    fill=st.floats(-3, 3, width=32),
)


@given(WEIGHTS)
@settings(max_examples=200, deadline=None)
def test_every_weight_is_within_half_a_step(w):
    m = quantise_matrix(w)
    assert np.abs(m.codes.astype(int)).max() <= 127
    assert not m.codes[:, w.shape[1] :].any()
    assert m.scales.max() <= 4095
    assert m.scales.max() >= 2048 or not w.any()  # 12 bits are used: the exponent is the smallest
    step = np.ldexp(np.repeat(m.scales.astype(float), GROUP, axis=1), m.exponent)
    error = np.abs(m.dequantise() - w)
    assert (error <= step[:, : w.shape[1]] / 2).all()


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(arrays(np.float32, (1, 33), elements=FINITE))
@settings(max_examples=100, deadline=None)
def test_half_a_step_holds_exactly_for_any_finite_float(w):
    m = quantise_matrix(w)
    for i, real in enumerate(w[0].tolist()):
        step = int(m.scales[0, i // GROUP]) * Fraction(2) ** m.exponent
        assert abs(int(m.codes[0, i]) * step - Fraction(real)) <= step / 2


def test_halves_round_away_from_zero():
    w = np.zeros((1, 32), np.float32)
    w[0, :6] = 127, 0.5, -0.5, 1.5, -1.5, 0.49
    m = quantise_matrix(w)
    step = int(m.scales[0, 0]) * 2.0**m.exponent
    assert step == 1.0
    assert m.codes[0, :6].tolist() == [127, 1, -1, 2, -2, 0]


def test_zero_groups_read_back_zero_and_small_ones_survive_beside_large():
    w = np.zeros((2, 96), np.float32)
    w[0, 32:64] = 1e-3
    w[0, 64:] = 100.0
    m = quantise_matrix(w)
    assert m.scales[0, 0] == 0
    assert m.scales[1].tolist() == [0, 0, 0]
    assert np.array_equal(m.dequantise()[1], np.zeros(96))
    assert m.dequantise()[0, 32] > 0


@given(arrays(np.float32, st.integers(1, 40), elements=st.floats(-2.0**99, 2.0**99, width=32)))
def test_vectors_are_within_half_a_step(v):
    q = quantise_vector(v)
    assert (np.abs(q.dequantise() - v) <= math.ldexp(0.5, q.exponent)).all()
    assert np.abs(q.values.astype(int)).max() > 16383 or not v.any()


@pytest.mark.parametrize("cols", [1, 4, 31, 32, 33, 64, 65, 172, 320])
def test_rows_pack_and_unpack(cols):
    m = quantise_matrix(np.random.default_rng(cols).normal(size=(3, cols)).astype(np.float32))
    groups = -(-cols // 32)
    data = image.pack_matrix(m)
    assert row_bytes(cols) == (groups * 34 + 3) // 4 * 4
    assert len(data) == 3 * row_bytes(cols)
    back = image.unpack_matrix(data, Entry(0, 3, cols, row_bytes(cols), m.exponent, 0, groups))
    assert np.array_equal(back.codes, m.codes)
    assert np.array_equal(back.scales, m.scales)
    assert 0 not in {data[r * row_bytes(cols) + i] for r in range(3) for i in range(groups * 32)}


# --- the format, read by hand ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["legacy", "v1"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_reader_made_from_the_spec_alone_finds_every_weight(tmp_path, kind, shared):
    """struct and plain loops only: what a port to another language would do."""
    path, words = write_tiny(tmp_path, **SMALL, seq_len=40, shared=shared, header=kind, seed=5)
    b = load_image(path).data
    want = tiny_weights(**SMALL, shared=shared, seed=5)

    assert b[:4] == b"MKVM"
    assert struct.unpack_from("<HHII", b, 4) == (1, 96, len(b), zlib.crc32(b[16:]))
    assert struct.unpack_from("<I6H2I", b, 16) == (
        *(zlib.crc32(path.read_bytes()), 48, 70, 2, 6, 3, 8, 330, 40),
    )
    assert struct.unpack_from("<4HI", b, 40) == (32, int(shared), 1, 2, 42950)
    table, count, rope, shifts, vocab_at, vocab_bytes = struct.unpack_from("<6I", b, 52)
    assert not any(b[76:96])

    order = ["embed"]
    for layer in range(2):
        order += [(k, layer) for k in PER_LAYER]
    order += ["final_norm"] if shared else ["final_norm", "classifier"]
    assert count == len(order)
    spans = [(0, 96), (table, 24 * count), (rope, 16), (shifts, 8), (vocab_at, vocab_bytes)]
    for i, key in enumerate(order):
        offset, rows, cols, stride, exponent, what, groups = struct.unpack_from(
            "<4Ii2H", b, table + 24 * i
        )
        w = want[key] if isinstance(key, str) else want[key[0]][key[1]]
        spans.append((offset, rows * stride))
        if what == 1:
            assert (rows, cols, stride, groups) == (1, w.size, 2 * w.size, 0)
            got = np.array(struct.unpack_from(f"<{cols}h", b, offset)) * 2.0**exponent
            assert np.abs(got - w).max() <= 2.0**exponent / 2
            continue
        assert (rows, cols) == w.shape
        assert groups == -(-cols // 32)
        for r in range(rows):
            at = offset + r * stride
            scales = struct.unpack_from(f"<{groups}H", b, at + 32 * groups)
            assert max(scales) <= 4095
            for c in range(cols):
                step = scales[c // 32] * 2.0**exponent
                assert abs((b[at + c] - 128) * step - w[r, c]) <= step / 2
            assert set(b[at + cols : at + 32 * groups]) <= {128}

    spans.sort()
    assert all(start % 16 == 0 for start, _ in spans)
    for (start, size), (after, _) in zip(spans, [*spans[1:], (len(b), 0)], strict=True):
        assert start + size <= after < start + size + 16
        assert not any(b[start + size : after])

    for i, increment in enumerate(struct.unpack_from("<4I", b, rope)):
        assert increment == round(10000 ** (-2 * i / 8) / (2 * math.pi) * 2**32)
    check_vocabulary(b[vocab_at : vocab_at + vocab_bytes], tiny_tokens(330, seed=5))
    assert words.read_bytes() == tokenizer_bytes(tiny_tokens(330, seed=5))


def check_vocabulary(b, tokens):
    n = len(tokens)
    texts = [t for _, t in tokens]
    assert struct.unpack_from("<4I", b) == (
        *(n, max(map(len, texts)), sum(map(len, texts)), 0),
    )
    offsets = struct.unpack_from(f"<{n + 1}I", b, 16)
    ranks_at = 16 + 4 * (n + 1)
    sorted_at = ranks_at + (2 * n + 3) // 4 * 4
    blob = b[sorted_at + (2 * n + 3) // 4 * 4 :]
    assert [blob[offsets[i] : offsets[i + 1]] for i in range(n)] == texts
    ranks = struct.unpack_from(f"<{n}H", b, ranks_at)
    scores = [s for s, _ in tokens]
    assert sorted(set(ranks)) == list(range(len(set(scores))))
    for i in range(0, n, 7):
        for j in range(0, n, 3):
            assert (ranks[i] < ranks[j]) == (scores[i] > scores[j])
            assert (ranks[i] == ranks[j]) == (scores[i] == scores[j])
    order = struct.unpack_from(f"<{n}H", b, sorted_at)
    assert sorted(order) == list(range(n))
    assert [texts[i] for i in order] == sorted(texts)


def test_the_bytes_in_the_spec_are_the_bytes_written(micro):
    shown = 0
    for page in (paths.ROOT / "docs").glob("SPEC*.md"):
        for block in re.findall(r"^```text model-image\n(.*?)^```", page.read_text(), re.M | re.S):
            for line in block.splitlines():
                place, rest = re.match(r"([0-9a-f]{8}): ((?:[0-9a-f]{4} ?)+)", line).groups()
                want = bytes.fromhex(rest)
                assert micro.data[int(place, 16) :].startswith(want), line
                shown += len(want)
    assert shown > 200, "the worked example is gone from docs/SPEC*.md"
    assert len(micro.data) == 1776


def test_equal_tokens_are_sorted_by_id():
    t = image.Tokenizer("t", 2, (b"b", b"a", b"b", b"", b"a"), (0.0, 0.0, -1.0, -1.0, 5.0))
    b = image.pack_tokenizer(t)
    assert struct.unpack_from("<5H", b, 16 + 24) == (1, 1, 2, 2, 0)
    assert struct.unpack_from("<5H", b, 16 + 24 + 12) == (3, 1, 4, 0, 2)
    assert image.unpack_tokenizer(b, "t").tokens == t.tokens


def test_rotation_increments_hold_to_position_70000():
    for head_dim in (2, 8, 64):
        increments = rope_increments(head_dim).tolist()
        assert len(increments) == head_dim // 2
        for i, step in enumerate(increments):
            for p in (1, 511, 4000, 70000):
                turn = (p * step & 0xFFFFFFFF) / 2**32
                exact = p * 10000.0 ** (-2 * i / head_dim) / (2 * math.pi) % 1
                assert abs((turn - exact + 0.5) % 1 - 0.5) <= p * 2**-33 + 1e-9


# --- converting --------------------------------------------------------------------------------


def test_the_same_input_gives_the_same_bytes(tmp_path, micro):
    path, _ = write_tiny(tmp_path, **MICRO)
    assert load_image(path).data == micro.data


def test_an_image_loads_as_it_is(tmp_path, micro):
    path = tmp_path / "m.mkvm"
    path.write_bytes(micro.data)
    again = load_image(path)
    assert again.data == micro.data
    assert again.config == micro.config
    assert again.tokenizer.encode("e") == micro.tokenizer.encode("e") == [1, 3, 4]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return load_image(write_tiny(tmp_path_factory.mktemp("small"), **SMALL)[0])


def test_element_types_are_a_section_at_the_end(small):
    """Found from the spec alone; all else is the image's, and another choice takes its place."""
    data = with_codecs(small, ["int8-int4", "float16"])
    assert len(data) == len(small.data) + 16
    (at,) = struct.unpack_from("<I", data, 76)
    assert at == len(small.data)
    assert data[at:] == bytes([1, 2]) + bytes(14)
    assert not any(data[80:96])
    assert struct.unpack_from("<II", data, 8) == (len(data), zlib.crc32(data[16:]))
    assert data[16:76] == small.data[16:76]
    assert data[96:at] == small.data[96:]
    made = Image.parse(data)
    assert (small.codecs, made.codecs) == (None, ("int8-int4", "float16"))
    assert made.sections()["element types"] == 2
    for each in (small, made):
        assert sum(each.sections().values()) == len(each.data)
    again = with_codecs(made, ["int8", "int8-int4"])
    assert again == with_codecs(small, ["int8", "int8-int4"])
    for name in IN_IMAGES:
        assert Image.parse(with_codecs(small, [name] * 2)).codecs == (name,) * 2


def test_the_element_types_in_the_spec(micro):
    data = with_codecs(micro, ["float16"])
    assert (data[76:80].hex(" ", 2), data[1776:].hex(" ", 2)) == ("f006 0000", "0200" + " 0000" * 7)
    assert len(data) == 1792
    text = (paths.ROOT / "docs/SPEC.md").read_text()
    for part in (data[76:80], data[1776:]):
        assert f"`{part.hex(' ', 2)}`" in text


@pytest.mark.parametrize(
    ("codecs", "message"),
    [
        (["int8"], "1 element types for 2 layers"),
        (["int8", "int7"], "element type 255 of layer 1, a board knows 0 to 4"),
        (["int4", "int8"], "int4 in some layers"),
    ],
)
def test_element_types_that_no_image_can_name(small, codecs, message):
    with pytest.raises(BadInput, match=message):
        with_codecs(small, codecs)


def test_dequantised_weights_are_the_checkpoint_s_to_half_a_percent(tmp_path):
    path, _ = write_tiny(tmp_path, shared=False)
    before, after = read_checkpoint(path).weights, load_image(path).weights()
    for key, w in vars(before).items():
        error = getattr(after, key) - w
        assert error.any(), key
        assert np.sqrt((error**2).mean()) < 0.01 * np.sqrt((w**2).mean()), key


def test_a_shorter_context_is_kept_a_longer_one_refused(tmp_path):
    checkpoint, words = load_checkpoint(write_tiny(tmp_path, seq_len=64)[0])
    assert Image.parse(convert(checkpoint, words)).config.seq_len == 64
    assert Image.parse(convert(checkpoint, words, seq_len=16)).config.seq_len == 16
    for asked in (0, -1, 65, 600):
        with pytest.raises(BadInput, match=rf"--seq-len {asked} is out of range.*1 to 64"):
            convert(checkpoint, words, seq_len=asked)


def test_shifts_leave_a_factor_of_two(tmp_path):
    path, _ = write_tiny(tmp_path, dim=32, layers=3)
    checkpoint = read_checkpoint(path)
    shifts = calibrate(checkpoint.config, checkpoint.weights)
    assert shifts.shape == (3, 3)
    seen = np.zeros((3, 3))

    def watch(layer, q, k, v):
        seen[layer] = np.abs(k).max(), np.abs(v).max(), np.abs(q).max()

    greedy = [1]  # the first of the runs that calibrate makes
    model = Reference(checkpoint.config, checkpoint.weights, np.float64)
    for _ in range(40):
        greedy.append(int(model.forward(greedy)[-1].argmax()))
    model.forward(greedy, watch=watch)
    used = seen * 2.0 ** shifts.astype(float) / 32767
    assert (used <= 0.5).all()
    assert (used > 0.05).all()


def test_shift_for():
    assert shift_for(1.0) == 13
    assert shift_for(32767 / 2) == 0
    assert shift_for(0.0) == 24
    assert shift_for(5e-324) == 24
    for too_large in (32767 / 2 + 0.01, 1e30, math.inf, math.nan):
        with pytest.raises(BadInput, match="beyond the 16383.5"):
            shift_for(too_large)


def test_a_model_whose_numbers_leave_fixed_point_is_refused(tmp_path):
    path, _ = write_tiny(tmp_path, **MICRO)
    data = bytearray(path.read_bytes())
    body = np.frombuffer(data, "<f4", offset=28).copy()
    path.write_bytes(data[:28] + (body * np.float32(1e37)).astype("<f4").tobytes())
    with pytest.raises(BadInput, match="beyond the 16383.5"):
        load_image(path)




# --- limits of the app -------------------------------------------------------------------------


def app_refusal(data: bytes) -> str:
    """What the app on a board says to an image, or nothing."""
    try:
        BoardImage(data)
    except ImageError as error:
        return str(error)
    return ""


FIELDS = {  # of the header
    "dim": (20, "H"),
    "hidden": (22, "H"),
    "layers": (24, "H"),
    "heads": (26, "H"),
    "kv_heads": (28, "H"),
    "head_dim": (30, "H"),
    "vocab": (32, "I"),
    "seq_len": (36, "I"),
}


@pytest.mark.parametrize("field", LIMITS)
def test_the_limits_are_the_app_s(micro, field):
    at, kind = FIELDS[field]
    most = LIMITS[field]
    too_much = 0xFFFF if kind == "H" else 0xFFFFFFFF
    said = app_refusal(patched(micro.data, at, kind, too_much))
    assert re.fullmatch(rf"{field} is {too_much}, must be \d+\.\.{most}", said)
    assert f"{field} is" not in app_refusal(patched(micro.data, at, kind, most))


def test_the_limits_of_a_tokenizer_are_the_app_s(micro):
    at = micro.header.tokenizer_off
    for longest, fits in ((0, False), (1, True), (TOKEN_BYTES_MAX, True), (TOKEN_BYTES_MAX + 1, False)):
        said = app_refusal(patched(micro.data, at + 4, "I", longest))
        assert (f"longest token {longest}, do not fit" not in said) is fits
    for text, fits in ((TEXT_BYTES_MAX, True), (TEXT_BYTES_MAX + 1, False)):
        big = bytearray(micro.data) + bytes(TEXT_BYTES_MAX + 1)
        struct.pack_into("<I", big, 8, len(big))  # total
        struct.pack_into("<I", big, 72, len(big) - at)  # the tokenizer section: all that follows
        assert ("do not fit" not in app_refusal(patched(bytes(big), at + 8, "I", text))) is fits


def test_the_limits_of_an_exponent_are_the_app_s(micro):
    at = micro.header.tensors_off + 16
    for exponent in (EXPONENT_MAX, EXPONENT_MAX + 1, -EXPONENT_MAX, -EXPONENT_MAX - 1):
        said = app_refusal(patched(micro.data, at, "i", exponent))
        assert (f"exponent {exponent}" not in said) is (abs(exponent) <= EXPONENT_MAX)


def test_the_limits_of_a_shift_are_the_app_s(micro):
    for shift in (SHIFT_MAX, SHIFT_MAX + 1, -SHIFT_MAX, -SHIFT_MAX - 1):
        said = app_refusal(patched(micro.data, micro.header.shifts_off + 1, "b", shift))
        assert (f"v_shift of layer 0 is {shift}, must be -31..31" not in said) is (abs(shift) <= SHIFT_MAX)


def test_the_limit_of_epsilon_is_the_app_s(micro):
    for eps, fits in ((EPS_Q32_MAX, True), (EPS_Q32_MAX + 1, False)):
        assert (f"eps_q32 is {eps}" not in app_refusal(patched(micro.data, 48, "I", eps))) is fits


def test_the_element_types_are_the_app_s(small):
    for name in IN_IMAGES:
        assert BoardImage(with_codecs(small, [name] * 2)).codec == name
    assert BoardImage(small.data).codec == "int8"
    for codecs, want in ((["sparse"] * 2, "sparse"), (["int8", "float16"], ["int8", "float16"])):
        assert BoardImage(with_codecs(small, codecs)).codec == want
    data = with_codecs(small, ["int8", "int8-int4"])
    at = len(small.data)
    for bad, said in (
        (patched(data, at + 1, "B", len(IN_IMAGES)), "element type 5 of layer 1: this program knows 0..4"),
        (patched(data, at, "B", 4), "element type int4 in some layers"),
        (patched(data, 76, "I", at + 1), f"element types at {at + 1}, 2 bytes"),
        (patched(data, 76, "I", at + 16), f"element types at {at + 16}, 2 bytes: not inside"),
        (patched(data, 76, "I", 0xFFFFFFF0), "element types at 4294967280"),
        (patched(data, 76, "I", 80), "element types at 80"),
    ):
        assert said in app_refusal(bad)
        with pytest.raises(BadInput, match="inconsistent"):
            Image.parse(bad)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 8200}, "dim 8200 is more than the 8192 a board takes: pass a smaller model"),
        ({"hidden": 8193}, "hidden 8193 is more than the 8192"),
        ({"dim": 2052}, "head_dim 1026 is more than the 1024"),
        ({"vocab": 65536}, "vocab 65536 is more than the 65535"),
        ({"seq_len": (1 << 20) + 1}, "seq_len 1048577 is more than the 1048576 .*: pass a smaller --seq-len"),
    ],
)
def test_a_shape_beyond_the_limits_is_not_converted(tmp_path, changes, message):
    checkpoint, words = load_checkpoint(write_tiny(tmp_path, **MICRO)[0])
    large = replace(checkpoint, config=replace(checkpoint.config, **changes))
    with pytest.raises(BadInput, match=f"tiny.bin: {message}"):
        convert(large, words)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"x" * 1025, "its longest token has 1025 bytes, a board takes 1 to 1024"),
        (b"x" * 1024, None),
    ],
)
def test_a_token_beyond_the_limit_is_not_converted(tmp_path, token, message):
    path, words = write_tiny(tmp_path, **MICRO)
    tokens = tiny_tokens(5)
    words.write_bytes(tokenizer_bytes([*tokens[:4], (0.0, token)]))
    if message is None:
        assert app_refusal(load_image(path).data) == ""
        return
    with pytest.raises(BadInput, match=message):
        load_image(path)


def test_a_text_beyond_the_limit_is_not_converted(tmp_path):
    checkpoint, _ = load_checkpoint(write_tiny(tmp_path, **MICRO)[0])
    count = TEXT_BYTES_MAX // 1000 + 1
    wide = replace(checkpoint, config=replace(checkpoint.config, vocab=count))
    words = image.Tokenizer("--tokenizer t", 1000, (b"x" * 1000,) * count, (0.0,) * count)
    with pytest.raises(BadInput, match=f"have {1000 * count} bytes, a board takes {TEXT_BYTES_MAX}"):
        convert(wide, words)


@pytest.mark.parametrize("scale", [1e-36, 1e-20])
def test_an_exponent_beyond_the_limit_is_not_converted(tmp_path, scale):
    path, _ = write_tiny(tmp_path, **MICRO)
    data = bytearray(path.read_bytes())
    body = np.frombuffer(data, "<f4", offset=28) * np.float32(scale)
    path.write_bytes(data[:28] + body.astype("<f4").tobytes())
    with pytest.raises(BadInput, match=r"embed has weights of up to .*, which need an exponent of -\d+; a"):
        load_image(path)


def test_what_is_converted_the_app_takes(tmp_path):
    for changes in ({}, {"seq_len": 1}, {"vocab": 4}, {"hidden": 8192}):
        path, _ = write_tiny(tmp_path, **{**MICRO, **changes})
        assert app_refusal(load_image(path).data) == ""


def test_an_image_needs_no_tokenizer(tmp_path, micro):
    path = tmp_path / "m.mkvm"
    path.write_bytes(micro.data)
    with pytest.raises(BadInput, match="--tokenizer nope: --model m.mkvm is a board image"):
        load_image(path, "nope")
    with pytest.raises(BadInput, match="--seq-len 3: --model m.mkvm is a board image"):
        load_image(path, seq_len=3)


# --- refusing ----------------------------------------------------------------------------------


def refusal(data: bytes) -> str:
    with pytest.raises(BadInput) as caught:
        Image.parse(data, "--model x.mkvm")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("--model x.mkvm: ")
    return message


def test_truncated_at_every_byte(micro):
    for size in range(len(micro.data)):
        message = refusal(micro.data[:size])
        if size >= 4:
            assert f"cut short: {size} bytes" in message
    assert f"has bytes left over: {len(micro.data) + 1} bytes" in refusal(micro.data + b"\0")


def test_any_flipped_bit_is_noticed(micro):
    for at in range(len(micro.data)):
        refusal(micro.data[:at] + bytes([micro.data[at] ^ (1 << at % 8)]) + micro.data[at + 1 :])


def test_foreign_files_and_other_versions(micro):
    assert "6d6f6465" in refusal(b"model" * 100)
    assert "starts with nothing" in refusal(b"")
    assert "version 2" in refusal(micro.data[:4] + b"\2" + micro.data[5:])
    assert "header of 97 bytes" in refusal(micro.data[:6] + b"\x61" + micro.data[7:])


@pytest.mark.parametrize(
    ("at", "kind", "value", "what"),
    [
        (20, "H", 5, "inconsistent: dim 5"),
        (24, "H", 0, "layers 0"),
        (24, "H", 2, "11 tensors where its shape needs 20"),
        (28, "H", 0, "kv_heads 0"),
        (28, "H", 2, "wk of layer 0"),
        (32, "I", 6, "embed has"),
        (36, "I", 0, "seq_len 0"),
        (40, "H", 16, "group 16"),
        (44, "H", 5, "bos 5, a board takes 0 to 4"),
        (44, "H", 65535, "bos 65535"),
        (48, "I", 1 << 29, "eps_q32 536870912, a board takes"),
        (112, "i", 65, "embed has the exponent 65, a board takes -64 to 64"),
        (112, "i", (1 << 31) - 1, "embed has the exponent 2147483647"),
        (112, "i", -(1 << 31), "embed has the exponent -2147483648"),
        (96, "I", 0, "embed has"),
        ("shifts", "b", 32, "k_shift 32 of layer 0, a board takes -31 to 31"),
        ("shifts", "b", -128, "k_shift -128 of layer 0"),
        (42, "H", 3, "flags 0x3"),
        (42, "H", 0, "11 tensors where its shape needs 12"),
        (52, "I", 100, "tensors at 100"),
        (56, "I", 0xFFFFFFFF, "inconsistent: tensors"),
        (60, "I", 0xFFFFFFF0, "rope at 4294967280"),
        (64, "I", 0, "shifts at 0"),
        (68, "I", 1760, "tokenizer at 1760"),
        (72, "I", 81, "damaged tokenizer section"),
        (72, "I", 3, "damaged tokenizer section"),
        (96, "I", 0xFFFFFFF0, "embed has"),
        (96, "I", 497, "embed has"),
        (100, "I", 0xFFFFFFFF, "embed has"),
        (116, "H", 2, "embed has"),
        (0x190, "I", 0xFFFFFFFF, "damaged tokenizer section"),
        (0x194, "I", 7, "longest token"),
        (0x1A4, "I", 50, "not ascending"),
        (0x1B8, "H", 9, "ranks or sorted ids"),
        (0x1C4, "H", 1, "ranks or sorted ids"),
    ],
)
def test_a_faulty_writer_s_image_with_a_right_checksum(micro, at, kind, value, what):
    data = bytearray(micro.data)
    struct.pack_into("<" + kind, data, micro.header.shifts_off if at == "shifts" else at, value)
    struct.pack_into("<I", data, 12, zlib.crc32(data[16:]))
    assert what in refusal(bytes(data))


def test_what_the_app_refuses_kvlab_refuses(micro):
    """Every byte but those of codes and norms, set to the values at both ends."""
    seen = 0
    whole = with_codecs(micro, ["int8"])
    for at in (*range(16, micro.entries[0].offset), *range(len(micro.data), len(whole))):
        for value in (0, 1, 31, 32, 65, 127, 128, 255):
            data = bytearray(whole)
            data[at] = value
            struct.pack_into("<I", data, 12, zlib.crc32(data[16:]))
            if app_refusal(bytes(data)):
                seen += 1
                refusal(bytes(data))
    assert seen > 1000


def test_a_vocabulary_that_differs_from_the_header_s(micro):
    words = image.pack_tokenizer(image.Tokenizer("t", 1, (b"a",) * 4, (0.0,) * 4))
    data = bytearray(micro.data)
    at = micro.header.tokenizer_off
    data[at : at + len(words)] = words
    struct.pack_into("<I", data, 72, len(words))
    struct.pack_into("<I", data, 12, zlib.crc32(data[16:]))
    assert "4 tokens for a vocabulary of 5" in refusal(bytes(data))


# --- the command -------------------------------------------------------------------------------


def kvlab(capsys, *arguments: object) -> tuple[int, str, str]:
    status = cli.main([*map(str, arguments)])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_convert_writes_image_table_and_figures(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, words = write_tiny(tmp_path / "in", layers=2, shared=False, seq_len=64)
    status, text, err = kvlab(
        capsys, "convert", model, "--seq-len", 32, "--json", "f.json", "-o", "out/t.mkvm"
    )
    assert (status, err) == (0, "")
    made = Image.read(tmp_path / "out/t.mkvm")
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["image_bytes"] == len(made.data) == sum(figures["sections_bytes"].values())
    assert figures["seq_len_tokens"] == made.config.seq_len == 32
    assert figures["tokenizer"] == str(words)
    assert len(figures["shifts"]["k"]) == 2
    assert {"embedding", "key", "down", "classifier"} <= set(figures["quantisation"])
    assert 0.1 < figures["quantisation"]["key"]["error_pct"] < 1.0
    for word in (f"{figures['parameters']:,}", "classifier separate", "trained for 64"):
        assert word in text
    assert kvlab(capsys, "convert", model)[0] == 0
    assert Image.read(tmp_path / "tiny.mkvm").config.seq_len == 64


def refused(capsys, *arguments: object) -> str:
    status, _, err = kvlab(capsys, "convert", *arguments)
    assert status == 2
    assert err.startswith("kvlab: error: ")
    assert err.count("\n") == 1
    return err


def test_convert_refuses_in_one_line_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, words = write_tiny(tmp_path / "in", seq_len=64)
    before = sorted(tmp_path.rglob("*"))
    other = tmp_path / "in" / "tok320.bin"
    assert "MODEL none.bin: no such file" in refused(capsys, "none.bin")
    assert "--seq-len 65" in refused(capsys, model, "--seq-len", 65)
    assert "--tokenizer none.bin" in refused(capsys, model, "--tokenizer", "none.bin")
    assert "not a llama2.c tokenizer" in refused(capsys, model, "--tokenizer", model)
    assert "would overwrite" in refused(capsys, model, "-o", model)
    assert "would overwrite" in refused(capsys, model, "-o", other)
    assert "is a folder" in refused(capsys, model, "-o", tmp_path)
    assert "--output nodir/: names a folder" in refused(capsys, model, "-o", "nodir/")
    assert "--output" in refused(capsys, model, "-o", model / "x.mkvm")
    assert "board image already" in refused(capsys, made_image(tmp_path, model))
    (tmp_path / "made.mkvm").unlink()
    words.unlink()
    assert "pass one as --tokenizer" in refused(capsys, model)
    before.remove(words)
    assert sorted(tmp_path.rglob("*")) == before


def made_image(folder: Path, model: Path) -> Path:
    path = folder / "made.mkvm"
    path.write_bytes(load_image(model).data)
    return path


# --- the real model ----------------------------------------------------------------------------


def test_stories260k(needs_data, tmp_path, capsys):
    model = needs_data("stories260K/stories260K.bin")
    needs_data("stories260K/tok512.bin")
    target = tmp_path / "s.mkvm"
    assert kvlab(capsys, "convert", model, "-o", target)[0] == 0
    made = Image.read(target)
    assert len(made.data) == 291_280
    assert read_checkpoint(model).parameters == 260_032
    names = list(tensor_names(made.config))
    assert made.entries[names.index(("w2", 0))].row_bytes == 204  # 172 columns: 6 groups
    assert made.shifts.tolist()[0] == [9, 13, 9]
