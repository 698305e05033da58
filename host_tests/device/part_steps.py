"""A few steps with one part of mpy_kv: what they print does not depend on what else of the package is there.

usage: part_steps.py PART    a name of tools/kvlab/parts/table.py
"""

import binascii
import sys
from array import array

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

# fields: requests
_BUSY = const(0)
# end of fields


def numbers(count, seed):
    return array("f", [((seed * 7 + i * 5) % 23 - 11) / 8 for i in range(count)])


def refused(f, *arguments):
    """What it raises."""
    try:
        f(*arguments)
        return "taken"
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def step(cache, t, out):
    for layer in range(2):
        cache.append(layer, numbers(16, t + layer), numbers(16, 3 * t + layer))
        cache.attend(layer, numbers(32, t + 9), out)


def walked(cache):
    """Tokens beyond the window, a step given up, one that is refused, a rollback; then what is there."""
    out = array("f", [0] * 32)
    seen = 0
    for t in range(50):
        step(cache, t, out)
        cache.commit()
        seen = binascii.crc32(bytes(out), seen)
    print(refused(cache.commit), refused(cache.append, 7, out, out), refused(cache.read, 0, "k", 10**6))
    cache.rollback(2)
    step(cache, 50, out)
    cache.abort()
    step(cache, 51, out)
    cache.commit()
    print(seen, binascii.crc32(bytes(out)), binascii.crc32(bytes(cache.buffer)))
    print([round(1000 * x) for x in cache.read(1, "v", cache.length - 1)[:4]])
    print(cache.check(), sorted(cache.stats().items()), cache.settings()["codec"])
    print(cache.kernels.name, refused(cache.pool.free, 1 << 28) if hasattr(cache, "pool") else "")


def codec(name, window=20):
    from mpy_kv import cache_for, geometry_for, kernels

    cache = cache_for(geometry_for(name, 2, 4, 2, 8, window=window, sinks=0))
    kernels.release()
    walked(cache)
    print(refused(geometry_for, name, 2, 4, 3, 8), refused(cache_for, cache.geometry, bytearray(4)))


def token_eviction():
    from mpy_kv import Geometry
    from mpy_kv.token_eviction import BudgetCache
    from mpy_kv.eviction import tokens

    for policy in ("lru-peak", "lfu"):
        cache = BudgetCache(Geometry(2, 4, 2, 8, window=12, sinks=1), policy=policy)
        walked(cache)
        print(cache.compress(1, 2), cache.visible(), refused(cache.compress, 3, 2), cache.check())
    print(refused(BudgetCache, Geometry(2, 4, 2, 8), None, None, None, None, None, "none"))
    print(tokens.FAMILY.best().name)


def paged():
    from mpy_kv.paged import PagedGeometry, Requests

    g = PagedGeometry(2, 4, 2, 8, window=12, sinks=0, block_tokens=4)
    requests = Requests(g, 20, max_requests=3)
    ids = list(range(11))
    out = array("f", [0] * 32)
    for task in range(2):
        r = requests.open(task=task, tokens=ids, reserve_tokens=8)
        print(r.length)
        for t in ids[r.length :] + list(range(20, 32)):
            step(r, t, out)
            r.commit(t)
    fork = r.fork(task=3)
    step(fork, 5, out)
    fork.commit(5)
    print(binascii.crc32(bytes(out)), requests.check(), sorted(requests.stats().items()))
    print(requests.header(r), fork.read(0, "k", fork.length - 1)[:2], refused(requests.open))
    requests._ledger.state[_BUSY] = 1  # as a call that was cut short leaves it
    print(requests.available_blocks(), requests.check())
    fork.close()
    print(refused(fork.commit, 1), requests.lookup(ids), requests.check())
    print(requests.kernels.name)


