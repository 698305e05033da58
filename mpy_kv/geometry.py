"""Every size and stride of a cache, derived once (SPEC.md, "The cache buffer").

Allocates one small object at construction; every method is O(1). Owns no memory.
"""

from .errors import BadArgument

_MAX_TOKENS = 1 << 26  # of a plan; what a cache can attend at once is MAX_VISIBLE
MAX_VISIBLE = 1 << 16  # weights sum to < 2^(16 + 27), kept as 16 + 27 bits
MAX_BYTES = 1 << 30  # offsets are small ints on 32-bit boards

# Every element type, by name; no other list names them. Bits of a value in K and in V; the most values that
# share a scale, 0 where there are no scales; the byte that names the type in a board image, or None.
# Its kernels are the package kernels/NAME (of int8 kernels/ itself), what reads it back is codecs/NAME.
CODECS = {
    "float32": (32, 32, 0, None),
    "float16": (16, 16, 0, 2),
    "int8": (8, 8, 1 << 20, 0),
    "int8-int4": (8, 4, 1 << 20, 1),
    "int4": (4, 4, 32, 4),  # in blocks of all layers' tokens: mpy_kv/int4_blocks
    "sparse": (8, 7, 32, 3),  # of values: a bit of the bitmap, which is one word, and three quarters of 8
}

SINKS = 4  # of a window, unless others are asked for (DESIGN.md, "The ring and its spare slot")

BATCH = 8  # tokens whose weights share one exponent in A.V; even, see kernels/plain.py


def whole(name, value, low, high):
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadArgument("%s must be a whole number, got %r" % (name, value))
    if value < low or value > high:
        raise BadArgument("%s must be %d..%d, got %d" % (name, low, high, value))
    return value


def default_group(kv_heads, head_dim, limit=32):
    """Largest g <= limit that divides kv_heads * head_dim and divides, or is a multiple of, head_dim."""
    n = kv_heads * head_dim
    g = min(limit, n)
    while n % g or (head_dim % g and g % head_dim):
        g -= 1
    return g


def _up(n, to):
    return (n + to - 1) // to * to


