"""Checkpoints and tokenizers: read as they were written, anything else one clear error."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import tiny_tokens, tiny_weights, tokenizer_bytes, write_tiny

from commandline.errors import BadInput
from kvlab.models.llama2c import MAGIC, file_bytes, parse_header, read_checkpoint
from kvlab.models.tokenizer import find_tokenizer, read_tokenizer

MICRO = {"dim": 4, "hidden": 6, "layers": 1, "heads": 2, "kv_heads": 1, "vocab": 5, "seq_len": 3}

# stories260K's header but with the vocabulary negative: the classifier is separate.
UNTIED = bytes.fromhex("40000000ac00000005000000080000000400000000feffff00020000")
GOOD = (64, 172, 5, 8, 4, 512, 512)
FIELDS = ("dim", "hidden", "layers", "heads", "kv_heads", "vocab", "seq_len")


def refusal(data: bytes) -> str:
    with pytest.raises(BadInput) as caught:
        parse_header(data)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("--model")
    return message


def header(**changes: int) -> bytes:
    return struct.pack("<7i", *{**dict(zip(FIELDS, GOOD, strict=True)), **changes}.values())


# --- headers -----------------------------------------------------------------------------------


def test_negative_vocabulary_means_a_separate_classifier():
    kind, untied, size = parse_header(UNTIED)
    tied = parse_header(header())[1]
    assert (kind, size) == ("legacy", 28)
    assert (untied.vocab, untied.shared) == (512, False)
    assert (tied.vocab, tied.shared) == (512, True)
    for c in (untied, tied):
        assert (c.dim, c.hidden, c.layers, c.heads, c.kv_heads, c.seq_len) == (*GOOD[:5], 512)
        assert (c.head_dim, c.kv_dim) == (8, 32)
        assert 2 * c.layers * c.kv_dim * c.seq_len * 4 == 655_360  # float32 KV of 512 tokens


def test_big_endian_header_is_implausible():
    message = refusal(struct.pack(">7i", *GOOD))
    assert "dim is 1073741824" in message
    assert "big-endian" in message


def test_big_endian_is_not_suspected_of_plain_nonsense():
    assert "big-endian" not in refusal(header(dim=-64))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versioned_header(version):
    data = struct.pack("<Ii7iB", MAGIC, version, *GOOD, 1).ljust(256, b"\0")
    if version == 1:
        kind, config, size = parse_header(data)
        assert (kind, size, config.shared) == ("version 1", 256, True)
    else:
        message = refusal(data)
        assert f"version {version}" in message
        assert "export.py --version 1" in message


def test_versioned_header_cut_or_littered():
    data = struct.pack("<Ii7iB", MAGIC, 1, *GOOD, 1).ljust(256, b"\0")
    assert "255 bytes" in refusal(data[:255])
    assert "found 2" in refusal(data[:36] + b"\2" + data[37:])
    assert "zeros" in refusal(data[:200] + b"\1" + data[201:])


@pytest.mark.parametrize("size", [0, 1, 27])
def test_shorter_than_a_header(size):
    message = refusal(UNTIED[:size])
    assert f"{size} bytes" in message
    assert "28" in message


ODD = [(f, n) for f in FIELDS for n in (0, -1, -(2**31), 2**31 - 1, 2**22)]


@pytest.mark.parametrize(("field", "value"), ODD)
def test_zero_negative_and_absurd_numbers(field, value):
    message = refusal(header(**{field: value}))
    assert f"{field} is {abs(value) if field == 'vocab' else value}" in message


@pytest.mark.parametrize("vocab", [1, 2, -1, -2])
def test_a_vocabulary_without_bos_and_eos(vocab):
    assert f"vocab is {abs(vocab)}, allowed are 3 to" in refusal(header(vocab=vocab))
    assert parse_header(header(vocab=3))[1].vocab == 3


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({"heads": 7}, ("dim 64", "heads 7")),
        ({"kv_heads": 3}, ("heads 8", "kv_heads 3")),
        ({"kv_heads": 16}, ("heads 8", "kv_heads 16")),
        ({"heads": 64, "kv_heads": 1}, ("odd head_dim 1",)),
    ],
)
def test_heads_that_do_not_divide(changes, numbers):
    message = refusal(header(**changes))
    assert all(n in message for n in numbers)


@pytest.mark.parametrize("magic", [b"GGUF", b"MKVM", b"PK\3\4"])
def test_files_of_other_programs_are_named(magic):
    assert "this is a" in refusal(magic + bytes(300))


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_any_bytes_parse_or_are_refused(data):
    try:
        _, c, _ = parse_header(data)
    except BadInput:
        return
    assert c.dim == c.heads * c.head_dim
    assert c.heads % c.kv_heads == 0
    assert min(c.hidden, c.layers, c.vocab, c.seq_len) > 0


# --- whole files -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["legacy", "v1"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_what_was_written_is_read(tmp_path, kind, shared, kv_heads):
    shape = {"dim": 16, "hidden": 20, "layers": 3, "heads": 4, "kv_heads": kv_heads, "vocab": 10}
    path, _ = write_tiny(tmp_path, **shape, seq_len=7, shared=shared, header=kind, seed=3)
    got = read_checkpoint(path)
    want = tiny_weights(**shape, shared=shared, seed=3)
    for key, values in want.items():
        assert np.array_equal(getattr(got.weights, key), values), key
    assert got.config.shared is shared
    assert (got.weights.classifier is got.weights.embed) is shared
    names = [key for key in want if not (shared and key == "classifier")]
    assert got.parameters == sum(want[key].size for key in names)
    assert file_bytes(got.header, got.config) == path.stat().st_size


@pytest.mark.parametrize("kind", ["legacy", "v1"])
@pytest.mark.parametrize("shared", [True, False])
def test_every_other_length_is_refused(tmp_path, kind, shared):
    path, _ = write_tiny(tmp_path, **MICRO, shared=shared, header=kind)
    data = path.read_bytes()
    for size in (*range(len(data)), len(data) + 1, len(data) + 4):
        path.write_bytes((data + bytes(4))[:size])
        with pytest.raises(BadInput) as caught:
            read_checkpoint(path)
        assert f"{size}" in str(caught.value)
        if size >= 256:
            assert f"{len(data)}" in str(caught.value)


def test_the_wrong_header_for_the_body_is_refused(tmp_path):
    path, _ = write_tiny(tmp_path, **MICRO, shared=True)
    data = bytearray(path.read_bytes())
    struct.pack_into("<i", data, 20, -MICRO["vocab"])  # now it must hold a classifier too
    path.write_bytes(data)
    with pytest.raises(BadInput, match="cut short"):
        read_checkpoint(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(tmp_path, value):
    path, _ = write_tiny(tmp_path, **MICRO)
    data = bytearray(path.read_bytes())
    struct.pack_into("<f", data, 28, value)
    path.write_bytes(data)
    with pytest.raises(BadInput, match="embed holds a number that is not finite"):
        read_checkpoint(path)


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.bin", tmp_path):
        with pytest.raises(BadInput, match="cannot be read"):
            read_checkpoint(path, option="MODEL")


# --- tokenizer files ---------------------------------------------------------------------------


def test_tokenizer_is_read(tmp_path):
    _, path = write_tiny(tmp_path)
    t = read_tokenizer(path, 320)
    want = tiny_tokens(320)
    assert list(t.tokens) == [token for _, token in want]
    assert list(t.scores) == [score for score, _ in want]
    assert t.max_token_bytes == max(map(len, t.tokens))


def test_tokenizer_of_another_vocabulary(tmp_path):
    _, path = write_tiny(tmp_path)
    for vocab in (319, 321, 512):
        with pytest.raises(BadInput, match=rf"holds 320 tokens.*has {vocab}:"):
            read_tokenizer(path, vocab)


def test_tokenizer_of_any_other_length(tmp_path):
    path = tmp_path / "tok5.bin"
    data = tokenizer_bytes(tiny_tokens(5))
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(BadInput, match="--tokenizer tok5.bin"):
            read_tokenizer(path, 5)
    for extra in range(1, 8):
        path.write_bytes(data + bytes(extra))
        with pytest.raises(BadInput, match=f"{extra} trailing bytes after token 4"):
            read_tokenizer(path, 5)


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (struct.pack("<fi", 0, -1), "token 1 has -1 bytes"),
        (struct.pack("<fi", 0, 2**31 - 1), "token 1 has 2147483647 bytes"),
        (struct.pack("<fi", float("nan"), 1) + b"a", "no score"),
    ],
)
def test_tokenizer_with_a_damaged_record(tmp_path, record, what):
    path = tmp_path / "tok2.bin"
    path.write_bytes(struct.pack("<ifi", 5, 0.0, 5) + b"<unk>" + record)
    with pytest.raises(BadInput, match=what):
        read_tokenizer(path, 2)


def test_a_foreign_file_is_no_tokenizer(tmp_path):
    path = tmp_path / "tokenizer.bin"
    path.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(BadInput, match="not a llama2.c tokenizer"):
        read_tokenizer(path, 512)


def test_tokenizer_is_found_beside_the_model(tmp_path):
    model, own = write_tiny(tmp_path, **MICRO)
    assert find_tokenizer(model, 5).path == own
    usual = own.rename(tmp_path / "tokenizer.bin")
    (tmp_path / "tok9.bin").write_bytes(tokenizer_bytes(tiny_tokens(9)))
    assert find_tokenizer(model, 5).path == usual
    odd = usual.rename(tmp_path / "tok_odd.bin")
    assert find_tokenizer(model, 5).path == odd
    odd.unlink()
    with pytest.raises(BadInput, match="holds 9 tokens.*has 5"):
        find_tokenizer(model, 5)
    (tmp_path / "tok9.bin").unlink()
    with pytest.raises(BadInput, match="tok5.bin, tokenizer.bin"):
        find_tokenizer(model, 5)


# --- byte pair encoding ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return read_tokenizer(write_tiny(tmp_path_factory.mktemp("tiny"), vocab=400)[1], 400)


def naive_encode(t, text: str) -> list[int]:
    """llama2.c's loop, word for word: find the best pair, merge it, begin again."""
    ids = []
    for c in " " + text if text else "":
        known = t.ids.get(c.encode())
        ids += [known] if known is not None else [b + 3 for b in c.encode()]
    while True:
        best, at, merged = -1e10, -1, -1
        for i in range(len(ids) - 1):
            joined = t.ids.get(t.tokens[ids[i]] + t.tokens[ids[i + 1]])
            if joined is not None and t.scores[joined] > best:
                best, at, merged = t.scores[joined], i, joined
        if at < 0:
            return [1, *ids]
        ids[at : at + 2] = [merged]


