"""PagedGeometry: sizes and strides of requests whose tokens lie in blocks (SPEC.md, "Blocks").

A block holds block_tokens tokens of every layer; within it each layer's K and V are laid out as a ring of
block_tokens slots would be. Allocates one small object; owns no memory.
"""

from ..errors import BadArgument
from ..geometry import Geometry, whole


class PagedGeometry(Geometry):
    """As Geometry, for each request; block_tokens: tokens of a block, 1..4096.

    A table has `sink_pages` entries that stay and `ring_pages` that are used in turn: what a window of that
    many tokens and an uncommitted one can touch. With capacity every page has an entry of its own.
    """

    def __init__(
        self,
        layers,
        heads,
        kv_heads,
        head_dim,
        window=None,
        sinks=None,
        capacity=None,
        codec="int8",
        group=None,
        group_limit=32,
        block_tokens=16,
    ):
        if isinstance(codec, str) and codec == "int4":
            raise BadArgument(
                "codec 'int4' seals blocks of one sequence (mpy_kv.int4_blocks): requests cannot share them"
            )
        Geometry.__init__(
            self, layers, heads, kv_heads, head_dim, window, sinks, capacity, codec, group, group_limit
        )
        t = self.block_tokens = whole("block_tokens", block_tokens, 1, 4096)
        self._lay_out(t)
        self.block_bytes = self.layers * self.layer_bytes
        if capacity is None:
            self.sink_pages = (self.sinks + t - 1) // t
            self.ring_pages = (self.window + t - 1) // t + 1
        else:
            self.sink_pages = 0
            self.ring_pages = (self.capacity + t - 1) // t
        self.pages = self.sink_pages + self.ring_pages
        self.scratch_bytes = self._lay_scratch(0)

    def bytes(self, blocks=1):
        """Exact length in bytes of the buffer that Requests of that many blocks need."""
        return self.scratch_bytes + whole("blocks", blocks, 1, 1 << 20) * self.block_bytes

    def blocks_of(self, tokens):
        """Most blocks that a request of so many tokens holds at once."""
        t = self.block_tokens
        return min((tokens + t - 1) // t, self.pages)

    def entry(self, page):
        """Entry of a request's table that holds its page, the tokens page * block_tokens and on."""
        if page < self.sink_pages:
            return page
        return self.sink_pages + (page - self.sink_pages) % self.ring_pages

    def slot(self, position):
        """Slot within its block of the token at `position`."""
        return position % self.block_tokens
