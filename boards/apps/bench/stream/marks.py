"""A story whose weights are streamed (stories/streaming), marked as ../marks.py marks one; the fetching, here
a copying by the core, is not counted.

usage: marks.py WINDOW SINKS TOKENS RING PLACES    the model lies in flash; prints JSON
Marks: of each token told, before it is sampled, before and after its step, when it is printed; then before
and after each chunk's matvec(). Prints `chunks`, bytes of each, in the order in which a token takes them, and
`counts`, how many there are of each matrix. Greedy. Runs on the emulated Cortex-M3 alone.
"""

import sys

from bench.marks import FLASH, FLASH_BYTES, mark
from bench.stream.copying import Copying
from mpy_kv.transient import load_module, unload_all
from uctypes import bytearray_at

# fields: chunk, stream
_CHUNK_PLACE = const(1)
_CHUNK_WORDS = const(3)
_CHUNK_FIELDS = const(8)
_STREAM_OTHER_WORD = const(6)
# end of fields


class Marked:
    """A Llama whose steps are marked."""

    def __init__(self, llama):
        self.llama = llama

    def __getattr__(self, name):
        return getattr(self.llama, name)

    def step(self, token, logits=True):
        mark()
        self.llama.step(token, logits)
        mark()


def main(window, sinks, tokens, ring, places):
    from stories.sampler import Sampler
    from stories.telling import Teller, open_model

    model = memoryview(bytearray_at(FLASH, FLASH_BYTES))
    llama = open_model(model, window=int(window), sinks=int(sinks))
    streaming = load_module("stories.streaming.making")
    places = int(places)
    made = streaming.begin(llama, streaming.ring(int(ring), places), Copying(), places)
    streaming = None
    unload_all()
    teller = Teller(llama, Sampler(llama, "0"), lambda text: None)
    teller.feed(teller.tokenizer.encode(""))
    teller.llama = Marked(llama)
    tell = teller.tell
    for _ in range(int(tokens)):
        mark()
        tell(1)
        mark()
    chunks = made.chunks
    matvec = llama.kernels.matvec
    words = made.record_bytes // 4
    sizes = []
    for at in range(0, len(chunks), words):
        chunk = memoryview(chunks)[at : at + words]
        row = bytearray_at(chunk[_CHUNK_PLACE], 4 * chunk[_CHUNK_WORDS])
        mask = made.state[_STREAM_OTHER_WORD]
        mark()
        matvec(row, llama.workspace, mask, chunk[_CHUNK_FIELDS:])
        mark()
        sizes.append(4 * chunk[_CHUNK_WORDS])
    print('{"chunks": %s, "counts": %s, "ram_bytes": %d}' % (sizes, made.counts, made.ram_bytes()))


if __name__ == "__main__":
    main(*sys.argv[1:])