def snapshot():
    import os
    from mpy_kv import Geometry, KVCache, snapshot

    g = Geometry(2, 4, 2, 8, window=12, sinks=1)
    cache = KVCache(g)
    out = array("f", [0] * 32)
    for t in range(30):
        step(cache, t, out)
        cache.commit()
    written = []
    print(snapshot.save(cache, lambda part: written.append(bytes(part))), binascii.crc32(b"".join(written)))
    path = "snapshot.%d" % (id(cache) & 0xFFFFFF)
    try:
        print(snapshot.save_file(cache, path, sections=[(b"note", b"abc")]))
        other = KVCache(g)
        print(refused(snapshot.load_file, other, path, 1), snapshot.load_file(other, path), other.check())
        with open(path, "rb") as f:
            print(snapshot.check(f.readinto).tokens)
    finally:
        os.remove(path)
    print(refused(snapshot.load, other, None), other.visible())
    step(other, 40, out)
    other.commit()
    print(binascii.crc32(bytes(out)))


def admission():
    from mpy_kv.admission.admission import Admission
    from mpy_kv.admission.predictor import LengthPredictor
    from mpy_kv.admission.waiting import Gate

    predictor = LengthPredictor(tasks=2, least=1, memory=64)
    queue = Admission(20, 4, tickets=4, reserve=predictor)
    gate = Gate(queue)
    tickets = [queue.submit(task, 9, 12, task) for task in (0, 1, 2)]
    print(gate.step(), queue.n_admitted, queue.check(), sorted(queue.stats().items()))
    gate.finish(tickets[2], 7)
    print(predictor.predict(2, 40), predictor.check(), refused(queue.finish, tickets[2]))


