"""Texts to measure and train on: every form of end of line, no half characters, no endless passage."""

import json

import pytest
from tiny_model import CHARACTERS, tokenizer_bytes, write_tiny

from commandline.errors import BadInput
from kvlab import cli
from kvlab.models.corpus import read_passages, stories, text_bytes
from kvlab.models.tokenizer import Tokenizer, read_tokenizer
from kvlab.train.data import read_texts


@pytest.fixture
def words(tmp_path):
    return read_tokenizer(write_tiny(tmp_path)[1], 320)


def written(tmp_path, data, name="x.jsonl"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_a_line_ends_at_a_newline_and_nowhere_else(tmp_path, words):
    """U+2028 and U+0085 may stand in a JSON string as they are; to splitlines() they end a line."""
    texts = ["one\u2028two", "three\u0085four", "five"]
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    path = written(tmp_path, "\r\n".join(lines).encode())
    assert [body for body, _ in stories(path, path.read_text(encoding="utf-8"))] == texts
    assert len(read_passages(path, words)) == 3
    assert read_texts([path]).train == texts


@pytest.mark.parametrize("name", ["x.jsonl", "x.txt"])
def test_a_byte_order_mark_is_no_text(tmp_path, words, name):
    text = json.dumps({"text": "one"}) if name == "x.jsonl" else "one"
    path = written(tmp_path, b"\xef\xbb\xbf" + text.encode(), name)
    assert read_passages(path, words) == [words.encode("one")]
    assert read_texts([path]).train == ["one"]


@pytest.mark.parametrize("read", [read_texts, lambda paths: read_passages(paths[0], None)])
def test_half_a_character_is_refused_with_its_line(tmp_path, read):
    path = written(tmp_path, b'\n{"text": "\\ud800"}')
    with pytest.raises(BadInput, match=r"--text .*x.jsonl: line 2 has half a character"):
        read([path])


def test_a_line_nested_too_deep_is_refused_with_its_number(tmp_path, words):
    with pytest.raises(BadInput, match="line 1 is no JSON object"):
        read_passages(written(tmp_path, b"[" * 100_000), words)


def test_tokens_that_print_nothing_do_not_go_on_for_ever(tmp_path):
    """Nothing of the running text would ever be behind us."""

    class Mute(Tokenizer):
        def encode(self, text, bos=True, eos=False):
            return [1] + [3] * len(text)

    empty = Mute("--tokenizer tok.bin", 9, (b"",) * 300 + (b"long text",), (0.0,) * 301)
    with pytest.raises(BadInput, match="--tokenizer tok.bin: its tokens for byte 0 of"):
        read_passages(written(tmp_path, b"abc " * 10, "x.txt"), empty)
    path = tmp_path / "tok300.bin"
    path.write_bytes(b"\1\0\0\0" + bytes(8 * 300))
    with pytest.raises(BadInput, match="none of its 300 tokens has any text"):
        read_tokenizer(path, 300)


def test_a_running_text_takes_time_in_proportion(tmp_path, words, monkeypatch):
    """However long the longest token: what is encoded for a passage is about what it holds."""
    long = Tokenizer(words.name, 4096, (*words.tokens, b"z" * 4096), (*words.scores, 0.0))
    encoded = []
    real = Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", lambda t, data: encoded.append(len(data)) or real(t, data))
    path = written(tmp_path, b"the hen " * 3000, "x.txt")
    passages = read_passages(path, long, max_tokens=64)
    assert sum(encoded) < 20 * path.stat().st_size
    assert sum(text_bytes(long, ids) for ids in passages) >= path.stat().st_size - len(passages)


def test_passages_are_those_of_the_text_encoded_far_ahead(tmp_path, words):
    """What lies beyond the bytes looked at changes no token of a passage."""
    text = b" ".join(CHARACTERS[i % 30] * (i % 5 + 1) + CHARACTERS[i * 7 % 31] for i in range(400))
    at, data, max_tokens = 0, text, 12
    expected = []
    while data[at:].strip():
        at += len(data[at:]) - len(data[at:].lstrip())
        ids = words.encode(data[at : at + (max_tokens + 200) * words.max_token_bytes])[:max_tokens]
        expected.append(ids)
        at += text_bytes(words, ids)
    found = read_passages(written(tmp_path, text, "x.txt"), words, max_tokens=max_tokens)
    assert found == [ids for ids in expected if len(ids) > 1]


@pytest.mark.parametrize("seq_len", [1, 2])
def test_a_context_too_short_to_predict_in(tmp_path, capfd, monkeypatch, seq_len):
    monkeypatch.setattr("kvlab.commands.train.find_spec", lambda name: True)
    model, _ = write_tiny(tmp_path, seq_len=seq_len)
    text = written(tmp_path, b"the hen\n", "x.txt")
    for words in (
        ["bench", "loss", "--model", model, "--text", text],
        ["train", "--text", text, "--teacher", model, "--out", tmp_path / "out"],
    ):
        assert cli.main([str(word) for word in words]) == 2
        err = capfd.readouterr().err
        assert f"was trained for {seq_len} tokens, too few" in err
        assert err.count("\n") == 1


def test_a_tokenizer_of_bytes_alone_still_reads(tmp_path):
    tokens = [(0.0, b"<unk>"), (0.0, b"\n<s>\n"), (0.0, b"\n</s>\n")]
    tokens += [(0.0, b"<0x%02X>" % i) for i in range(256)]
    path = tmp_path / "tok259.bin"
    path.write_bytes(tokenizer_bytes(tokens))
    only_bytes = read_tokenizer(path, 259)
    found = read_passages(written(tmp_path, b"abc", "x.txt"), only_bytes)
    assert found == [[1, 3 + ord("a"), 3 + ord("b"), 3 + ord("c")]]
