"""What calls of the bus's queue allocate, by mem_total and with the heap locked: JSON {call: bytes}."""

import gc
import json

import micropython

from mpy_kv import Geometry, KVCache
from mpy_kv.bus.copying import Copying
from mpy_kv.bus.queue import Queue
from mpy_kv.bus.rows import Rows

cache = KVCache(Geometry(1, 8, 4, 8, window=40, sinks=4))
queue = Queue(40, (cache.buffer, bytearray(4096), bytearray(4096)))
rows = Rows(queue, cache, 0, queue.at(1), 16)
queue.shape(20, 24, 32)
one, two = queue.at(1), queue.at(2)
backends = (Copying(), Copying(16))


def push():
    i = 0
    while i < 20:
        queue.push(one + 40 * i, two + 40 * i + 3, 20)
        queue.push(one + 40 * i + 20, two + 40 * i + 23, 20)
        i += 1


def push_rows():
    queue.push_rows(one, two, 10)


def push_layer():
    rows.push(0, 3, 16)
    rows.push(0, 40, 16)


def chains():
    queue.start(backends[0])
    queue.push(one, two, 100)
    queue.push(one + 200, two, 101)
    queue.start(backends[1])
    queue.push(one, two, 100)
    while not queue.start(backends[1]):
        pass
    while not queue.done():
        pass
    queue.waiting()
    queue.pushes()
    queue.clear()


def control():
    return [0] * 4


def total(call):
    queue.clear()
    call()
    queue.clear()
    gc.collect()
    gc.disable()
    before = after = 0
    before = micropython.mem_total()
    call()
    after = micropython.mem_total()
    if call is not control:
        queue.clear()
        micropython.heap_lock()
        call()
        micropython.heap_unlock()
    gc.enable()
    return after - before


found = {}
for name, call in (
    ("push", push),
    ("push_rows", push_rows),
    ("push_layer", push_layer),
    ("chains", chains),
    ("control", control),
):
    found[name] = total(call)
print(json.dumps(found))
