"""Chains of the bus's queue by DMA: the emulated controller obeys the chip's rules, and chains work on it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from known_cases import DEVICE

from kvlab import boards
from unix_port import launcher

import bus_queue  # isort: skip

CHIPS = ("rp2040", "rp2350")


@cache
def said(name: str, board: str, *args: object) -> dict[str, list[str]]:
    """What a script prints, by its parts."""
    report = launcher.emulate(DEVICE / name, args, boards.load(board).machine, timeout_s=120)
    assert report.outcome == "ok", report.stderr
    parts: dict[str, list[str]] = {"": []}
    here = parts[""]
    for line in report.stdout.splitlines():
        if line.startswith("-- "):
            here = parts.setdefault(line[3:], [])
        else:
            here.append(line)
    return parts


def told(name: str, board: str, part: str) -> list[str]:
    return said(name, board, *([board] if name == "emulated_dma.py" else []))[part]


# Of the default of pack_ctrl(): what micropython's documents and its test of the class (tests/ports/rp2) say.
ZEROS = ("ahb_err", "bswap", "busy", "high_pri", "read_err", "ring_sel", "ring_size", "sniff_en", "write_err")
ONES = ("chain_to", "enable", "inc_read", "inc_write", "irq_quiet")
DEFAULT = {**dict.fromkeys(ZEROS, 0), **dict.fromkeys(ONES, 1), "size": 2, "treq_sel": 63}
# The words: by the registers' tables of the two data sheets.
WORDS = {"rp2040": ["0x3f8839 0x1f8031", "0x500"], "rp2350": ["0xfe2059 0x7e0051", "0x1400"]}


@pytest.mark.parametrize("board", CHIPS)
def test_channels_are_claimed_and_given_back(board: str) -> None:
    last = {"rp2040": 11, "rp2350": 15}[board]
    assert told("emulated_dma.py", board, "claims") == [
        f"DMA(3) {last} OSError: 16",
        "255 ValueError: channel closed ValueError: channel closed",
        "5",
    ]


@pytest.mark.parametrize("board", CHIPS)
def test_the_word_that_controls_a_channel(board: str) -> None:
    fields, *words, refusals, extra = told("emulated_dma.py", board, "controls")
    new = {"inc_read_rev": 0, "inc_write_rev": 0} if board == "rp2350" else {}
    assert fields == repr(sorted({**DEFAULT, **new}.items()))
    assert words == WORDS[board]
    assert refusals.split(" ValueError")[0] == "TypeError: pack_ctrl only takes keyword arguments"
    assert refusals.endswith("ValueError: bad field value TypeError")
    assert extra == "TypeError"


@pytest.mark.parametrize("board", CHIPS)
def test_widths_and_steps(board: str) -> None:
    *copied, swapped, again = told("emulated_dma.py", board, "copies")
    source = bytes(range(1, 65))
    for line, (size, inc_read, inc_write) in zip(
        copied, ((0, 1, 1), (1, 1, 1), (2, 1, 1), (2, 0, 1), (1, 1, 0), (0, 0, 0))
    ):
        step = 1 << size
        to = bytearray(24)
        for i in range(5):
            at, where = i * step * inc_read, i * step * inc_write
            to[where : where + step] = source[at : at + step]
        ends = (5 * step * inc_read, 5 * step * inc_write)
        assert line == f"{size} True 5 {ends} 0 {bytes(to)!r}"
    assert swapped == f"2 {bytes([4, 3, 2, 1, 8, 7, 6, 5] + 8 * [0])!r}"
    assert again == "False True 2 False"


@pytest.mark.parametrize("board", CHIPS)
def test_rings_chains_and_aliases(board: str) -> None:
    ring = bytes((i + 2) % 8 + 1 for i in range(20))
    assert told("emulated_dma.py", board, "rings") == [f"{ring!r} 6"]
    assert told("emulated_dma.py", board, "chains") == [
        "10 b'abcd' b'abcd'",  # two beginnings and two transfers, the first beginning before the clock
        "9 b'abcd' <class 'memoryview'> 16 False",  # by the last alias's trigger
        "False 0 b'wxyz'",  # a trigger of 0
    ]


@pytest.mark.parametrize("board", CHIPS)
def test_errors_pace_and_flash(board: str) -> None:
    """Bits: of any error, of a read, of a write."""
    assert [line.split()[1:] for line in told("emulated_dma.py", board, "faults")] == [
        [bits, "0", "False"] for bits in ("6", "5", "5", "6", "5")
    ]
    assert told("emulated_dma.py", board, "paced") == ["never False 2"]
    assert told("emulated_dma.py", board, "flash") == [rf"True 80 {bytes([255] * 8)!r}", "1 5"]
    assert told("emulated_dma.py", board, "handlers") == ["[0]"]


def test_backwards_on_the_newer_chip() -> None:
    assert told("emulated_dma.py", "rp2350", "backwards") == [repr(bytes(range(15, -1, -1)))]
    assert "backwards" not in said("emulated_dma.py", "rp2040", "rp2040")


# Chains


@pytest.mark.parametrize("board", CHIPS)
def test_a_chain_is_one_start_of_the_core(board: str) -> None:
    """n descriptors of 8 words, and the four zeros: n + 1 times four words of the first channel. It begins
    that often, and the other one n times; a beginning takes 8 cycles, a transfer one."""
    want = []
    for n in (1, 4, 16):
        transfers, begins = 8 * n + 4 * (n + 1), 2 * n + 1
        want.append(f"{n} True {[transfers, begins, transfers + 8 * begins]}")
    assert told("bus_chained.py", board, "costs") == want


@pytest.mark.parametrize("board", CHIPS)
def test_a_chain_that_is_cut_at_every_step(board: str) -> None:
    assert told("bus_chained.py", board, "cut") == ["cuts True wrong 0"]


@pytest.mark.parametrize("board", CHIPS)
def test_a_bus_error_in_a_chain(board: str) -> None:
    assert told("bus_chained.py", board, "errors") == ["error [Errno 5] EIO 1 1 0", "True 0", "True 0 0"]


@pytest.mark.parametrize("board", CHIPS)
def test_the_core_copies_where_there_is_no_dma(board: str) -> None:
    channels = {"rp2040": 12, "rp2350": 16}[board]
    said = told("bus_chained.py", board, "choices")
    assert said == ["True", "True", f"True {channels - 1}", f"{channels - 3}"]


def chained(board: str, seed: int, lists: int) -> Any:
    return json.loads(said("bus_queue.py", board, seed, lists, "chained")[""][0])


@pytest.mark.parametrize("board", CHIPS)
def test_random_lists_by_chains(board: str) -> None:
    """To the bit, descriptors and chains too, what the core makes of them."""
    assert chained(board, 1, 40) == bus_queue.run(1, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("board", CHIPS)
def test_many_random_lists_by_chains(board: str) -> None:
    assert chained(board, 100, 2000) == bus_queue.run(100, 2000)
