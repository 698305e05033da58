"""What pools allocate: bytes per call of everything that is done to a block, and what a pool keeps.

usage: pool_allocation.py    prints JSON: {"calls": {"POOL METHODS": [by mem_total, by mem_alloc]},
"metadata": {"POOL": [bytes of its arrays, metadata_bytes() * blocks]}}
A run with the heap locked precedes each count: it fails where something is allocated for good.
"""

import gc
import json
from array import array

import micropython
from mpy_kv.arena import Arena
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool

BYTES = 16384
POOLS = {
    "fixed": FixedPool(Arena(BYTES), 64, 256),
    "slab": SlabPool(Arena(BYTES), 1024, 16, (16, 64, 256)),
    "slab+region": SlabRegionPool(Arena(BYTES), 1024, 16, (16, 64, 256), 4),
    "buddy": BuddyPool(Arena(BYTES), BYTES, 64),
    "region": RegionPool(Arena(BYTES), BYTES, 40),
}
handles = array("i", bytes(4 * 16))
pool = None


def one(count):
    while count:
        h = pool.alloc(256)
        pool.free(h)
        count -= 1


def parts(count):
    """Every method of a block, at sizes that leave something over."""
    while count:
        h = pool.alloc(13, 4)
        pool.lock(h)
        pool.grow(h, 16)
        pool.set_owner(h, 40000, 65535)
        pool.is_locked(h)
        pool.unlock(h)
        pool.offset(h)
        pool.size(h)
        pool.free_bytes()
        pool.largest_free_bytes()
        pool.overhead_bytes(13)
        pool.free(h)
        count -= 1


def many(count):
    while count:
        pool.alloc_many(16, 256, handles)
        pool.free_many(handles, 16)
        pool.alloc_many(16, 14, handles)
        pool.free_many(handles, 16)
        count -= 1


def moves(count):
    """Growth beyond what a block has, in pools where a block can grow so."""
    if pool is POOLS["fixed"]:
        return
    while count:
        a, b = pool.alloc(16), pool.alloc(16)
        a = pool.grow(a, 200)
        pool.free(a)
        pool.free(b)
        count -= 1


def quotas(count):
    """Whole regions."""
    if pool is not POOLS["slab+region"]:
        return
    while count:
        region = pool.open_region(4, 2, 9)
        pool.alloc(16, 4, region)
        pool.alloc_many(5, 64, handles, 4, region)
        pool.grow(handles[0], 200)
        pool.retain_region(region)
        pool.region_of(handles[1])
        pool.largest_free_bytes(region)
        pool.close_region(region)
        pool.close_region(region)
        count -= 1


def control(count):
    """What must be seen: a list a time."""
    while count:
        [count]
        count -= 1


def measure(work):
    """Names are made beforehand: a first store would grow a dict."""
    a = b = 0
    work(3)
    gc.collect()
    if work is not control:
        micropython.heap_lock()
        work(3)
        micropython.heap_unlock()
    gc.disable()
    c = gc.mem_alloc()
    a = micropython.mem_total()
    work(40)
    b = micropython.mem_total()
    c = gc.mem_alloc() - c
    gc.enable()
    return [b - a, c]


def metadata(pool):
    """Bytes of the arrays that a pool keeps."""
    found = 0
    for name in dir(pool):
        value = getattr(pool, name)
        if name[0] == "_" and isinstance(value, (array, bytearray)):
            found += len(bytes(memoryview(value)))
    return found


calls, kept = {}, {}
for name in POOLS:
    pool = POOLS[name]
    for work in (one, parts, many, moves, quotas):
        calls[name + " " + work.__name__] = measure(work)
    kept[name] = [metadata(pool), pool.metadata_bytes() * pool.stats()["blocks"]]
    assert pool.check() == 0
    assert pool.stats()["used_blocks"] == 0
calls["control"] = measure(control)
print(json.dumps({"calls": calls, "metadata": kept}))
