"""SealedGeometry: sizes and strides of a sequence in sealed blocks (SPEC.md, "The sealed cache").

Allocates one small object; owns no memory.
"""

from ..errors import BadArgument
from ..geometry import Geometry

BLOCK = 16  # tokens that are sealed together, counted after the sinks
FRESH = 2 * BLOCK  # slots of the newest full block and the open one
MOST_GROUP = 32  # values: what keeps every sum of kernels/int4 inside 31 bits


def _up(n, to):
    return (n + to - 1) // to * to


class SealedGeometry(Geometry):
    """As Geometry, with codec "int4" only and groups of at most 32 values.

    A layer's block: what a layer of int8 with sinks + 32 slots has, the fresh rows; then `blocks` sealed
    ones: K codes [kv_heads][16 blocks][row4_bytes], K headers [blocks][header_bytes], V codes as of K, V
    scales and V minima [groups][16 blocks] as float16. A header: a power of two a group (float16), then a
    word a channel.
    """

    sealed = True

    def __init__(
        self,
        layers,
        heads,
        kv_heads,
        head_dim,
        window=None,
        sinks=None,
        capacity=None,
        codec="int4",
        group=None,
        group_limit=MOST_GROUP,
    ):
        if not isinstance(codec, str) or codec != "int4":
            raise BadArgument("codec %r is not sealed: SealedGeometry is for int4" % (codec,))
        for name, value in (("group", group), ("group_limit", group_limit)):
            if type(value) is int and value > MOST_GROUP:
                raise BadArgument("%s %d: int4 takes at most %d" % (name, value, MOST_GROUP))
        # Fresh rows are those of int8, and so is all that a query needs of the scratch.
        Geometry.__init__(
            self, layers, heads, kv_heads, head_dim, window, sinks, capacity, "int8", group, group_limit
        )
        self.codec = codec

    def _lay_out(self, slots):
        self.ring_slots = FRESH
        self.slots = self.sinks + FRESH
        Geometry._lay_out(self, self.slots)
        # With a window: no block that is overwritten is visible, the spare token's included. With capacity
        # none is ever overwritten, as the newest full block is not sealed.
        self.blocks = self.window // BLOCK
        if self.capacity is not None and self.blocks:
            self.blocks -= 1
        rows = BLOCK * self.blocks
        self.slice4_bytes = _up(self.slice_width, 8) // 2
        self.row4_bytes = self.slices * self.slice4_bytes
        self.head4_stride = rows * self.row4_bytes
        self.powers_bytes = _up(2 * self.groups, 4)
        self.header_bytes = self.powers_bytes + 4 * self.width
        self.scale4_stride = 2 * rows
        self.at_codes4 = self.layer_bytes
        self.at_headers = self.at_codes4 + self.kv_heads * self.head4_stride
        self.at_v_codes4 = self.at_headers + self.blocks * self.header_bytes
        self.at_v_scales4 = self.at_v_codes4 + self.kv_heads * self.head4_stride
        self.minima_gap = self.groups * self.scale4_stride  # from V's scales to its minima; whole words
        self.layer_bytes = self.at_v_scales4 + 2 * self.minima_gap
        # Sums are those of whole words of nibbles.
        self._sums = max(self._sums, 2 * self.slice4_bytes)

    def _lay_scratch(self, at):
        at = Geometry._lay_scratch(self, at)
        self.center_row = 2 * BLOCK * self.blocks
        self.at_centers = at
        at += self.slices * self.center_row
        # While a block is sealed: 16 scales and two bounds a channel; while it is attended: a query, spread.
        self.at_spread = at
        return at + 4 * (BLOCK + 2 * _up(self.group, 8))

    def full(self, length):
        """Full blocks when `length` tokens are there: the newest is fresh, all before it are sealed."""
        return (length - self.sinks) // BLOCK if length > self.sinks else 0

    def block_bytes(self):
        """Codes, scales, minima and powers of one sealed block in all layers: whole bytes a slice."""
        codes = 2 * BLOCK * self.kv_heads * self.slices * ((self.slice_width + 1) // 2)
        return self.layers * (codes + 4 * self.width + 2 * self.groups + 4 * BLOCK * self.groups)

    def token_bytes(self):
        """Codes and scales of one fresh token in all layers."""
        return self.layers * (2 * self.width + 4 * self.groups)

    def kv_bytes(self, tokens):
        """Of `tokens` tokens from the first on: all but the sinks and the newest blocks sealed."""
        sealed = max(0, self.full(tokens) - 1)
        return (tokens - BLOCK * sealed) * self.token_bytes() + sealed * self.block_bytes()

    def place4(self, base, which, position):
        """As place(), of a token in sealed form: head 0's codes, and the header of its block ("k") or group
        0's scale ("v")."""
        row = (position - self.sinks) % (BLOCK * (self.blocks or 1))  # without any, the token was there once
        if which == "v":
            return base + self.at_v_codes4 + row * self.row4_bytes, base + self.at_v_scales4 + 2 * row
        return (
            base + self.at_codes4 + row * self.row4_bytes,
            base + self.at_headers + row // BLOCK * self.header_bytes,
        )