class Geometry:
    """Shape of one cached sequence.

    layers, heads (query), kv_heads, head_dim: the model's; heads % kv_heads == 0.
    window: recent tokens visible, the current one included (256). sinks: first tokens that stay visible on
    top of the window (4; 0 must be asked for). capacity: instead of a window, the most tokens ever held.
    codec: element type, see CODECS.
    group: values that share one float16 scale (default: `default_group`, at most group_limit).

    Raises BadArgument naming the option. Shapes (SPEC.md): a layer's block holds, for K then V,
    codes [kv_heads][slots][row_bytes] and scales [groups][slots] as little-endian float16. Names of sizes
    and strides are K's; V's stand beside them with v_ before. V of sparse is [groups][slots][v_row_bytes]:
    v_group_stride lies between groups, and v_head_stride is 0.
    """

    block_tokens = None  # of a PagedGeometry (paged/geometry.py): tokens of a block
    kept = 0  # of sparse: values of a group that are stored, the others read 0
    sealed = False  # of a SealedGeometry (int4_blocks/geometry.py): int4, whose fresh rows are those of int8

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
    ):
        self.layers = whole("layers", layers, 1, 1024)
        self.heads = whole("heads", heads, 1, 1024)
        self.kv_heads = whole("kv_heads", kv_heads, 1, 1024)
        self.head_dim = whole("head_dim", head_dim, 1, 1024)
        if heads % kv_heads:
            raise BadArgument(
                "heads %d is not a multiple of kv_heads %d: query heads share KV heads evenly"
                % (heads, kv_heads)
            )
        if not isinstance(codec, str) or codec not in CODECS:
            raise BadArgument("codec %r is unknown; known: %s" % (codec, ", ".join(sorted(CODECS))))
        if codec == "int4":
            raise BadArgument(
                "codec 'int4' lies in sealed blocks: it takes a mpy_kv.int4_blocks.SealedGeometry "
                "(mpy_kv.geometry_for finds it)"
            )
        self.codec = codec
        bits, v_bits, most_group, _ = CODECS[codec]
        if capacity is None:
            self.window = whole("window", 256 if window is None else window, 1, _MAX_TOKENS)
            self.sinks = whole("sinks", SINKS if sinks is None else sinks, 0, _MAX_TOKENS - self.window)
            self.capacity = None
            # The spare slot takes the uncommitted token: an abort overwrites nothing visible.
            self.ring_slots = self.window + 1
        else:
            if window is not None:
                raise BadArgument(
                    "window %r beside capacity %r: take one; with capacity nothing is evicted"
                    % (window, capacity)
                )
            if sinks is not None and whole("sinks", sinks, 0, _MAX_TOKENS):
                raise BadArgument("sinks %r need a window; with capacity nothing is evicted" % (sinks,))
            self.capacity = self.window = whole("capacity", capacity, 1, _MAX_TOKENS)
            self.sinks = 0
            self.ring_slots = self.capacity
        self.slots = self.sinks + self.ring_slots
        self.max_visible = self.sinks + self.window

        n = kv_heads * head_dim
        self.width = n  # values of one K or V vector
        limit = whole("group_limit", group_limit, 1, 4096)
        if not most_group:
            if group is not None:
                raise BadArgument("group %r: %s has no scales" % (group, codec))
            group = n
        elif group is None:
            group = default_group(kv_heads, head_dim, min(limit, most_group))
        whole("group", group, 1, n)
        if n % group or (head_dim % group and group % head_dim):
            raise BadArgument(
                "group %d must divide kv_heads*head_dim = %d and divide, or be a multiple of, "
                "head_dim %d" % (group, n, head_dim)
            )
        if most_group and group > most_group:
            raise BadArgument(
                "group %d: %s takes at most %d, a bitmap of one word" % (group, codec, most_group)
            )
        self.group = group
        self.groups = n // group if most_group else 0

        # A row is one head's head_dim codes, cut into slices that have one scale each; slices
        # start on a word so that the kernels read whole words.
        self.slice_width = min(group, head_dim) if most_group else head_dim
        self.slices = head_dim // self.slice_width
        self.slice_bytes = _up(self.slice_width * bits, 32) // 8
        self.v_slice_bytes = _up(self.slice_width * v_bits, 32) // 8
        self.row_bytes = self.slices * self.slice_bytes
        self.v_row_bytes = self.slices * self.v_slice_bytes
        self._sums = max(self.slices * _up(self.slice_width, 4), 8 * self.v_slice_bytes // v_bits)
        if codec == "sparse":
            # A row of V is a group's, bitmap and codes.
            self.kept = group - group // 4
            self.v_slice_bytes = self.v_row_bytes = _up((group + 7) // 8 + self.kept, 4)
            self._sums = _up(self.slice_width, 8)
        self._lay_out(self.slots)
        self._bytes = self._lay_scratch(self.layers * self.layer_bytes)

    def _lay_out(self, slots):
        """Strides and sizes of a layer whose planes have `slots` slots."""
        self.head_stride = slots * self.row_bytes
        self.v_head_stride = slots * self.v_row_bytes
        self.v_group_stride = 0
        if self.kept:
            # Heads may share a group's row: none is further on, the kernel finds it.
            self.v_group_stride = self.v_head_stride
            self.v_head_stride = 0
        self.scale_stride = slots * 2
        self.codes_bytes = self.kv_heads * self.head_stride
        self.v_codes_bytes = self.kv_heads * self.v_head_stride + self.groups * self.v_group_stride
        self.scales_bytes = _up(self.groups * self.scale_stride, 4)
        self.plane_bytes = self.codes_bytes + self.scales_bytes
        self.layer_bytes = self.plane_bytes + self.v_codes_bytes + self.scales_bytes

    def _lay_scratch(self, at):
        """Offsets of the scratch, from `at` on, that every layer and head uses in turn; where it ends."""
        m = self.max_visible
        self.scale_row = 2 * m
        self.query_sets = 2 if self.sinks else 1
        self.query_words = 4 * self.slices + 2 * self.slices * _up(self.slice_width, 8)
        self.query_bytes = 16 + self.query_sets * self.query_words
        self.at_scores = at
        at += _up(4 * m, 4 * BATCH)
        self.at_dots = self.at_scores  # with one slice a score may overwrite its own dot
        if self.slices > 1:
            self.at_dots = at
            at += _up(4 * m, 4 * BATCH)
        if self.codec == "float16":
            at += 1024  # tables by which its kernels read a number
        self.at_kscale = at
        at += _up(self.slices * self.scale_row, 4)
        self.at_vscale = at
        at += _up(self.slices * self.scale_row, 4)
        self.at_units = at
        at += 4 * ((m + BATCH - 1) // BATCH)
        self.at_sums = at
        at += 4 * self._sums
        self.at_queries = at
        return at + self.heads * self.query_bytes

    def bytes(self):
        """Exact length in bytes of the buffer a KVCache of this geometry needs."""
        return self._bytes

    def token_bytes(self):
        """Codes and scales of one token in all layers: whole bytes a slice, padding not counted."""
        bits, v_bits = CODECS[self.codec][:2]
        if self.kept:
            return self.layers * (self.width + self.groups * ((self.group + 7) // 8 + self.kept + 4))
        codes = (_up(self.slice_width * bits, 8) + _up(self.slice_width * v_bits, 8)) // 8
        return self.layers * (self.kv_heads * self.slices * codes + 4 * self.groups)

    def kv_bytes(self, tokens):
        """Codes and scales of `tokens` visible tokens in all layers (no spare slot, no padding)."""
        return tokens * self.token_bytes()

    def slot(self, position):
        """Slot that holds the token at `position`: sinks first, then the ring."""
        if position < self.sinks:
            return position
        return self.sinks + (position - self.sinks) % self.ring_slots

    def place(self, base, which, position):
        """Offsets of head 0's codes and group 0's scale of a token, in a layer's block that begins at `base`;
        which: "k" or "v"."""
        slot = self.slot(position)
        if which == "v":
            base += self.plane_bytes
            return base + slot * self.v_row_bytes, base + self.v_codes_bytes + slot * 2
        return base + slot * self.row_bytes, base + self.codes_bytes + slot * 2

    def __repr__(self):
        return "%s(layers=%d, heads=%d, kv_heads=%d, head_dim=%d, %s, codec=%r, group=%d%s)" % (
            type(self).__name__,
            self.layers,
            self.heads,
            self.kv_heads,
            self.head_dim,
            "window=%d, sinks=%d" % (self.window, self.sinks)
            if self.capacity is None
            else "capacity=%d" % self.capacity,
            self.codec,
            self.group,
            "" if self.block_tokens is None else ", block_tokens=%d" % self.block_tokens,
        )
