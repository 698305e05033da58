"""Random lists of copies through the bus's queue, the same on every interpreter.

usage: bus_queue.py SEED LISTS [BACKEND]    BACKEND: copying (every third list in bursts) or chained, of rp2
Prints JSON: a digest of what lies in memory, descriptors, chains, lists that are not as copies one by one.
"""

import binascii
import json
import sys

import bus_lists

from mpy_kv.bus.copying import Copying
from mpy_kv.bus.queue import Queue


def run(seed, lists, backend=None):
    digest = descriptors = chains = wrong = 0
    for i in range(seed, seed + lists):
        copies = bus_lists.lists(i)
        unaligned = 3 * (i % 4 == 3)
        plain, queued = bus_lists.buffers(), bus_lists.buffers()
        bus_lists.one_by_one(bus_lists.regions(plain, unaligned), copies)
        one = backend or Copying(0 if i % 3 else 4 + i % 29)
        queue = Queue(1 + i % 9, bus_lists.regions(queued, unaligned), one.ctrl)
        found = bus_lists.queued(queue, one, copies)
        if not unaligned:
            descriptors += found[0]
            chains += found[1]
        wrong += queued != plain or queue.check() != 0 or queue.passed != queue.started
        for whole in queued:
            digest = binascii.crc32(whole, digest)
    return {"digest": digest, "descriptors": descriptors, "chains": chains, "wrong": wrong}


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[3] == "chained":
        from mpy_kv.bus import rp2_dma

        one = rp2_dma.Chained()
        try:
            print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]), one)))
        finally:
            one.close()
    else:
        print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
