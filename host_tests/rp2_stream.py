"""An rp2 chip as far as the streaming of weights goes: a core that runs kernels in Thumb assembler, two DMA
channels that load and obey control blocks, the stream of the flash into a FIFO, and the RAM they share.

A bus master moves one word in a turn, and whose turn it is is drawn: an order that no chip keeps to holds for
all that do. After a channel's end a few turns may go by before the one it is chained to begins.
"""

from __future__ import annotations

import ast
from array import array
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import thumb32

XIP, FIFO, DMA = 0x14000000, 0x50400000, 0x50000000
STAT, STREAM_ADDR, STREAM_CTR, STREAM_FIFO = 0x08, 0x14, 0x18, 0x1C
FLASH = 0x10000000
RAM = 0x20000000
CHIP_ID = 0x40000000
CODE = 0x20080001  # addresses of kernels: they are only called
READ, WRITE, COUNT, CONTROL = range(4)
ENABLE, INC_READ, INC_WRITE, RING_WRITE, BUSY = 1, 1 << 4, 1 << 5, 1 << 10, 1 << 24
STREAM_REQUEST = 37
STREAM_AHEAD = 2  # words that the FIFO holds
MOST_TURNS = 3_000_000


class Stuck(AssertionError):
    """The core waits for what will never come."""


class Channel:
    """A DMA channel; its registers are words, of which the last starts it, by four aliases."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.registers = [0, 0, 0, 0]
        self.reload = 0
        self.busy = False

    def start(self) -> None:
        assert not self.busy, f"channel {self.number} is started while it is at work"
        if self.registers[CONTROL] & ENABLE:
            self.registers[COUNT] = self.reload
            self.busy = self.reload > 0


class Chip:
    def __init__(self, flash: bytes, random: Random) -> None:
        self.random = random
        self.flash = flash
        self.buffers: list[tuple[int, memoryview, Any]] = []
        self.at = RAM
        self.channels = [Channel(n) for n in range(12)]
        self.pending: list[tuple[int, int]] = []  # (turns until, channel) that is to be started
        self.stream = self.stream_left = 0
        self.fifo: list[int] = []
        self.turns = 0
        self.frozen = False  # whether the stream delivers nothing
        self.spoilt = False  # whether it delivers something else
        self.code: dict[int, Callable[[list[int]], None]] = {}
        self.add(stack := bytearray(4096))
        self.stack = self.address(stack) + len(stack)

    # Memory.

    def add(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        at = self.at
        self.buffers.append((at, view, buffer))
        self.at += -(-len(view) // 16) * 16 + 64
        return at

    def address(self, buffer: Any) -> int:
        for at, _, known in self.buffers:
            if known is buffer:
                return at
        return self.add(buffer)

    def bytes_at(self, address: int, size: int) -> bytes:
        if address >= FLASH and address + size <= FLASH + len(self.flash):
            return self.flash[address - FLASH : address - FLASH + size]
        for at, view, _ in self.buffers:
            if at <= address and address + size <= at + len(view):
                return bytes(view[address - at : address - at + size])
        raise AssertionError(f"{size} bytes are read at {address:#x}, where nothing is")

    def load(self, address: int) -> int:
        assert address % 4 == 0, hex(address)
        if address == FIFO or address == XIP + STREAM_FIFO:
            return self.fifo.pop(0)
        if address == XIP + STAT:
            return 0 if self.fifo else 2
        if address == CHIP_ID:
            return 0x20002927
        if DMA <= address < DMA + 0x40 * len(self.channels):
            channel, register = self.channels[(address - DMA) // 0x40], address % 0x40 // 4
            assert register < 4, hex(address)
            return channel.registers[register] | (BUSY if register == CONTROL and channel.busy else 0)
        return int.from_bytes(self.bytes_at(address, 4), "little")

    def store(self, address: int, x: int) -> None:
        assert address % 4 == 0, hex(address)
        if address == XIP + STREAM_ADDR:
            assert not self.stream_left, "the stream is told where to begin while it is at work"
            self.stream = x
        elif address == XIP + STREAM_CTR:
            assert not (x and self.stream_left), "the stream is told how long it is while it is at work"
            self.stream_left = x
        elif DMA <= address < DMA + 0x40 * len(self.channels):
            self._set(self.channels[(address - DMA) // 0x40], address % 0x40, x)
        else:
            for at, view, _ in self.buffers:
                if at <= address < at + len(view):
                    view[address - at : address - at + 4] = (x & 0xFFFFFFFF).to_bytes(4, "little")
                    return
            raise AssertionError(f"a word is written at {address:#x}, where nothing is")

    def _set(self, channel: Channel, offset: int, x: int) -> None:
        register = {0x00: READ, 0x04: WRITE, 0x08: COUNT, 0x0C: CONTROL, 0x3C: READ}[offset]
        if register == COUNT:
            channel.reload = x
        else:
            channel.registers[register] = x
        if offset in (0x0C, 0x3C) and x:  # 0 there starts nothing
            channel.start()

    # Turns of the hardware.

    def turn(self) -> None:
        self.turns += 1
        if self.turns > MOST_TURNS:
            raise Stuck("no end")
        what = self.random.randrange(6)
        if what == 0 and self.stream_left and len(self.fifo) < STREAM_AHEAD and not self.frozen:
            word = int.from_bytes(self.bytes_at(self.stream, 4), "little")
            self.fifo.append(word ^ 1 if self.spoilt else word)
            self.stream += 4
            self.stream_left -= 1
        self.pending = [(turns - 1, n) for turns, n in self.pending]
        for turns, n in list(self.pending):
            if turns <= 0:
                self.pending.remove((turns, n))
                self.channels[n].start()
        for channel in self.channels:
            if channel.busy and self.random.randrange(3):
                self._move(channel)

    def _move(self, channel: Channel) -> None:
        control = channel.registers[CONTROL]
        if control >> 15 & 63 == STREAM_REQUEST and not self.fifo:
            return
        read, write = channel.registers[READ], channel.registers[WRITE]
        x = self.load(read)
        if control & INC_READ:
            channel.registers[READ] = read + 4
        if control & INC_WRITE:
            channel.registers[WRITE] = write + 4
            if control & RING_WRITE:
                size = 1 << (control >> 6 & 15)
                channel.registers[WRITE] = write // size * size + (write + 4) % size
        channel.registers[COUNT] -= 1
        if not channel.registers[COUNT]:
            channel.busy = False
            chained = control >> 11 & 15
            if chained != channel.number:
                self.pending.append((self.random.randrange(1, 4), chained))
        self.store(write, x)

    def idle(self) -> bool:
        """Nothing moves, and nothing will."""
        return not (any(channel.busy for channel in self.channels) or self.pending or self.stream_left)

    # The core.

    def kernels(self, path: Path) -> dict[str, Callable[..., int]]:
        """Those of a file in Thumb assembler; each has an `address` by which others call it."""
        made = {}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                made[node.name] = self._kernel(node)
        return made

    def called(self, run: Callable[[list[int]], None]) -> int:
        """The address of a kernel that stands for another: it gets the core's registers."""
        address = CODE + 16 * len(self.code)
        self.code[address] = run
        return address

    def _kernel(self, function: ast.FunctionDef) -> Callable[..., int]:
        code, labels = thumb32.instructions(function)

        def run(r: list[int]) -> None:
            saved = r[4:12]
            core = _Core(self, r)
            at = 0
            while at < len(code):
                op, operands = code[at]
                at += 1
                for _ in range(self.random.randrange(3)):
                    self.turn()
                if op == "blx":
                    self.code[r[operands[0]]](r)
                    r[1] = r[2] = r[3] = 0xDEAD
                elif op == "b" or (op[0] == "b" and op != "bic"):
                    if op == "b" or core.holds(op[1:3]):
                        at = labels[operands[0]]
                else:
                    core.execute(op, operands)
            r[4:12] = saved  # the assembler saves r4 to r7; the others are not used

        def call(*arguments: int) -> int:
            r = [0xDEAD0000 + n for n in range(16)]
            r[: len(arguments)] = arguments
            r[thumb32.SP] = self.stack
            run(r)
            return r[0]

        call.address = self.called(run)  # type: ignore[attr-defined]
        return call


