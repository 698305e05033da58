"""Safeguards of the log, taken away one at a time: each must let a cut do harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mpy_kv.flash_log import log as device
from mpy_kv.flash_log import opening, recovery

_Log: Any = device.FlashLog


class _NoCRC(_Log):
    def _right(self, buf: Any, at: int) -> bool:
        return True


class _Order(_Log):
    """What a record replaces is given up, and erased, before the record is kept."""

    def _discount(self, slot: int, place: int) -> None:
        super()._discount(slot, place)
        for s in range(device.SUPERBLOCKS, self.sectors):
            if self.owner[s] == slot and not self.live[s] and s != self.open[slot]:
                self.erase(s)
                self.owner[s] = device.READY
                self.ready += 1


class _OneSuperblock(_Log):
    """Each copy is written over the one before."""

    def _super_ready(self) -> bool:
        return True

    def write_superblock(self) -> None:
        self.erase_superblock(0)
        self._write_superblock(0)


class _Early(_Log):
    def durable(self, slot: int, version: int) -> bool:
        return True


def _trust_blank(log: Any) -> None:
    """Sectors that read blank at a start are taken for erased."""
    for s in range(device.SUPERBLOCKS, log.sectors):
        view = bytearray(device.SECTOR)
        log.device.readblocks(s, view)
        if log.owner[s] == device.FREE and view.count(255) == len(view):
            log.owner[s] = device.READY
            log.free -= 1
            log.ready += 1


def _go_on(log: Any) -> None:
    """Sectors in doubt are written to where they seem to end."""
    log.again = []
    for s in log.doubtful:
        slot = log.owner[s]
        if opening._foot(log, s) > 0:
            continue
        at, n = 24, 0
        while at + 24 < 4064 and log._read(s, at, log._header_view):
            here = opening.half(log._header, 18) << 3
            if not here or at + 24 + here > 4064 or not log._check(s << 9 | at >> 3, None, 0):
                break
            at += 24 + here
            n += 1
        if n:
            log.open[slot], log.at[slot], log.entries[slot] = s, at, n
            log.live[s] = 63
    log.doubtful = []
    # Not `_mend`, which would close what is open.
    log.recovery[1] = 2


BREAKS: dict[str, str] = {
    "crc": "no CRC is compared",
    "write-order": "what a record replaces is given up before the record is kept",
    "superblock-alternation": "a superblock is written over the one before",
    "erase-record": "a sector that reads blank at a start is taken for erased",
    "torn-page": "a sector in doubt is written on where it seems to end",
    "last-close": "the sector closed last is not doubted at a start",
    "generation": "sectors of a closed sequence are not told from those of the next",
    "early-success": "a record is told to be kept once it is written",
    "marker-check": "a block is written whatever its file holds by then",
}
# Those that files of a log have (beside.py).
OF_FILES = ("marker-check",)

_CLASSES: dict[str, type[Any]] = {
    "crc": _NoCRC,
    "write-order": _Order,
    "superblock-alternation": _OneSuperblock,
    "early-success": _Early,
}
_AFTER_OPENING: dict[str, Callable[[Any], None]] = {"erase-record": _trust_blank, "torn-page": _go_on}
_PATCHES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "last-close": (opening, "last_is_doubtful", lambda log: False),
    "generation": (opening, "any_generation", lambda: 1),
}


@contextmanager
def broken(name: str | None) -> Iterator[tuple[type[Any], Callable[[Any], Any]]]:
    """The class of a log without that safeguard, and how to open one; all of it in force within."""

    def opened(log: Any) -> Any:
        opening.open_log(log)
        if name in _AFTER_OPENING:
            _AFTER_OPENING[name](log)
        return log

    made = _CLASSES.get(name or "", _Log)
    if name not in _PATCHES:
        yield made, opened
        return
    module, function, other = _PATCHES[name]
    had = getattr(module, function)
    setattr(module, function, other)
    try:
        yield made, opened
    finally:
        setattr(module, function, had)


__all__ = ["BREAKS", "broken", "recovery"]
