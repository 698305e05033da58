"""A story whose weights are streamed, copied by the core in the chip's stead, against one that reads them in
place: tokens, logits, and what a prompt leaves. Prints `same`. Runs on the emulated Cortex-M3 alone."""

import gc

import micropython
from bench.marks import FLASH, FLASH_BYTES
from bench.stream.copying import Copying
from mpy_kv.errors import BadArgument, KVError
from mpy_kv.transient import load_module, unload_all
from stories.sampler import Sampler
from stories.telling import Teller, open_model
from uctypes import bytearray_at

MODEL = memoryview(bytearray_at(FLASH, FLASH_BYTES))
TOKENS = 12


def opened(size, places):
    llama = open_model(MODEL, window=8, sinks=2)
    if size:
        streaming = load_module("stories.streaming.making")
        made = streaming.begin(llama, streaming.ring(size, places), Copying(), places)
        assert llama.streamed is made
        assert sum(made.counts) % places == 0
        assert made.ram_bytes() >= len(made.ring)
        streaming = None
        unload_all()
    return llama


def told(llama):
    """Ids and the last logits of a story behind a prompt."""
    text = Teller(llama, Sampler(llama, "0"), lambda piece: None)
    text.feed(load_module("stories.encoding").prompt(llama, "Once upon a time"))
    unload_all()
    ids = []
    text.tell(1)
    gc.collect()
    before = micropython.mem_total()
    text.tell(TOKENS)
    assert micropython.mem_total() == before
    ids.append(text.last)
    return ids, bytes(llama.logits)


def broken_off(llama):
    """A token that fails in its second layer, then the same one."""
    cache = llama.cache
    real = cache.append
    left = [1]

    class Failing:
        def __getattr__(self, name):
            return getattr(cache, name)

        def append(self, layer, k, v):
            if left and layer == llama.layers - 1:
                left.pop()
                raise KVError("on purpose")
            return real(layer, k, v)

    llama.cache = Failing()
    failed = False
    try:
        llama.step(5)
    except KVError:
        failed = True
    assert failed
    llama.cache = cache
    cache.abort()
    llama.step(5)
    return bytes(llama.logits)


def main():
    llama = opened(0, 0)
    right = told(llama)
    after = broken_off(llama)
    llama = None
    for size, places in ((16384, 4), (5000, 4), (40000, 8), (3000, 2)):
        gc.collect()
        llama = opened(size, places)
        assert told(llama) == right, (size, places)
        assert broken_off(llama) == after, (size, places)
        llama = None
    said = ""
    try:
        opened(400, 4)
    except BadArgument as error:
        said = str(error)
    assert "stream must be" in said, said
    print("same")


main()
