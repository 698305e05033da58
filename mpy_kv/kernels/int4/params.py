"""Names of the numbers that the kernels of int4 read besides those of ../params.py."""

# all fields: attend4, seal
# What int4 has in `a` behind the runs of the fresh rows.
SEALED = 57  # tokens, by look: visible in sealed form; the others, fresh, come first
FIRST = 58  # row, by look: of the oldest of them; rows follow one another, and row 0 the last
ROWS = 59  # rows, by setup: 16 a block
ROW4 = 60  # bytes, by setup: of a row, of K or V
WIDTH4 = 61  # bytes, by setup: of a slice of it
CODES4 = 62  # offset, by head: K codes of this head, row 0
RANGES = 63  # offset, by head: K ranges of this head, block 0: a word a channel
VCODES4 = 64  # offset, by head: V codes of this head, row 0
POWERS = 65  # offset, by head: K powers of two of this head's first slice, block 0
VSCALES4 = 66  # offset, by head: V scales of this head's first slice, row 0
MINIMA_GAP = 67  # bytes, by setup: from V's scales to its minima
HEADER = 68  # bytes, by setup: from a block's powers and ranges to the next block's
STRIDE4 = 69  # bytes, by setup: from one group's V scales to the next group's
CENTERS = 70  # offset, by setup: int16[SLICES][SEALED]: middle of the range of V, see scales()
CENTER_ROW = 71  # bytes, by setup: of one such row
LIFT = 72  # sum, by center(): >> 16, what the middles add to every channel; signed
LIFT_LOW = 73  # sum, by center(): the rest of it, below 2^16
SPREAD = 74  # offset, by setup: words for qk4(): the query's codes, then what it is multiplied with
FINER = 75  # bits, by setup: that a sealed key's dot has more than a fresh one's
TOTAL = 76  # tokens, by look: visible, fresh and sealed; N counts the fresh ones alone while av() runs
A4_COUNT = 77
# The parameters `s` of sealing a block of int4 and of opening it again: array('i').
S_K = 0  # offset, by seal: K codes of head 0 in the slot of the block's first token
S_KS = 1  # offset, by seal: K scales of group 0 there
S_V = 2  # offset, by seal: V codes of head 0 there
S_VS = 3  # offset, by seal: V scales of group 0 there
S_HEAD = 4  # bytes, by setup: between heads, of fresh rows
S_STRIDE = 5  # bytes, by setup: between groups, of fresh scales
S_ROW = 6  # bytes, by setup: between slots
S_WIDTH = 7  # bytes, by setup: of a slice
S_SLICE = 8  # values, by setup: of a slice
S_SLICES = 9  # slices, by setup: of a head
S_GROUP = 10  # values, by setup: of a group
S_GROUPS = 11  # groups, by setup: of a token
S_K4 = 12  # offset, by seal: sealed K codes of head 0, the block's first row
S_HEADER = 13  # offset, by seal: the block's header
S_POWERS = 14  # bytes, by setup: of its powers; the ranges follow
S_V4 = 15  # offset, by seal: sealed V codes of head 0, the block's first row
S_VS4 = 16  # offset, by seal: V scales of group 0, the block's first row
S_GAP = 17  # bytes, by setup: from V's scales to its minima
S_HEAD4 = 18  # bytes, by setup: between heads, of sealed rows
S_STRIDE4 = 19  # bytes, by setup: between groups, of V's scales
S_ROW4 = 20  # bytes, by setup: of a sealed row
S_WIDTH4 = 21  # bytes, by setup: of a slice of it
S_SPREAD = 22  # offset, by setup: words for open()
S_TOKEN = 23  # token, by open: of the block: which one open() reads
S_COUNT = 24
# end of fields
