"""A story that is saved and gone on with has the text that it would have had."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import snapshot_cases
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import app
from stories_fixtures import tiny

from mpy_kv.errors import BadArgument

MODEL = {"check_crc": False, "kernels": "plain"}
KINDS: dict[str, dict[str, Any]] = {
    "ring": {"window": 12, "sinks": 2},
    "no sinks": {"window": 20, "sinks": 0},
    "int4": {"window": 40, "codec": "int4"},
    "float16": {"window": 9, "codec": "float16"},
    "types": {"window": 12, "codec": ["int8", "int8-int4"] * 8},
    "policy": {"policy": "lru-attention", "budget": 10},
    "greedy": {"window": 12, "greedy": True},
    "all tokens": {"window": 12, "top_p": 1, "temperature": 2, "seed": 77},
}


def told(tokens: int, **options: Any) -> tuple[bytes, dict[str, Any]]:
    """Text and figures of a run in this process."""
    image = tiny()[2]
    parts: list[bytes] = []
    if isinstance(options.get("codec"), list):
        from stories.image import Image

        options["codec"] = options["codec"][: Image(image).layers]
    figures = app._run(
        model=bytearray(image),
        tokens=tokens,
        write=lambda part: parts.append(bytes(part)),
        report=False,
        **MODEL,
        **options,
    )
    return b"".join(parts), figures


@pytest.mark.parametrize("name", KINDS)
def test_the_text_is_the_undisturbed_one(name: str, tmp_path: Path) -> None:
    """Told in three runs; the cache of the later ones is made as the file says."""
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    whole, f = told(31, prompt="the", **KINDS[name])
    first, f1 = told(14, prompt="the", save=one, **KINDS[name])
    second, f2 = told(9, resume=one, save=two)
    third, f3 = told(8, resume=two)
    assert first + second + third == whole
    assert f["position"] == f3["position"]
    assert (f1["reused_tokens"], f1["tokens"], f2["tokens"]) == (0, 14, 9)
    assert f2["reused_tokens"] > 0
    assert f3["reused_tokens"] > 0
    assert f1["saved_bytes"] == (tmp_path / "one").stat().st_size
    for which in ("window", "sinks", "codec", "policy", "evicted_tokens"):
        assert f[which] == f3[which]


@pytest.mark.parametrize("first", [1, 2, 11, 12, 13, 14, 29])
def test_wherever_it_is_saved(first: int, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    whole = told(30, window=12, sinks=2)[0]
    assert told(first, window=12, sinks=2, save=path)[0] + told(30 - first, resume=path)[0] == whole


def test_a_story_that_has_ended_goes_on_with_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    for seed in range(1, 60):
        text, f = told(40, stop=True, seed=seed, temperature=5, top_p=1, save=path, window=12)
        if f["tokens"] < 40:
            break
    assert f["tokens"] < 40
    more, g = told(10, resume=path, stop=True)
    assert (more, g["tokens"]) == (b"", 0)


def test_the_ids_of_what_is_visible_are_there(tmp_path: Path) -> None:
    """One for each token of the cache."""
    for kind in ("ring", "policy"):
        path = tmp_path / kind
        told(25, save=str(path), **KINDS[kind])
        again = tmp_path / f"{kind} again"
        told(1, resume=str(path), save=str(again))
        for file in (path, again):
            data = file.read_bytes()
            tokens = struct.unpack_from("<I", data, 52)[0]
            found = {tag: (at, n) for tag, _, at, n in snapshot_cases.sections(data)}
            at, n = found[b"IDS "]
            assert n == 4 * tokens
            ids = struct.unpack_from(f"<{tokens}I", data, at)
            assert all(x < 512 for x in ids)
            if kind == "ring":
                assert ids[0] == 1  # the first sink is the start of the story


def test_what_cannot_be_is_refused_before_a_model_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a"
    told(5, window=12, save=str(path))
    was = path.read_bytes()
    for options, says in (
        ({"prompt": "x"}, "prompt is in the file"),
        ({"seed": 3}, "seed is in the file"),
        ({"greedy": True}, "greedy is in the file"),
        ({"budget": 9}, "budget is in the file"),
        ({"window": 13}, "window is 13 here and 12 in the file of --resume: leave it out"),
        ({"sinks": 0}, "sinks is 0 here and 4 in the file of --resume: leave it out"),
        ({"codec": "float16"}, "codec is float16 here and int8 in the file of --resume: leave it out"),
        ({"policy": "lfu"}, "policy is lfu here and none in the file of --resume: leave it out"),
        ({"resume": str(tmp_path / "none")}, "--resume .*none cannot be read"),
        ({"save": str(tmp_path / "no" / "x")}, "--save .*x cannot be written"),
    ):
        with pytest.raises(BadArgument, match=says):
            told(5, **{"resume": str(path), **options})
    for end in (0, 40, 79, 80, 90, len(was) - 1):
        path.write_bytes(was[:end])
        with pytest.raises(BadArgument, match="--resume .*a cannot be read"):
            told(5, resume=str(path))
    assert sorted(x.name for x in tmp_path.iterdir()) == ["a"]


def test_a_choice_of_tokens_that_no_program_makes_is_refused(tmp_path: Path) -> None:
    """Each word of the section but the sum, which is written before it is read."""
    path = tmp_path / "a"
    told(5, window=12, seed=3, save=str(path))
    was = path.read_bytes()
    at = next(at for tag, _, at, n in snapshot_cases.sections(was) if (tag, n) == (b"tale", 40))
    words = struct.unpack_from("<10I", was, at)
    wrong = {
        0: (1 << 29, 0xFFFFFFFF),
        1: (512, 0xFFFFFFFF),
        2: (2,),
        3: (2,),
        4: (0, (1 << 14) - 1, 1 << 15, 0xFFFFFFFF),
        5: (12, 0xFFFFFFF9, 1 << 31),
        6: (25, 0xFFFFFFFF),
        8: (0, (1 << 15) + 1, 0xFFFFFFFF),
        9: (0,),
    }
    for i, values in wrong.items():
        for value in values:
            bad = bytearray(was)
            struct.pack_into("<I", bad, at + 4 * i, value)
            path.write_bytes(snapshot_cases.mended(bytes(bad)))
            with pytest.raises(BadArgument, match="no story of this program"):
                told(2, resume=str(path))
    assert words[3] == 0
    path.write_bytes(was)
    assert told(2, resume=str(path))[1]["tokens"] == 2


@pytest.mark.parametrize("temperature", ["0.001", "0.8", "100"])
@pytest.mark.parametrize("top_p", ["0.001", "1"])
def test_every_temperature_can_be_gone_on_with(temperature: str, top_p: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    how = {"window": 12, "temperature": temperature, "top_p": top_p}
    assert told(6, **how, save=path)[0] + told(4, resume=path)[0] == told(10, **how)[0]
