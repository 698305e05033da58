"""A story whose parts are marked for kvlab's counter of instructions by class (tools/kvlab/cost/count.c).

usage: marks.py WINDOW SINKS TOKENS [CODEC [FILE [VERDICTS]]]    the model lies in flash; prints JSON
With FILE the flash is a littlefs, on which the model is that file; needs firmware with MICROPY_VFS_LFS2.
VERDICTS: where checked kernels are remembered, see stories/verdicts.py. An empty word is left out.
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


class Flash:
    """A block device whose own work does not count: a Pico's is C."""

    @micropython.viper
    def readblocks(self, block: int, buf, offset: int):
        one = 1
        pause = ptr32((one << 30) + 0x100C)
        pause[0] = 0
        source = ptr32((33 << 24) + (block << 12) + offset)
        to = ptr32(buf)
        left = int(len(buf)) >> 2  # viper: allow global because nothing counts here
        while left > 0:
            to[0] = source[0]
            source = ptr32(int(source) + 4)
            to = ptr32(int(to) + 4)
            left -= 1
        pause[0] = 0

    def writeblocks(self, block, buf, offset=0):
        raise OSError(30)

    def ioctl(self, what, argument):
        return {4: FLASH_BYTES >> 12, 5: 4096}.get(what, 0)


def main(window, sinks, tokens, codec=None, file=None, verdicts=None):
    mark()
    model = memoryview(bytearray_at(FLASH, FLASH_BYTES))
    if file:
        import vfs

        vfs.mount(vfs.VfsLfs2(Flash(), progsize=256, mtime=False), "/flash")
        model = "/flash/" + file
    import stories
    from stories.sampler import Sampler

    try:
        from stories.telling import Teller, open_model
    except ImportError:  # where they were once
        from stories.app import Teller, open_model

    more = {"codec": codec} if codec else {}
    if verdicts:
        more["verdicts"] = verdicts
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
