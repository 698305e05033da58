"""Requests: who may take which of the blocks of one arena.

Every open request is a region: a quota over blocks that lie anywhere (its header: size, references, locked;
length, valid, owner). What is counted, and how much anybody may take, is the ledger's (ledger.py); it is no
concern of a program.
Opening allocates one small object; what a request does per token, and pin, unpin, close, allocate nothing.
Costs: open O(prompt), and O(blocks) after a chain lost its head; close O(pages), all else O(1).
"""

from ..transient import load_module
from .ledger import Ledger


class Requests:
    """geometry: a PagedGeometry; blocks: how many; max_requests open at a time, max_pins at a time.

    Memory, either: buffer of geometry.bytes(blocks) bytes (default: own), all of it taken at once; or arena
    and a pool in it (mpy_kv.pools), which others use too: a block is taken from it when it is needed.
    kv_shift, q_shift, out_shift, kernels: as KVCache. pin_blocks: most blocks pinned in all (default half).
    identity: bytes of all that changes what is stored beside the geometry (model, style of RoPE). It starts
    the hash of every prefix; salts of open() are compared in full. wide_ids: token ids up to 2^29 - 1
    instead of 65535.
    """

    def __init__(
        self,
        geometry,
        blocks,
        max_requests=4,
        buffer=None,
        arena=None,
        pool=None,
        kv_shift=None,
        q_shift=None,
        out_shift=None,
        kernels=None,
        identity=b"",
        max_pins=2,
        pin_blocks=None,
        wide_ids=False,
    ):
        setup = load_module("mpy_kv.paged.setup")
        self.geometry = geometry
        made, self.buffer, scratch = setup.memory(
            geometry, blocks, max_requests, max_pins, buffer, arena, pool, wide_ids
        )
        one = setup.attention(geometry, self.buffer, scratch, kernels, kv_shift, q_shift, out_shift)
        self.kernels = one.kernels
        self.max_requests = max_requests
        self._ledger = Ledger(
            geometry,
            made,
            one,
            setup.root_hash(geometry, identity),
            max_requests,
            max_pins,
            setup.pin_limit(pin_blocks, blocks),
            bool(wide_ids),
        )

    # What there is

    def available_blocks(self):
        """Blocks that a request without a share could still take: free ones and reusable ones, less what is
        reserved. What admission asks."""
        self._ledger.mend()
        return self._ledger.available_blocks()

    def lookup(self, tokens, salt=b""):
        """How many of the tokens (a list or array of ids) an open() without a share would find there now."""
        ledger = self._ledger
        ledger.mend()
        admit_request = load_module("mpy_kv.paged.admit_request")
        admit_request.check_prefix(ledger, tokens, salt)
        root = admit_request.find_salt(ledger, salt)
        if root < 0:
            return 0
        return ledger.match(root, tokens, ledger.n, ledger.available_blocks()) * self.geometry.block_tokens

    # Requests

    def open(
        self,
        task=0,
        reserve_tokens=0,
        tokens=None,
        limit_tokens=None,
        priority=0,
        pin_tokens=None,
        salt=b"",
    ):
        """A new Request. Its `length` says how many of `tokens` are there already: whole blocks, found by
        content, and never all tokens (C8).

        task: owner, a number. reserve_tokens: share of the blocks kept for it. limit_tokens: the most it may
        hold (default: what the geometry allows). priority: 0..255, for admission. pin_tokens: the most it
        may pin (default none). salt: bytes; prefixes are only shared between equal salts.
        Raises NoRoom with the numbers if no row is free or the share cannot be kept; nothing changed then.
        """
        ledger = self._ledger
        ledger.mend()
        admit_request = load_module("mpy_kv.paged.admit_request")
        asked = admit_request.checked(
            ledger, task, reserve_tokens, tokens, limit_tokens, priority, pin_tokens, salt
        )
        return admit_request.open(ledger, asked, tokens)

    # Pins

    def pin(self, request, tokens=None):
        """Keep the request's first blocks, of `tokens` tokens or all full ones, for later requests to find,
        whoever closes; a pin for unpin(). NoRoom beyond the request's cap or the cap of all pins."""
        self._ledger.mend()
        return load_module("mpy_kv.paged.admit_request").pin(self._ledger, request, tokens)

    def unpin(self, pin):
        """Give up a pin. BadHandle if it is none, or was given up."""
        self._ledger.mend()
        self._ledger.unpin(pin)

    def moved(self):
        """Ask the pool anew where every block lies: between steps, after its compact()."""
        self._ledger.blocks.locate()

    # Looking

    def header(self, request):
        """Region header of a request of these, a new dict: size (blocks it may hold), references (blocks it
        holds), locked, length, valid, owner, and share, priority, pinned. BadArgument."""
        load_module("mpy_kv.paged.admit_request").check_own(self._ledger, request)
        return load_module("mpy_kv.paged.inspect").header(self._ledger, request)

    def stats(self):
        """Counts in blocks, a new dict."""
        self._ledger.mend()
        return load_module("mpy_kv.paged.inspect").stats(self._ledger)

    def check(self):
        """Number of broken invariants (0 = sound). O(blocks + rows * pages), allocates."""
        self._ledger.mend()
        return load_module("mpy_kv.paged.inspect").check(self._ledger)
