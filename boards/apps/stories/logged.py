"""Opens the flash log of a story: --log. Transient (mpy_kv/transient.py)."""

import gc
import sys
from binascii import crc32

from mpy_kv.errors import KVError
from mpy_kv.flash_log.files import FileBlocks
from mpy_kv.flash_log.log import ALL, NEVER
from mpy_kv.resume.blocks import BlockLog
from mpy_kv.transient import load_module, unload_all

from .noting import Logged
from .probe import settle

TAIL_BYTES = 40  # of noting.Logged


def begin(llama, teller, folder, asked, tokens, without):
    """(Logged, tokens that need not be run), to tell so many tokens in all. asked: whatever else must be the
    same for a story to be gone on with. Where there can be no log stderr says so after `without`, and (None,
    0)."""
    try:
        return _begin(llama, teller, folder, asked, tokens)
    except (KVError, OSError) as error:
        sys.stderr.write("%s%s\n" % (without, error))
    return None, 0


def _begin(llama, teller, folder, asked, tokens):
    cache = llama.cache
    device = FileBlocks(_storage(), folder)
    log = load_module("mpy_kv.resume.sizes").make(device, cache, TAIL_BYTES)
    blocks = BlockLog(log, cache, _identity(llama, asked), bytearray(TAIL_BYTES))
    settle("the flash log")
    gc.collect()
    _open(log, device)
    unload_all()
    device.check()
    gc.collect()
    noted = Logged(blocks, teller)
    reused = blocks.restore(lambda: noted.take(tokens, llama.vocab))
    unload_all()
    if reused:
        sys.stderr.write("stories: goes on from token %d\n" % (reused + 1))
    else:
        blocks.begin()
    return noted, reused


def _identity(llama, asked):
    """Of model, cache and whatever else was asked for."""
    g = llama.cache.geometry
    who = [llama.image.model_id, llama.image.half_split, g.heads, g.kv_heads, g.head_dim, g.window, g.sinks]
    for layer in range(g.layers):
        one = llama.cache.attention[layer].geometry
        who += [one.codec, one.group]
    return crc32(repr((who, asked)).encode())


def _open(log, device):
    """Open the log; make one where the files are as they were made."""
    opening = load_module("mpy_kv.flash_log.opening")
    try:
        opening.open_log(log)
    except KVError:
        if not device.untouched():
            raise
        load_module("mpy_kv.flash_log.formatting").format_log(log, force=True, erase=False)
        opening.open_log(log)
    # Sectors that cuts have left half empty are put together now, when there is time.
    log.collects = ALL
    log.credit = log.blocks
    opening = None
    unload_all()
    gc.collect()
    while log.step():
        pass
    log.collects = NEVER


def _storage():
    """The block device that the board's file system lies on."""
    try:
        from rp2 import Flash

        return Flash()
    except ImportError:
        from esp32 import Partition

        return Partition.find(Partition.TYPE_DATA, label="vfs")[0]


def end(noted):
    """The story is told: the next start begins another. Figures, a new dict."""
    blocks = noted.blocks
    log = blocks.log
    failed = blocks.failed
    blocks.finish()
    return {
        "blocks": blocks.records,
        "payload_bytes": log.payload_bytes,
        "misses": log.misses,
        "sectors": log.sectors,
        "ram_bytes": log.ram_bytes() + len(blocks.stage),
        "failed": None if failed is None else str(failed) or type(failed).__name__,
    }
