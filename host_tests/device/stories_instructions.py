"""Instructions of the app's share of a token, on the emulated board: all but the cache's own work.

usage: stories_instructions.py IMAGE KERNELS    prints {"step", "sample", "tokens"} as JSON
The cache is replaced by one that does nothing, so figures do not depend on the position.
"""

import gc
import json
import sys

from instructions import count
from mpy_kv import kernels as kv_kernels
from stories import kernels
from stories.image import Image
from stories.model import Llama, make_cache
from stories.sampler import Sampler


class NoCache:
    """What a model asks of a cache, without keys and values."""

    length = 100

    def append(self, layer, k, v):
        pass

    def attend(self, layer, q, out, q_sinks=None):
        pass

    def commit(self):
        pass


def main(image, kernel_set, tokens=8):
    with open(image, "rb") as f:
        opened = Image(f.read())
    cache = make_cache(opened, window=1, sinks=0, kernels=kv_kernels.best())
    llama = Llama(opened, cache, kernels.get(kernel_set))
    llama.cache = NoCache()
    sampler = Sampler(llama)
    step = sample = 0
    gc.collect()
    gc.threshold(-1)  # counting allocates, and what it leaves is not to be collected in a step
    for i in range(tokens):
        step += count(llama.step, 3 + 41 * i)
        sample += count(sampler.sample)
    print(json.dumps({"step": step // tokens, "sample": sample // tokens, "tokens": tokens}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
