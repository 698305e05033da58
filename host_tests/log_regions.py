"""Regions of a flash log for the fuzzer, and what reads one: refused by BadArgument, or a sound log."""

from __future__ import annotations

import random
import zlib
from functools import cache
from typing import Any

from kvlab.powercut.flash import Nor
from mpy_kv.errors import BadArgument, KVError
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.log import FOOT_AT, SECTOR, SUPERBLOCKS
from mpy_kv.flash_log.opening import open_log

SECTORS = 16
SIZE = 1200  # of a record
SLOTS = 2
BLOCKS = 40
HEAD = 24
MOST_STEPS = 500  # that a start of so few sectors may take

# Of a sector's head, a fragment and a foot.
HEAD_CRC = 20
FRAGMENT_BYTES = 18
FOOT_ENTRIES = 20
FOOT_CRC = 28


def record(identity: int, i: int, version: int) -> bytes:
    """It says what it is."""
    return bytes((identity, i, version)) + random.Random(i).randbytes(SIZE - 3)


def new(nor: Any) -> Any:
    return FlashLog(nor, SIZE, slots=SLOTS, blocks=BLOCKS)


def steps(log: Any) -> None:
    for _ in range(MOST_STEPS):
        if not log.step():
            return
    raise AssertionError("step() does not end")


def _region(records: int, closed: bool) -> bytes:
    nor = Nor(SECTORS)
    format_log(new(nor))
    log = open_log(new(nor))
    steps(log)
    slots = {identity: log.begin(identity) for identity in (1, 2)}
    for i in range(records):
        for identity, slot in slots.items():
            steps(log)
            log.put(slot, i, record(identity, i, 0), [0, SIZE])
    if records:
        steps(log)
        log.put(slots[1], 0, record(1, 0, 1), [0, SIZE])
    if closed:
        log.sync(slots[1])
        log.close(slots[2])
    return bytes(nor.cells)


@cache
def samples() -> tuple[bytes, ...]:
    kinds = ((0, False), (1, True), (4, False), (4, True))
    return tuple(_region(records, closed) for records, closed in kinds)


def mended(data: bytes) -> bytes:
    """With each CRC right, where there is one by the numbers beside it."""
    made = bytearray(data)

    def put(at: int, over: bytes) -> None:
        made[at : at + 4] = zlib.crc32(over).to_bytes(4, "little")

    for start in range(0, len(made) - SECTOR + 1, SECTOR):
        if start < SUPERBLOCKS * SECTOR:
            for page in range(start, start + SECTOR, 256):
                if made[page : page + 4] == b"MKVS":
                    put(page + 252, made[page : page + 252])
            continue
        if made[start] == 0xFF:
            continue
        put(start + HEAD_CRC, made[start : start + HEAD_CRC])
        at = start + HEAD
        while at + HEAD < start + FOOT_AT:
            size = 8 * int.from_bytes(made[at + FRAGMENT_BYTES :][:2], "little")
            if not size or at + HEAD + size > start + FOOT_AT:
                break
            put(at, made[at + 4 : at + HEAD + size])
            at += HEAD + size
        foot = start + FOOT_AT
        entries = int.from_bytes(made[foot + FOOT_ENTRIES :][:2], "little")
        if made[foot] != 0xFF and entries < 126:
            put(foot + FOOT_CRC, made[foot - 8 * entries : foot + FOOT_CRC])
    return bytes(made)


def found(log: Any) -> dict[tuple[int, int], bytes]:
    """Each record that is read, by identity and number."""
    there = {}
    into = bytearray(SIZE)
    for slot in range(SLOTS):
        if log.used[slot]:
            for i in range(log.base[slot], log.count[slot]):
                size = log.read(slot, i, into)
                if size >= 0:
                    there[log.identity[slot], i] = bytes(into[:size])
    return there


def _same(log: Any, there: dict[tuple[int, int], bytes]) -> None:
    for (identity, i), data in there.items():
        slot = log.find(identity)
        assert slot >= 0
        into = bytearray(SIZE)
        size = log.read(slot, i, into)
        assert bytes(into[: max(0, size)]) == data


def _put(there: dict[tuple[int, int], bytes]) -> None:
    """Each is a record as some sample has it, or as _read() puts it."""
    for (identity, i), one in there.items():
        assert one in (record(identity, i, 0), record(identity, i, 1), record(1, 9, 9)), (identity, i)


def _read(data: bytes, put_there: bool) -> bool:
    """Whether it was a log in which nothing was lost. put_there: what is read is a record of a sample."""
    nor = Nor(SECTORS)
    n = min(len(data), len(nor.cells))
    nor.cells[:n] = data[:n]
    log = new(nor)
    try:
        open_log(log)
    except BadArgument:
        return False
    steps(log)
    there = found(log)
    whole = log.misses == 0 and len(there) > 0
    if put_there:
        _put(there)
    slot = log.find(1)
    try:
        slot = slot if slot >= 0 else log.begin(1)
        i = log.count[slot]
        log.put(slot, i, record(1, 9, 9), [0, SIZE])
        log.sync(slot)
        there[1, i] = record(1, 9, 9)
    except KVError:  # there may be no room
        pass
    _same(log, there)
    again = open_log(new(nor))
    steps(again)
    if whole and put_there:
        _same(again, there)
    elif put_there:
        _put(found(again))
    else:
        found(again)
    return whole


def read(data: bytes) -> bool:
    return _read(data, True)


def read_hostile(data: bytes) -> bool:
    """Of bytes whose CRC may be right: anything may be read, also another record after a start where numbers
    were forged that no log writes; but each start ends, raises nothing, and what is put is read."""
    return _read(data, False)


def as_is(data: bytes) -> bytes:
    return data
