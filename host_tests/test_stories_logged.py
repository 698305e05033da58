"""A story that is cut off at any moment goes on from the flash log with the text that it would have had."""

from __future__ import annotations

import sys
import types
from binascii import crc32
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import app
from stories_fixtures import tiny

from kvlab.powercut.flash import Nor, PowerCut
from mpy_kv.errors import BadArgument
from mpy_kv.flash_log import files as flash_files
from mpy_kv.flash_log.files import BLOCK

MODEL = {"check_crc": False, "kernels": "plain"}
KINDS: dict[str, dict[str, Any]] = {
    "ring": {"window": 20, "sinks": 2},
    "no sinks": {"window": 33, "sinks": 0},
    "more sinks": {"window": 20, "sinks": 18},
    "float16": {"window": 20, "codec": "float16"},
    "int4": {"window": 20, "codec": "int4"},
    "types": {"window": 20, "codec": ["int8", "int8-int4"] * 8},
    "greedy": {"window": 20, "greedy": True},
    "all tokens": {"window": 20, "top_p": 1, "temperature": 2, "seed": 77},
    "prompt": {"window": 20, "sinks": 2, "prompt": "the"},
}
TOKENS = 56


@cache
def undisturbed(name: str) -> tuple[bytes, dict[str, Any]]:
    return told(None, **KINDS[name])




class Board:
    """A board whose flash has a region for a log, and a folder that tells of it."""

    def __init__(self, folder: Path, sectors: int) -> None:
        self.folder = folder / "kv"
        self.folder.mkdir()
        (self.folder / "000").touch()
        self.nor = Nor(sectors)
        self.fresh = True

    def copy(self, seed: int) -> Board:
        other = object.__new__(Board)
        other.folder, other.nor, other.fresh = self.folder, self.nor.copy(seed), self.fresh
        return other


def blocks(board: Board) -> Any:
    """Stands for FileBlocks, without the file system: that is tested in test_flash_files.py."""

    class Blocks:
        def __init__(self, storage: Any, folder: str) -> None:
            assert folder == str(board.folder)

        def __getattr__(self, name: str) -> Any:
            return getattr(board.nor, name)

        def check(self) -> None:
            """Every block is its file's."""

        def untouched(self) -> bool:
            return all(byte == 0xFF for byte in board.nor.cells[2 * BLOCK :])

    return Blocks


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path, 45)


class Off(BaseException):
    """Switched off between two tokens."""


def told(
    board: Board | None,
    tokens: int = TOKENS,
    *,
    off_at: int | None = None,
    cut_after: int = -1,
    **options: Any,
) -> tuple[bytes, dict[str, Any]]:
    """Text and figures of a start in this process; none where it is switched off behind so many parts of the
    text, or cut in that operation of the flash."""
    image = tiny()[2]
    parts: list[bytes] = []

    def write(part: Any) -> None:
        if len(parts) == off_at:
            raise Off
        parts.append(bytes(part))

    if isinstance(options.get("codec"), list):
        from stories.image import Image

        options["codec"] = options["codec"][: Image(image).layers]
    real = flash_files.FileBlocks
    if board is not None:
        board.nor.power_on()
        board.nor.cut_after = cut_after
        flash_files.FileBlocks = blocks(board)  # type: ignore[misc]
        rp2: Any = types.ModuleType("rp2")
        rp2.Flash = lambda: board.nor
        sys.modules["rp2"] = rp2
        options["log"] = str(board.folder)
    figures: dict[str, Any] = {}
    try:
        options |= {"tokens": tokens, "write": write, "report": False}
        figures = app._run(model=bytearray(image), **MODEL, **options)
    except (Off, PowerCut):
        pass
    finally:
        sys.modules.pop("rp2", None)
        flash_files.FileBlocks = real  # type: ignore[misc]
    return b"".join(parts), figures


def joined(first: bytes, second: bytes, whole: bytes) -> bool:
    """Whether a text that broke off and one that went on are one, nothing between them missing."""
    return whole.startswith(first) and whole.endswith(second) and len(first) + len(second) >= len(whole)


@pytest.mark.parametrize("name", KINDS)
def test_the_text_is_the_undisturbed_one(name: str, board: Board) -> None:
    whole, f = undisturbed(name)
    first, none = told(board, off_at=43, **KINDS[name])
    second, g = told(board, **KINDS[name])
    assert joined(first, second, whole)
    assert none == {}
    assert g["reused_tokens"] > 16
    assert g["tokens"] + g["reused_tokens"] + 1 == f["tokens"] + f["prompt_tokens"]
    assert g["log"]["failed"] is None
    assert g["log"]["misses"] == 0
    for which in ("position", "window", "sinks", "codec", "evicted_tokens", "stories"):
        assert f[which] == g[which]


def test_switched_off_twice(board: Board) -> None:
    """The second time a block further on, and once more within the same block."""
    whole, _ = undisturbed("ring")
    told(board, off_at=25, **KINDS["ring"])
    told(board, off_at=20, **KINDS["ring"])
    told(board, off_at=3, **KINDS["ring"])
    last, f = told(board, **KINDS["ring"])
    assert f["reused_tokens"] == 33
    assert whole.endswith(last)


def off_at(board: Board, at: int, name: str) -> int:
    """Tokens that the start after it went on with."""
    first, _ = told(board, off_at=at, **KINDS[name])
    second, f = told(board, **KINDS[name])
    assert joined(first, second, undisturbed(name)[0])
    assert f["log"]["failed"] is None
    return int(f["reused_tokens"])


def test_off_behind_some_tokens(board: Board) -> None:
    found = [off_at(board.copy(at), at, "prompt") for at in (0, 17)]
    assert found == [0, 17]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["ring", "no sinks", "prompt", "greedy"])
