"""A token of a story between two marks for traffic.c, by kernels in assembler, and where what they move lies.

usage: traffic.py WINDOW SINKS POSITION    the model lies in flash; prints JSON
Runs on the emulated Cortex-M3 alone.
"""

import json
import sys

from bench.marks import FLASH, FLASH_BYTES, mark
from uctypes import addressof, bytearray_at


def main(window, sinks, position):
    from mpy_kv.kernels import params as P
    from stories.sampler import Sampler
    from stories.telling import open_model

    model = memoryview(bytearray_at(FLASH, FLASH_BYTES))
    llama = open_model(model, window=int(window), sinks=int(sinks), verdicts="")
    sampler = Sampler(llama, "0")
    cache = llama.cache
    llama.step(llama.image.bos)
    while cache.length < int(position):
        llama.step(sampler.sample())
    one = cache.attention[0]
    token = sampler.sample()
    mark()
    llama.step(token)
    mark()
    start = addressof(one.buffer)
    found = {
        "kernels": [llama.kernels.name, one.kernels.name],
        "cache": [start, start + one.a[P.SCORES]],
        "image": [FLASH, FLASH + FLASH_BYTES],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
