"""A story whose parts are marked for kvlab's counter of instructions by class (tools/kvlab/cost/count.c).

usage: marks.py WINDOW SINKS TOKENS [CODEC]    the model lies in flash; prints JSON
Marks: the start, when the model is ready, then before and after each token told, then before and after each
of the same tokens read as a prompt's. Greedy, so that the story is the same wherever it is told.
Runs on the emulated Cortex-M3 alone.
"""

import sys
from array import array

import micropython
from uctypes import bytearray_at

FLASH = 0x21000000  # of the emulated machine
FLASH_BYTES = 1441792


@micropython.viper
def mark():
    one = 1
    ptr32((one << 30) + 0x1008)[0] = 0  # the reload value of a timer that nobody starts


def main(window, sinks, tokens, codec=None):
    mark()
    import stories
    from stories.sampler import Sampler

    try:
        from stories.telling import Teller, open_model
    except ImportError:  # where they were once
        from stories.app import Teller, open_model

    more = {"codec": codec} if codec else {}
    model = memoryview(bytearray_at(FLASH, FLASH_BYTES))
    llama = open_model(model, window=int(window), sinks=int(sinks), **more)
    # As app.tell() goes about it.
    teller = Teller(llama, Sampler(llama, "0"), lambda text: None)
    teller.feed(teller.tokenizer.encode(""))
    mark()
    ids = array("H", bytes(2 * int(tokens)))
    tell = teller.tell
    for i in range(len(ids)):
        mark()
        tell(1)
        mark()
        ids[i] = teller.last
    llama.cache.rollback(llama.cache.length)
    step = llama.step
    step(llama.image.bos, False)
    for i in range(len(ids)):
        token = ids[i]
        mark()
        step(token, False)
        mark()
    print("+%d" % len(ids))
    print('{"kernels": "%s", "positions": %d}' % (llama.kernels.name, llama.cache.length))
    del stories


if __name__ == "__main__":
    main(*sys.argv[1:])
