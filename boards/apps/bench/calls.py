"""A story as a task, each of its calls marked for kvlab's counter of instructions by class
(tools/kvlab/cost/count.c), with what collecting garbage takes beside it.

usage: calls.py WINDOW SINKS [CODEC]    the model lies in flash; prints JSON
Two marks around each call of TOKENS tokens, each turn of as many, from one await to the next, each part of
as many, a collection with the story's heap alone, and one with the rest of the heap full of the smallest
objects. What is printed names them: indexes into NAMES. All with a full window. Runs on the emulated
Cortex-M3 alone, which has no asyncio: a turn is what the scheduler calls, without the scheduler.
"""

import gc
import json
import sys

from marks import FLASH, FLASH_BYTES, mark
from stories.beside import Task
from stories.layered import DONE, WEIGHTS
from stories.sampler import Sampler
from stories.telling import open_model
from uctypes import bytearray_at

TOKENS = 16  # in which a block is sealed where there are blocks
SPARE_BYTES = 4096

NAMES = ("kv_read", "kv_write", "weights", "choose", "begin", "layer", "rest", "classifier", "seal", "commit")
NAMES += ("turn", "collection", "collection of a full heap")
CHOOSE, BEGIN, LAYER, REST, CLASSIFIER, SEAL, COMMIT, TURN, ALONE, FULL = range(3, 13)

names = bytearray(1000)
count = 0


def name(i):
    """Of what is marked next."""
    global count
    names[count] = i
    count += 1
    mark()


def kind(step):
    """Of the call of next() that comes."""
    if step.sealing:
        return SEAL
    layers = step.llama.layers
    return LAYER if step.layer < layers else REST if step.layer == layers else CLASSIFIER


def calls(task):
    """The calls of a token, which is then told."""
    name(CHOOSE)
    task.take(task.told + 1)
    mark()
    step = task.step
    name(BEGIN)
    step.begin(task._token)
    mark()
    more = True
    while more:
        name(kind(step))
        more = step.next()
        mark()
    name(COMMIT)
    step.commit()
    mark()
    task._token = -1


def turns(task, tokens):
    """From one await to the next, of so many tokens."""
    story = task.tell(tokens)
    more = True
    while more:
        name(TURN)
        try:
            story.send(None)
        except StopIteration:
            more = False
        mark()


def parts(task):
    """The parts of a token, which is then told."""
    task.take(task.told + 1)
    step = task.step
    step.begin(task._token)
    slot = WEIGHTS
    while slot != DONE:
        name(SEAL if step.sealing else slot)
        slot = step.part()
        mark()
    step.commit()
    task._token = -1


def collections():
    gc.collect()
    name(ALONE)
    gc.collect()
    mark()
    gc.disable()
    x = 0.5
    for _ in range((gc.mem_free() - SPARE_BYTES) // 16):
        x += 1.0
    name(FULL)
    gc.collect()
    mark()


def main(window, sinks, codec=None):
    model = memoryview(bytearray_at(FLASH, FLASH_BYTES))
    more = {"codec": codec} if codec else {}
    llama = open_model(model, window=int(window), sinks=int(sinks), **more)
    task = Task(llama, Sampler(llama), lambda text: None)
    for token in task.tokenizer.encode(""):
        llama.step(token)
    while llama.cache.length < int(window) + int(sinks):
        task.take(task.told + 1)
        llama.step(task._token)
        task._token = -1
    gc.collect()
    for _ in range(TOKENS):
        calls(task)
    turns(task, TOKENS)
    for _ in range(TOKENS):
        parts(task)
    collections()
    print(json.dumps([NAMES[i] for i in names[:count]]))


if __name__ == "__main__":
    main(*sys.argv[1:])
