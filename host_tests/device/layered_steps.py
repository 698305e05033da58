"""Steps of a model at once and one layer at a time, on whatever runs this: the same bits, nothing allocated.

usage: layered_steps.py MODEL [CODEC [KERNELS [ROW_BUFFER]]]
ROW_BUFFER: the model is a file, of which so much is read at a time.
Prints JSON: whether it has programs, calls of a step, what differed, bytes allocated by steps.
"""

import json
import sys

import micropython
from mpy_kv import kernels as kv_kernels
from stories import kernels
from stories.image import Image
from stories.layered import Layered
from stories.model import Llama, make_cache

IDS = [1] + [(i * 37 + 11) % 250 + 3 for i in range(36)]
FROM = 20  # tokens before that make what is made once


def opened(model, codec, name, row_buffer):
    image = Image(open(model, "rb") if row_buffer else open(model, "rb").read())
    known = kv_kernels.of(codec)
    known = known.get(name) if name else known.best()
    cache = make_cache(image, window=20, sinks=2, codec=codec, kernels=known)
    return Llama(image, cache, kernels.get(name) if name else kernels.best(), row_buffer or 4096)


def take(step, token, logits):
    step.begin(token, logits)
    calls = 1
    while step.next():
        calls += 1
    step.commit()
    return calls


def main(model, codec="int8", name="", row_buffer="0"):
    at_once = opened(model, codec, name, int(row_buffer))
    apart = opened(model, codec, name, int(row_buffer))
    step = Layered(apart)
    differed = []
    calls = allocated = 0
    for i in range(len(IDS)):
        if i == FROM - 5 and name == "":  # other kernels from here on
            apart.use(kernels.get("viper"))
        if i == FROM - 3 and name == "":
            apart.use(kernels.best())
        token = IDS[i]
        logits = i % 5 != 3
        at_once.step(token, logits)
        if i % 3 == 1:  # a step that is given up, and one that the program forgets
            step.begin(IDS[0])
            for _ in range(i % 4):
                step.next()
            step.cancel()
        before = micropython.mem_total()
        calls = max(calls, take(step, token, logits))
        after = micropython.mem_total()
        if i >= FROM:
            allocated += after - before
        if logits and bytes(at_once.logits) != bytes(apart.logits):
            differed.append(i)
    if bytes(at_once.cache.buffer) != bytes(apart.cache.buffer):
        differed.append("cache")
    said = {"programs": apart.programs is not None, "calls": calls, "differed": differed}
    said["allocated"] = allocated
    print(json.dumps(said))


main(*sys.argv[1:])