TEXTS = st.text(st.sampled_from(" etaoinshrdlu.\n,'TLS\u00e9\u20ac\u4e2d\U0001f600#"), max_size=60)


@given(text=TEXTS)
@settings(max_examples=300)
def test_encoding_is_llama2c_s_and_decodes_to_the_text(tiny, text):
    ids = tiny.encode(text)
    assert ids == naive_encode(tiny, text)
    assert tiny.decode(ids) == text


@given(st.binary(max_size=40))
def test_any_bytes_survive_encoding(tiny, data):
    ids = tiny.encode(data)
    pieces = [tiny.piece(b, a) for a, b in zip(ids, ids[1:], strict=False)]
    assert b"".join(pieces) == data


def test_bos_eos_and_the_empty_text(tiny):
    assert tiny.encode("") == [1]
    assert tiny.encode("", bos=False) == []
    assert tiny.encode("e", eos=True) == [*tiny.encode("e"), 2]
    assert tiny.encode("e", bos=False) == tiny.encode("e")[1:]


def test_merging_matters_and_ties_go_left(tmp_path):
    tokens = [(0.0, b"<unk>"), (0.0, b"\n<s>\n"), (0.0, b"\n</s>\n"), (-9.0, b"a"), (-9.0, b"b")]
    tokens += [(-1.0, b"ab"), (-1.0, b"ba"), (-2.0, b"aba"), (-9.0, b" ")]
    path = tmp_path / "tok9.bin"
    path.write_bytes(tokenizer_bytes(tokens))
    t = read_tokenizer(path, 9)
    assert t.encode("abab") == [1, 8, 5, 5]  # ab ab: never a ba b
    assert t.encode("baba") == [1, 8, 6, 6]
    assert t.encode("aab") == [1, 8, 3, 5]
    assert t.encode("aba") == [1, 8, 7]  # ab, then aba
    assert t.ranks == (0, 0, 0, 3, 3, 1, 1, 2, 3)
    assert [t.tokens[i] for i in t.sorted_ids] == sorted(t.tokens)


