"""The device's tokenizer against the host's, which is held to llama2.c's rules."""

from __future__ import annotations

import io

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from hypothesis import given, settings
from hypothesis import strategies as st
from stories.image import Image
from stories.tokenizer import Tokenizer
from stories_fixtures import tiny

from kvlab.models.image import convert
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.tokenizer import find_tokenizer

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


@pytest.mark.parametrize("text", ["Once upon a time, Lily went to the park.", "naïve €5\t\x00", ""])
def test_real_vocabulary(text: str, needs_data) -> None:
    path = needs_data("stories260K/stories260K.bin")
    words = find_tokenizer(path, 512)
    data = convert(read_checkpoint(path), words, shifts=[[9, 9, 9]] * 5)
    tokenizer = Tokenizer(Image(data))
    ids = tokenizer.encode(text)
    assert ids == words.encode(text)
    assert decode(tokenizer, ids) == text.encode()
