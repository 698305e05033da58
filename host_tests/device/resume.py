"""A ring in a flash log on MicroPython: what is allocated by each token, and what is gone on with.

Prints JSON, of each of two element types: bytes allocated by tokens of a sequence that wraps many times, how
many records that were, copies for room, and CRCs of the cache's buffer and of the flash, which are those of
CPython.
"""

import json
from array import array

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

from binascii import crc32

from ram_flash import Flash

from mpy_kv import cache_for, geometry_for
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
from mpy_kv.resume import BlockLog, sizes

TOKENS = 800
TAIL = 16


def new_cache(codec):
    return cache_for(geometry_for(codec, 2, 4, 2, 8, window=70, sinks=2))


def started(flash, codec):
    cache = new_cache(codec)
    log = open_log(sizes.make(flash, cache, TAIL))
    while log.step():
        pass
    return BlockLog(log, cache, 5, bytearray(TAIL))


def told(blocks, tokens, counted):
    """So many tokens; `counted` gets the bytes that those from the first on allocate."""
    cache = blocks.cache
    row = array("f", [((i * 5) % 23 - 11) / 8 for i in range(16)])
    append, commit, stepped = cache.append, cache.commit, blocks.stepped
    total = getattr(micropython, "mem_total", lambda: 0)
    append(0, row, row)  # its first allocate
    append(1, row, row)
    commit()
    stepped()
    before = total()
    for _ in range(tokens - 1):
        append(0, row, row)
        append(1, row, row)
        commit()
        stepped()
    counted.append(total() - before)


def case(codec):
    flash = Flash(sizes.smallest_sectors(new_cache(codec), TAIL))
    format_log(sizes.make(flash, new_cache(codec), TAIL))
    counted = []
    blocks = started(flash, codec)
    blocks.restore() or blocks.begin()
    told(blocks, TOKENS, counted)
    first = [blocks.records, blocks.log.copied_bytes, str(blocks.failed)]
    blocks = started(flash, codec)
    went_on = blocks.restore() or blocks.begin()
    told(blocks, TOKENS, counted)
    return {
        "allocated": counted,
        "first": first,
        "went_on": went_on,
        "failed": str(blocks.failed),
        "cache": crc32(blocks.cache.buffer[: blocks.cache.geometry.at_scores]),
        "flash": crc32(flash.cells),
    }


print(json.dumps([case("int8"), case("int4")]))
