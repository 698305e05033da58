"""What fetches the chunks of a streamed model (stories/streaming) by copying: for tests, and for kvlab's
counter of instructions, which leaves the copying out. It never pays, as it is the core that copies.

Runs on the emulated Cortex-M3 alone.
"""

from mpy_kv.port import addressof
from mpy_kv.transient import load_module

FETCH = load_module("bench.stream.thumb").fetch

# fields: chunk, stream
_CHUNK_GATE = const(6)
_STREAM_PLACES = const(2)
# end of fields


class Copying:
    """Chunks are copied when they are asked for."""

    fetch = staticmethod(FETCH)

    def __init__(self):
        self.gate = bytearray(4)  # that nobody reads

    def prepare(self, chunks, state, record_bytes):
        at, shared = addressof(chunks), addressof(state)
        words = record_bytes // 4
        for i in range(len(chunks) // words):
            chunks[i * words + _CHUNK_GATE] = addressof(self.gate)
        for i in range(state[_STREAM_PLACES]):
            FETCH(at + i * record_bytes, shared)
        return None

    def ram_bytes(self):
        return len(self.gate)

    def close(self):
        pass