def blocks(pool, size=64):
    """What every pool can do."""
    one, two = pool.alloc(size), pool.alloc(size // 2)
    pool.lock(one)
    print(refused(pool.free, one).partition(",")[0])
    pool.unlock(one)
    pool.free(one)
    print(refused(pool.free, one).partition(" ")[0], pool.offset(two), refused(pool.alloc, 1 << 20))
    many = [0] * 3
    pool.alloc_many(3, size, many)
    pool.free_many(many, 3)
    print(pool.check(), sorted(pool.stats().items()))
    return two


def pool_fixed():
    from mpy_kv.arena import Arena
    from mpy_kv.pools.fixed import FixedPool

    blocks(FixedPool(Arena(1024), 8, 64))


def pool_slab():
    from mpy_kv.arena import Arena
    from mpy_kv.pools.slab import SlabPool

    blocks(SlabPool(Arena(4096), 1024, 4))


def pool_buddy():
    from mpy_kv.arena import Arena
    from mpy_kv.pools.buddy import BuddyPool

    blocks(BuddyPool(Arena(4096), 4096, 64))


def pool_region():
    from mpy_kv.arena import Arena
    from mpy_kv.pools.region import RegionPool

    pool = RegionPool(Arena(4096), 4096, 10)
    blocks(pool)
    print(pool.compact(), pool.check())


def pool_slab_region():
    from mpy_kv.arena import Arena
    from mpy_kv.pools.slab_region import SlabRegionPool

    pool = SlabRegionPool(Arena(4096), 1024, 4, (16, 64, 256), 2)
    blocks(pool)
    region = pool.open_region(2)
    pool.alloc(64, 4, region)
    print(pool.region_header(region), refused(pool.close_region, 1 << 20), pool.check())


class Flash:
    """Erased sectors of 4,096 bytes, as a block device."""

    def __init__(self, sectors):
        self.cells = [bytearray(b"\xff" * 4096) for _ in range(sectors)]

    def ioctl(self, op, arg):
        if op == 6:
            self.cells[arg] = bytearray(b"\xff" * 4096)
        return {4: len(self.cells), 5: 4096}.get(op, 0)

    def readblocks(self, block, buf, offset=0):
        buf[:] = self.cells[block][offset : offset + len(buf)]

    def writeblocks(self, block, buf, offset=0):
        for i in range(len(buf)):
            self.cells[block][offset + i] &= buf[i]


def counting():
    from mpy_kv import Geometry, KVCache
    from mpy_kv.kernels.counting import STAGES, Book

    cache = KVCache(Geometry(2, 4, 2, 8, window=6, sinks=2))
    out = array("f", [0] * 32)
    book = Book()
    for i in range(9):
        if i == 7:
            book.count_cache(cache)
        for layer in range(2):
            cache.append(layer, numbers(16, i + layer), numbers(16, i + 50))
            cache.attend(layer, numbers(32, i), out)
        cache.commit()
    book.stop()
    for stage in STAGES:
        b = book.stages[stage]
        print(stage, b.calls, b.kv_read, b.kv_write, b.weights, b.io_read, b.io_write)


def flash_log():
    from mpy_kv.flash_log import FlashLog
    from mpy_kv.flash_log.formatting import format_log
    from mpy_kv.flash_log.opening import open_log
    from mpy_kv.flash_log.places import where

    flash = Flash(24)
    format_log(FlashLog(flash, 1000, slots=2, blocks=16))
    data = bytearray(i & 255 for i in range(1000))
    for start in range(3):
        log = open_log(FlashLog(flash, 1000, slots=2, blocks=16))
        print(refused(log.begin, 1))
        while log.step():
            pass
        slot = log.find(5)
        if slot < 0:
            slot = log.begin(5)
        for i in range(3):
            data[0] = 3 * start + i
            log.put(slot, log.count[slot], data, [0, 1000])
        into = bytearray(1000)
        read = [log.read(slot, i, into) for i in range(log.count[slot])]
        found = [where(log, slot, i) for i in range(log.count[slot])]
        print(slot, read, into[0], found, [binascii.crc32(bytes(cells)) for cells in flash.cells])
    print(refused(open_log, FlashLog(Flash(24), 1000, slots=2)))


def resume():
    from mpy_kv import Geometry, KVCache
    from mpy_kv.flash_log.formatting import format_log
    from mpy_kv.flash_log.opening import open_log
    from mpy_kv.resume import BlockLog, sizes

    g = Geometry(1, 2, 1, 8, window=20, sinks=2)
    flash = Flash(sizes.smallest_sectors(KVCache(g), 8))
    format_log(sizes.make(flash, KVCache(g), 8))
    for to in (10, 30, 90, 91):
        cache = KVCache(g)
        log = open_log(sizes.make(flash, cache, 8))
        while log.step():
            pass
        blocks = BlockLog(log, cache, 5, bytearray(8))
        print(blocks.restore() or blocks.begin(), cache.visible(), cache.check())
        while cache.length < to:
            cache.append(0, numbers(8, cache.length), numbers(8, cache.length + 50))
            cache.commit()
            blocks.stepped()
        print(blocks.failed, binascii.crc32(bytes(cache.buffer)), [binascii.crc32(c) for c in flash.cells])
    blocks.finish()
    print(refused(sizes.make, Flash(8), cache, 8))


def file_store():
    import os
    from mpy_kv.file_store import FileStore
    from mpy_kv.file_store.opening import open_store

    data = bytearray(i & 255 for i in range(1000))
    folder = "store.%d" % (id(data) & 0xFFFFFF)
    try:
        for start in range(3):
            store = FileStore(folder, 1000, slots=2, blocks=16)
            print(refused(store.begin, 1))
            open_store(store)
            slot = store.find(5)
            if slot < 0:
                slot = store.begin(5)
            for i in range(3):
                data[0] = 3 * start + i
                store.put(slot, store.count[slot], data, [0, 1000])
            into = bytearray(1000)
            read = [store.read(slot, i, into) for i in range(store.count[slot])]
            print(slot, read, into[0], binascii.crc32(bytes(into)), store.used_bytes)
        print(refused(store.put, slot, 0, data, [0, 1001]), refused(store.truncate, slot, 99))
        store.close(slot)
        print(os.listdir(folder))
    finally:
        os.rmdir(folder)


def bus():
    from mpy_kv.bus.awaiting import Bus
    from mpy_kv.bus.rates import Rates
    from mpy_kv.bus.tracker import IO, WEIGHTS, Tracker
    from mpy_kv.bus.tracking import inspect

    tracker = Tracker(1000000)
    tasks = tracker.task(WEIGHTS, 500000, 4096), tracker.task(IO, 0, 512, 100000, True)
    rates = Rates(tracker)
    flash = rates.tier(200000, 300000)
    now, waits = 0, []
    for i in range(40):
        waits.append(tracker.request(now, tasks[i & 1], 300 + i))
        now += 500
        print(rates.transfer(flash, now - 400, now, 3 * i), rates.slow(flash), tracker.optional_part)
    print(waits, tracker.stats(now).bandwidth_used, tracker.total(IO))
    print(rates.time(flash), inspect.check(tracker))
    print(inspect.bound(tracker, tasks[0], 4096), refused(tracker.request, now, 1, 513))
    awaited = Bus(tracker, ticks=lambda: now).use(tasks[1], 1)
    print(refused(next, awaited), Bus(None).use(0, 1) is None)
    from mpy_kv import geometry_for
    from mpy_kv.bus import slots

    class Model:
        dim, hidden, heads, kv_heads, head_dim = 32, 48, 4, 2, 8

    g = geometry_for("int8", 2, 4, 2, 8, window=20)
    rates = {"kv_read": 10**7, "kv_write": 10**6, "weights": 10**7, "io": 10**6}
    print(slots.slots(Model, g, rates, 64))
    schedule = slots.make(Model, g, rates, 64)
    radio, card = schedule.task(32), schedule.task(32)
    now = 0
    for i in range(40):
        wait = schedule.enter(i & 3, now)
        print(wait, schedule.may(now, radio, 32), schedule.may(now + 1, card, 9), end=" ")
        now += wait + 7
    print(schedule.bound_us(), refused(schedule.may, now, radio, 33), refused(slots.make, Model, g, {}))


def bus_stream():
    from mpy_kv.bus.stream.dma import Chained

    print(refused(Chained))
    print(refused(Chained, None))


def bus_dma():
    import asyncio
    from mpy_kv import Geometry, KVCache
    from mpy_kv.bus.copying import Copying
    from mpy_kv.bus.queue import Queue
    from mpy_kv.bus.rows import Rows
    from mpy_kv.bus.tasks import Copies, KVWriter

    cache = KVCache(Geometry(2, 4, 2, 8, window=20, sinks=0))
    record = bytearray(2000)
    q = Queue(16, (cache.buffer, record))
    rows = Rows(q, cache, 0, q.at(1), 8)
    print(refused(q.push, 0, 1 << 20, 4), q.push(0, q.at(1) + 8, 8), q.push(8, q.at(1) + 16, 8))
    print(q.waiting(), q.start(Copying()), q.done(), q.check(), refused(rows.push, 0, 0, 9))
    copies = Copies(q, Copying(32))

    def ready(first, n, i):
        print(first, n, i, binascii.crc32(bytes(record)))

    async def main():
        writer = KVWriter(copies, rows, cache, (q.at(1),), ready)
        tasks = [asyncio.create_task(copies.serve()), asyncio.create_task(writer.run())]
        out = array("f", [0] * 32)
        for t in range(24):
            step(cache, t, out)
            cache.commit()
            writer.appended()
            for _ in range(40):
                await asyncio.sleep_ms(0)
        for task in tasks:
            task.cancel()

    asyncio.run(main())
    print(q.started, q.passed, q.pushes(), q.check())
    try:
        from mpy_kv.bus.rp2_dma import best

        print(type(best()))
    except ImportError as error:
        print("no DMA" if "rp2'" in str(error) else error)


def evict(name):
    from mpy_kv import eviction

    order = eviction.make(name, 8)
    for i in range(6):
        order.insert(i, i)
    order.touch(0)
    order.protect(1)
    print([order.evict() for _ in range(7)], order.check(), sorted(order.stats().items()))
    print(refused(eviction.make, name, 0))


part = sys.argv[1]
if part in ("core", "int8"):
    codec("int8")
elif part == "per-layer":
    codec(["int8", "int8"])
elif part == "int4":
    codec("int4", 37)
elif part.startswith("evict-"):
    evict(part[6:])
elif part.startswith("pool-") or part.replace("-", "_") in globals():
    globals()[part.replace("-", "_")]()
else:
    codec(part)
