"""A story in a flash log as it is told: --log. Transient (mpy_kv/transient.py), but for the object it makes.

The tail of each block, behind what mpy_kv/resume/blocks.py has: as little-endian words the tokens of the
prompt, stories, whether the choice is greedy, the block's last token; then the choice's parameters.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from mpy_kv import cpython as micropython
    from mpy_kv.cpython import const

import sys
from binascii import crc32

from mpy_kv.errors import KVError
from mpy_kv.resume.blocks import BlockLog
from mpy_kv.flash_log.files import FileBlocks
from mpy_kv.flash_log.words import copy, put_word, word
from mpy_kv.transient import load_module

# fields: pick
_HEAT = const(2)
# end of fields

_BLOCK = const(16)
# Offsets in the tail.
_PROMPT_TOKENS = const(0)
_STORIES = const(4)
_GREEDY = const(8)
_LAST = const(12)
_CHOICE = const(16)
_CHOICE_BYTES = const(24)
_TAIL = const(40)


class Logged:
    """Notes each step of a story in its log."""

    def __init__(self, blocks, teller):
        self.blocks = blocks
        self.prompt_tokens = 1
        self._teller = teller
        self._sinks = blocks.sinks
        self._choice = memoryview(teller.sampler.parameters)
        if hasattr(self._choice, "cast"):
            self._choice = self._choice.cast("B")

    @micropython.native
    def stepped(self, token):
        """A token more is run."""
        blocks = self.blocks
        if not (blocks.position + 1 - self._sinks) & (_BLOCK - 1):
            tail = blocks.tail
            put_word(tail, _PROMPT_TOKENS, self.prompt_tokens)
            put_word(tail, _STORIES, self._teller.stories)
            put_word(tail, _GREEDY, 1 if self._teller.sampler.greedy else 0)
            put_word(tail, _LAST, token)
            copy(tail, self._choice, _CHOICE, 4 * _HEAT, _CHOICE_BYTES)
        blocks.stepped()

    def take(self, tokens, vocab):
        """What the tail of the newest block says; whether there is more to tell of `tokens`."""
        tail = self.blocks.tail
        teller = self._teller
        self.prompt_tokens = word(tail, _PROMPT_TOKENS)
        last = word(tail, _LAST)
        if self.blocks.position + 1 - self.prompt_tokens >= tokens or last >= vocab:
            return False
        teller.stories = word(tail, _STORIES)
        teller.sampler.greedy = word(tail, _GREEDY) == 1
        teller.last = last
        copy(self._choice, tail, 4 * _HEAT, _CHOICE, _CHOICE_BYTES)
        return True


def begin(llama, teller, folder, asked, tokens):
    """(Logged, tokens that need not be run), to tell so many tokens in all. asked: whatever else must be the
    same for a story to be gone on with. Where there can be no log this is said on stderr, and (None, 0)."""
    try:
        return _begin(llama, teller, folder, asked, tokens)
    except (KVError, OSError, MemoryError) as error:
        sys.stderr.write("%s%s\n" % (WITHOUT, error))
    return None, 0


WITHOUT = "stories: told without a log: "


def _begin(llama, teller, folder, asked, tokens):
    cache = llama.cache
    device = FileBlocks(_storage(), folder)
    log = load_module("mpy_kv.resume.sizes").make(device, cache, _TAIL)
    _open(log, device)
    g = cache.geometry
    who = [llama.image.model_id, llama.image.half_split, g.heads, g.kv_heads, g.head_dim, g.window, g.sinks]
    for layer in range(g.layers):
        one = cache.attention[layer].geometry
        who += [one.codec, one.group]
    identity = crc32(repr((who, asked)).encode())
    blocks = BlockLog(log, cache, identity, bytearray(_TAIL))
    noted = Logged(blocks, teller)
    reused = blocks.restore(lambda: noted.take(tokens, llama.vocab))
    if reused:
        sys.stderr.write("stories: goes on from token %d\n" % (reused + 1))
    else:
        blocks.begin()
    return noted, reused


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
    while log.step():
        pass


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