@pytest.mark.parametrize("part", range(14))
def test_off_behind_every_token(name: str, part: int, board: Board) -> None:
    found = [off_at(board.copy(at + 1), at, name) for at in range(part, TOKENS, 14)]
    assert found == sorted(found)
    assert found[-1] > 16


def cut_in(board: Board, operation: int) -> None:
    first, _ = told(board, cut_after=operation, **KINDS["ring"])
    second, f = told(board, **KINDS["ring"])
    assert joined(first, second, undisturbed("ring")[0])
    assert f["log"]["failed"] is None


OPERATIONS = 32  # of a story


def test_how_many_operations_there_are(board: Board) -> None:
    told(board, **KINDS["ring"])
    assert board.nor.programs + board.nor.erases == OPERATIONS


@pytest.mark.parametrize("operation", [5, 23])
def test_cut_in_some_operations(operation: int, board: Board) -> None:
    cut_in(board, operation)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(10))
def test_cut_in_every_operation(part: int, board: Board) -> None:
    for operation in range(part, OPERATIONS, 10):
        cut_in(board.copy(operation + 1), operation)


def test_a_prompt_goes_on_within(board: Board) -> None:
    """Of a long one the tokens that are in the log are not run again."""
    options = {"window": 20, "sinks": 2, "prompt": "the cat and the dog sat on the mat, " * 2}
    whole, f = told(None, 5, **options)
    assert f["prompt_tokens"] > 40
    first, _ = told(board, 5, off_at=38, **options)
    second, g = told(board, 5, **options)
    assert joined(first, second, whole)
    assert 16 < g["reused_tokens"] < 38
    assert g["prompt_tokens"] == f["prompt_tokens"]
    assert g["tokens"] == 5


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2},
        {"prompt": "the"},
        {"temperature": "0.5"},
        {"top_p": "0.5"},
        {"greedy": True},
        {"window": 21},
        {"sinks": 3},
        {"codec": "float16"},
        {"group": 8},
    ],
)
def test_with_other_options_it_begins_anew(other: dict[str, Any], board: Board) -> None:
    options: dict[str, Any] = {"window": 20, "sinks": 2}
    told(board, off_at=20, **options)
    text, f = told(board, 6, **{**options, **other})
    assert f["reused_tokens"] == 0
    assert text == told(None, 6, **{**options, **other})[0]


def test_another_model_begins_anew(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    from stories.image import Image

    told(board, off_at=20, **KINDS["ring"])
    real = Image.__init__

    def other(self: Any, *args: Any) -> None:
        real(self, *args)
        self.model_id ^= 1

    monkeypatch.setattr(Image, "__init__", other)
    assert told(board, 20, **KINDS["ring"])[1]["reused_tokens"] == 0


def test_a_story_that_is_told_begins_anew(board: Board) -> None:
    whole, f = told(board, 36, **KINDS["ring"])
    assert (f["tokens"], f["reused_tokens"], f["log"]["blocks"]) == (36, 0, 2)
    again, g = told(board, 36, **KINDS["ring"])
    assert (again, g["reused_tokens"]) == (whole, 0)


def test_with_fewer_tokens_than_are_told_it_begins_anew(board: Board) -> None:
    told(board, off_at=36, **KINDS["ring"])
    text, f = told(board, 10, **KINDS["ring"])
    assert f["reused_tokens"] == 0
    assert text == told(None, 10, **KINDS["ring"])[0]


def test_with_more_tokens_it_goes_on(board: Board) -> None:
    told(board, 30, off_at=26, **KINDS["ring"])
    text, f = told(board, **KINDS["ring"])
    assert f["reused_tokens"] == 17
    assert undisturbed("ring")[0].endswith(text)


def spoilt(board: Board) -> None:
    """A region that is neither new nor a log's."""
    board.nor.cells[:] = bytes(range(256)) * (len(board.nor.cells) // 256)


def other_version(board: Board) -> None:
    """Superblocks of another version, as the log's next one would have."""
    told(board, off_at=2, **KINDS["ring"])
    for at in range(0, 2 * BLOCK, 256):
        if board.nor.cells[at : at + 4] == b"MKVS":
            board.nor.cells[at + 4] = 2
            board.nor.cells[at + 252 : at + 256] = crc32(board.nor.cells[at : at + 252]).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (spoilt, "no log in this region"),
        (other_version, "a log of version 2: this one reads 1"),
    ],
)
def test_a_log_that_cannot_be_opened_is_a_line(
    harm: Any, says: str, board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    """The story is told without it, and nothing is written."""
    harm(board)
    capsys.readouterr()
    before = bytes(board.nor.cells)
    text, f = told(board, 5, **KINDS["ring"])
    assert text == told(None, 5, **KINDS["ring"])[0]
    assert f["reused_tokens"] == 0
    err = capsys.readouterr().err
    assert err.startswith("stories: told without a log: ")
    assert says in err
    assert err.count("\n") == 1
    assert bytes(board.nor.cells) == before


def test_a_region_that_is_too_small_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = Board(tmp_path, 9)
    text, _ = told(small, 5, **KINDS["ring"])
    assert text == told(None, 5, **KINDS["ring"])[0]
    err = capsys.readouterr().err
    assert err.startswith("stories: told without a log: flash log for the window: needed ")
    assert "free 36864" in err


def test_what_is_not_logged_is_a_line(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"policy": "lru-attention", "budget": 24}
    text, _ = told(board, 5, **options)
    assert text == told(None, 5, **options)[0]
    assert "cache must be a ring to be logged, got BudgetCache" in capsys.readouterr().err


def test_a_story_is_logged_or_saved(board: Board, tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match=r"save goes without log: leave one of them out"):
        told(board, 5, save=str(tmp_path / "a"), **KINDS["ring"])