def test_characters_of_one_to_four_bytes_are_found_whole(tmp_path):
    characters = ["a", "\u00e9", "\u20ac", "\U0001f600"]
    tokens = [(0.0, b"<0x%02X>" % max(i - 3, 0)) for i in range(259)]
    tokens += [(-9.0, c.encode()) for c in characters]
    path = tmp_path / "tok263.bin"
    path.write_bytes(tokenizer_bytes(tokens))
    t = read_tokenizer(path, 263)
    assert t.encode("".join(characters), bos=False) == [259, 260, 261, 262]
    stray = b"\x80\x80\x80\x80\x80"  # no character: five bytes
    assert t.encode(stray, bos=False) == [0x80 + 3] * 5


def test_a_vocabulary_without_bytes_says_so(tmp_path):
    t = read_tokenizer(write_tiny(tmp_path, **MICRO)[1], 5)
    with pytest.raises(BadInput, match="none of its 5 tokens stands for byte 0x7a"):
        t.encode("z")


def test_stories_tokenizer(needs_data):
    t = read_tokenizer(needs_data("stories260K/tok512.bin"), 512)
    text = "Once upon a time, there was a little girl named Lily."
    assert t.encode(text)[:8] == [1, 403, 407, 261, 378, 432, 383, 286]
    assert t.encode(text) == naive_encode(t, text)
    assert t.decode(t.encode(text)) == text
    assert t.piece(3 + 10) == b"\n"
