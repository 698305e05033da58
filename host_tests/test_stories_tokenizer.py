"""The device's tokenizer against the host's, which is held to llama2.c's rules."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from hypothesis import given, settings
from hypothesis import strategies as st
from stories.image import Image
from stories.tokenizer import Tokenizer
from stories_fixtures import tiny
from tiny_model import tiny_tokens, tokenizer_bytes, write_tiny

from commandline.errors import BadInput
from kvlab.models.image import convert
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.tokenizer import Tokenizer as HostTokenizer
from kvlab.models.tokenizer import find_tokenizer, read_tokenizer
from mpy_kv.errors import BadArgument

BOS = 1
TEXT = st.one_of(
    st.text(),
    st.text(alphabet=" etaoinshrdlu.\n,'TLS!?é€", max_size=60),
    st.binary(max_size=20),
)


def device(mapped: bool = True) -> Tokenizer:
    data = tiny()[2]
    return Tokenizer(Image(data if mapped else io.BytesIO(data)))


def decode(tokenizer: Tokenizer, ids: list[int]) -> bytes:
    out = b""
    for previous, token in zip(ids, ids[1:]):
        out += bytes(tokenizer.views[tokenizer.decode(previous, token)])
    return out


@given(TEXT)
@settings(max_examples=300, deadline=None)
def test_encodes_as_the_host_does(text: str | bytes) -> None:
    assert device().encode(text) == tiny()[1].encode(text)


@given(TEXT)
@settings(max_examples=150, deadline=None)
def test_decodes_what_it_encoded(text: str | bytes) -> None:
    """Byte for byte, invalid UTF-8 included; the space put in front is taken off again."""
    tokenizer = device()
    raw = text if isinstance(text, bytes) else text.encode()
    assert decode(tokenizer, tokenizer.encode(text)) == raw


def test_from_a_file_and_without_bos() -> None:
    tokenizer = device(mapped=False)
    text = "the lion eats.\nTea!"
    assert tokenizer.encode(text, bos=False) == tiny()[1].encode(text)[1:]
    assert decode(tokenizer, tokenizer.encode(text)) == text.encode()


def test_every_token_decodes_as_on_the_host() -> None:
    tokenizer, host = device(), tiny()[1]
    for previous in (BOS, 5):
        for token in range(len(host)):
            got = bytes(tokenizer.views[tokenizer.decode(previous, token)])
            assert got == host.piece(token, previous)


def test_no_text_is_bos_alone() -> None:
    assert device().encode("") == [BOS]
    assert device().encode("", bos=False) == []


def both(tmp_path: Path, tokens: list[tuple[float, bytes]]) -> tuple[HostTokenizer, Tokenizer]:
    """A vocabulary as the host reads it and as the board does."""
    model, words = write_tiny(tmp_path, vocab=len(tokens))
    words.write_bytes(tokenizer_bytes(tokens))
    host = read_tokenizer(words, len(tokens))
    return host, Tokenizer(Image(convert(read_checkpoint(model), host, shifts=[[9, 9, 9]] * 2)))


def test_bytes_are_found_by_their_text(tmp_path: Path) -> None:
    """Not by a fixed place: some vocabularies have other tokens at ids 3 to 258."""
    tokens = tiny_tokens(30) + [(0.0, b"<0x%02X>" % byte) for byte in b"\x00Z\xff"]
    tokens += [(-float(i), b"ab%d" % i) for i in range(300)]
    host, board = both(tmp_path, tokens)
    for text in (b"\0", b"Z", b"\xff\xffeZ a"):
        ids = host.encode(text)
        assert board.encode(text) == ids
        assert decode(board, ids) == text
    assert host.encode(b"\0Z\xff", bos=False)[-3:] == [30, 31, 32]


@pytest.mark.parametrize("count", [30, 300])
def test_a_byte_without_a_token_is_refused(count: int, tmp_path: Path) -> None:
    """Where the vocabulary is small, and where something else stands at byte + 3."""
    tokens = tiny_tokens(30) + [(-float(i), b"ab%d" % i) for i in range(count - 30)]
    host, board = both(tmp_path, tokens)
    assert board.encode("tea") == host.encode("tea")
    for text, byte in (("Z", "0x5a"), ("a\x00", "0x00"), (b"\xff", "0xff")):
        said = f"none of (its|the) {count} tokens stands"
        with pytest.raises(BadInput, match=said) as on_host:
            host.encode(text)
        with pytest.raises(BadArgument, match=said) as on_board:
            board.encode(text)
        assert byte in str(on_host.value)
        assert byte in str(on_board.value)


@pytest.mark.parametrize("text", ["Once upon a time, Lily went to the park.", "naïve €5\t\x00", ""])
def test_real_vocabulary(text: str, needs_data) -> None:
    path = needs_data("stories260K/stories260K.bin")
    words = find_tokenizer(path, 512)
    data = convert(read_checkpoint(path), words, shifts=[[9, 9, 9]] * 5)
    tokenizer = Tokenizer(Image(data))
    ids = tokenizer.encode(text)
    assert ids == words.encode(text)
    assert decode(tokenizer, ids) == text.encode()
