"""BlockLog: the tokens of a ring in a flash log, as they come: a record for each 16, another for the sinks.

    from mpy_kv.resume import BlockLog, sizes
    log = open_log(sizes.make(device, cache, len(tail)))   # two slots, records that are long enough
    while log.step(): pass
    blocks = BlockLog(log, cache, identity, tail)
    blocks.restore() or blocks.begin()              # tokens it now has; 0: none, so that a new one begins
    blocks.stepped()                                # after each step of the cache that is committed

A record holds the rows of all layers (docs/SPEC.md, "A sequence in a flash log") and behind them `tail`,
bytes of the program's own as they are when the block is full. What comes after a restore is to the bit what
would have come without the cut. stepped() allocates nothing; it erases at most a sector at a time, but before
a block as many as that waits for. Memory: a record. KVCache, MixedCache and SealedCache: of the last a record
has the block's fresh rows, and the sealed form of the block before.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..flash_log.log import NEVER
from ..port import ints
from ..transient import load_module
from ..flash_log.words import copy, fill, put_word

VERSION = 1  # of what a record has: a sequence of another is none to go on with
BLOCK = 16  # tokens
_BLOCK = const(16)
STAMP_BYTES = 8  # behind the rows: the story, tokens so far
_STAMP_BYTES = const(8)
_WAYS = const(2)  # fields of a plane: where its slot 0 begins, bytes a slot
_SEALED_WAYS = const(3)  # of a plane of sealed blocks: where block 0 begins, bytes from block to block, bytes


class BlockLog:
    """log: a FlashLog that sizes.make() has made. identity: a number, of model and cache and whatever else a
    sequence must agree in to be gone on with. tail: a bytearray, a multiple of 8 long; the program fills it.
    Raises BadArgument for another cache or log, NoRoom where the region cannot hold what is visible."""

    def __init__(self, log, cache, identity, tail):
        sizes = load_module("mpy_kv.resume.sizes")
        sizes.check(log, cache, tail)
        self.log = log
        log.collects = NEVER
        self.cache = cache
        self.identity = (identity + 0x1E3779B1 * VERSION) & 0x1FFFFFFF
        self.tail = tail
        g = cache.geometry
        self.sinks = g.sinks
        self.window = g.window
        self.ring = g.slots - g.sinks
        self.planes = ints(sizes.planes(cache))
        self.step_bytes = sizes.step_bytes(cache)
        self.row_bytes = sizes.row_bytes(cache)
        self.sealed = ints(sizes.sealed(cache))
        self.sealed_blocks = getattr(g, "blocks", 0)
        self.sealed_bytes = sizes.sealed_bytes(cache)
        self.stage = bytearray(sizes.record_bytes(cache, len(tail)))
        self.story = 0  # another for each sequence: what the sinks' record and the others have in common
        self.runs = ints([0, 0])
        self.slot = self.sink_slot = -1  # of the log
        self.position = 0  # tokens stepped() has seen
        self.records = 0  # blocks stored since it was opened
        self.failed = None  # the exception that ended the logging
        self._busy = True

    def restore(self, accept=None):
        """Take over the sequence of this identity; how many tokens it has, or 0. The cache must be empty.
        accept(): asked once `tail` and `position` are those of the block found; 0 where it returns False."""
        return load_module("mpy_kv.resume.restoring").restore(self, accept)

    def begin(self):
        """Forget the sequence that there is, if any, and begin another. The cache must be empty."""
        load_module("mpy_kv.resume.restoring").begin(self)

    def finish(self):
        """The sequence is over: no start goes on with it."""
        if self.failed is None:
            load_module("mpy_kv.resume.restoring").finish(self)

    @micropython.native
    def stepped(self):
        """One token more is committed. Never raises: what the flash refuses ends the logging (`failed`)."""
        if self.failed is not None:
            return
        self.position = self.cache.length
        p = self.position - self.sinks
        if p == 0 or (p > 0 and not p & (_BLOCK - 1)):
            try:
                self._put(p)
            except Exception as error:
                self.failed = error
        elif self._busy:
            try:
                self._busy = self.log.step()
            except Exception as error:
                self.failed = error

    @micropython.native
    def _put(self, p):
        log = self.log
        if p:
            block = p // _BLOCK - 1
            self._fill(self.position - _BLOCK, _BLOCK, block)
            # One block more than the newest needs: until that is kept, the one before it may be gone on with.
            keep = (_BLOCK * block - self.window) // _BLOCK
            if log.waits[self.slot] and log.free + log.ready < log.reserve + 2 * log.ahead:
                # What was trimmed is given up once the sector that tells so is closed, be it half empty.
                log.sync(self.slot)
            # Not while a record that tells of a trim is yet to be kept (2), which is what makes room.
            if keep > log.base[self.slot] and log.waits[self.slot] != 2:
                log.trim(self.slot, keep)
            while log.step():
                pass
            if block >= log.count[self.slot]:  # else it is the block gone on from
                log.put(self.slot, block, self.stage, self.runs, self.step_bytes)
                self.records += 1
        else:
            self._fill(0, self.sinks, -1)
            while log.step():
                pass
            log.put(self.sink_slot, 0, self.stage, self.runs, self.step_bytes)
            log.sync(self.sink_slot)
        self._busy = True

    @micropython.native
    def body(self, n):
        """Bytes of the rows of n tokens in a record. Behind them is the sealed block, or the stamp."""
        return (n * self.row_bytes + 7) & -8

    @micropython.native
    def _fill(self, position, n, block):
        """Rows of n tokens, of block or, -1, of the sinks, and the tail into the stage."""
        stage = self.stage
        buffer = self.cache.buffer
        planes = self.planes
        slot = position
        first = n
        if position >= self.sinks:
            slot = self.sinks + (position - self.sinks) % self.ring
            if first > self.sinks + self.ring - slot:
                first = self.sinks + self.ring - slot
        body = self.body(n)
        to = i = 0
        end = len(planes)
        while i < end:
            size = planes[i + 1]
            copy(stage, buffer, to, planes[i] + slot * size, first * size)
            if first < n:
                copy(stage, buffer, to + first * size, planes[i] + self.sinks * size, (n - first) * size)
            to += n * size
            i += _WAYS
        fill(stage, to, body - to, 0)
        if block >= 0 and self.sealed_bytes:
            self._fill_sealed(body, block - 1)
            body += self.sealed_bytes
        put_word(stage, body, self.story)
        put_word(stage, body + 4, self.position)
        copy(stage, self.tail, body + _STAMP_BYTES, 0, len(self.tail))
        self.runs[1] = body + _STAMP_BYTES + len(self.tail)

    @micropython.native
    def _fill_sealed(self, to, block):
        """The sealed form of a block into the stage; zeros, if there is none before the first."""
        stage = self.stage
        fill(stage, to, self.sealed_bytes, 0)
        if block < 0:
            return
        buffer = self.cache.buffer
        sealed = self.sealed
        place = block % self.sealed_blocks
        i = 0
        end = len(sealed)
        while i < end:
            size = sealed[i + 2]
            copy(stage, buffer, to, sealed[i] + place * sealed[i + 1], size)
            to += size
            i += _SEALED_WAYS