class _Core(thumb32.Core):
    """Its loads and stores go to the chip; its registers are given."""

    def __init__(self, chip: Chip, registers: list[int]) -> None:
        self.chip = chip
        self.r = registers
        self.n = self.z = self.v = 0
        self._c = 0

    def load(self, address: int, size: int, signed: bool = False) -> int:
        assert size == 4
        return self.chip.load(address) & thumb32.MASK

    def store(self, address: int, size: int, x: int) -> None:
        assert size == 4
        self.chip.store(address, x)


class Dma:
    """rp2.DMA of that chip."""

    def __init__(self, chip: Chip, taken: list[int]) -> None:
        self.channel = next(n for n in range(12) if n not in taken)
        taken.append(self.channel)
        self._chip, self._taken = chip, taken

    def pack_ctrl(self, **fields: int) -> int:
        given = {"inc_read": 1, "inc_write": 1, "treq_sel": 63, "chain_to": self.channel, **fields}
        places = {"inc_read": 4, "inc_write": 5, "ring_size": 6, "ring_sel": 10, "chain_to": 11}
        places["treq_sel"] = 15
        return sum(int(value) << places[name] for name, value in given.items()) | 1 << 21 | 2 << 2 | ENABLE

    def config(self, read: Any, write: int, count: int, ctrl: int, trigger: bool) -> None:
        base = DMA + 0x40 * self.channel
        for offset, x in ((0, self._chip.address(read)), (4, write), (8, count), (0x0C, ctrl)):
            self._chip.store(base + offset, x)
        assert trigger

    def active(self, on: int) -> None:
        assert on == 0
        self._chip.channels[self.channel].busy = False

    def close(self) -> None:
        self._taken.remove(self.channel)


def words(random: Random, n: int) -> bytes:
    return array("I", [random.getrandbits(32) for _ in range(n)]).tobytes()
