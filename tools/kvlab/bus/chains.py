"""What a layer's append writes, put together by the device's own queue and moved over a simulated bus."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from kvlab.bus.kinds import KV_WRITE
from kvlab.bus.wire import PS_PER_US, Wire

if TYPE_CHECKING:
    import simpy

# Of a descriptor: READ_ADDR, WRITE_ADDR, TRANS_COUNT, CTRL; one of zeros ends a chain.
_DESCRIPTOR_WORDS, _TRANS_COUNT, _CTRL = 4, 2, 3
_SIZE_AT = 2  # bit of CTRL from which on the size of a transfer lies, as a power of two
_SIZES = 3


class OnWire:
    """A backend of the queue: each descriptor is one transfer, one after another, and takes its time."""

    ctrl = None

    def __init__(self, wire: Wire, agent: str) -> None:
        self.wire, self.agent, self.layer = wire, agent, -1
        self.ends: simpy.Event | None = None

    def begin(self, queue: Any, first: int, *_count: int) -> None:
        """The chain whose first descriptor is at that word of the queue's; zeros end it, as they do for a
        board's channel."""
        words, wire, asked = queue.words, self.wire, None
        for at in range(first, len(words), _DESCRIPTOR_WORDS):
            units = words[at + _TRANS_COUNT]
            if not units:
                break
            nbytes = units << (words[at + _CTRL] >> _SIZE_AT & _SIZES)
            self.ends = wire.transfer(self.agent, KV_WRITE, nbytes, self.layer, asked)
            asked = wire.free_at

    def done(self) -> bool:
        return self.ends is None or self.ends.processed

    def stop(self) -> None:
        self.ends = None


class Writer:
    """Writes the pieces of a layer's K and V: batched as one chain, else each with a start of its own."""

    def __init__(self, wire: Wire, kv_write: int, pieces: int, batched: bool, start_us: float = 0.0) -> None:
        from mpy_kv.bus.queue import Queue

        self.pieces, self.batched, self.starts = pieces, batched, 0
        self.nbytes = -(-kv_write // pieces)
        self.start_ps = round(start_us * PS_PER_US)
        # No piece goes on where another ends, on the side of the cache.
        rows, cache = bytearray(pieces * self.nbytes), bytearray(pieces * (self.nbytes + 1))
        self.queue = Queue(pieces, (rows, cache))
        self.backend = OnWire(wire, "model")

    def write(self, layer: int) -> Generator[simpy.Event, Any, None]:
        """All of a layer; ends when the last byte is there."""
        cache = self.queue.at(1)
        for i in range(self.pieces):
            if not self.queue.push(i * self.nbytes, cache + i * (self.nbytes + 1), self.nbytes):
                raise RuntimeError(f"a queue of {self.pieces} took {i} pieces")
            if not self.batched or i == self.pieces - 1:
                yield from self.start(layer)

    def start(self, layer: int) -> Generator[simpy.Event, Any, None]:
        self.starts += 1
        if self.start_ps:
            yield self.backend.wire.env.timeout(self.start_ps)
        self.backend.layer = layer
        if not self.queue.start(self.backend):
            raise RuntimeError("the chain before is not done")
        if self.backend.ends is not None:
            yield self.backend.ends
        if not self.queue.done():
            raise RuntimeError("the chain is not done when its last byte is there")
