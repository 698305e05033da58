"""Index of each number that the kernels of int4 read besides those of ../params.py; offsets as there."""

# a: attend, behind the runs of the fresh rows
SEALED = 55  # visible tokens in sealed form; the others, fresh, come first
FIRST = 56  # row of the oldest of them; rows follow one another, and row 0 the last
ROWS = 57  # 16 a block
ROW4 = 58  # bytes of a row, of K or V
WIDTH4 = 59  # bytes of a slice of it
CODES4 = 60  # K codes of this head, row 0
RANGES = 61  # K ranges of this head, block 0: a word a channel
VCODES4 = 62
POWERS = 63  # K powers of two of this head's first slice, block 0
VSCALES4 = 64  # V scales of this head's first slice, row 0
MINIMA_GAP = 65  # bytes from V's scales to its minima
HEADER = 66  # bytes from a block's powers and ranges to the next block's
STRIDE4 = 67  # bytes from one group's V scales to the next group's
CENTERS = 68  # int16[SLICES][SEALED]: middle of the range of V, see scales()
CENTER_ROW = 69  # bytes of one such row
LIFT = 70  # what the middles add to every channel, and 2^29; written by center()
SPREAD = 71  # words for qk4(): the query's codes, then what it is multiplied with
TOTAL = 72  # visible tokens, fresh and sealed; N counts the fresh ones alone while av() runs
A4_COUNT = 73

# s: seal and open
S_K = 0  # K codes of head 0 in the slot of the block's first token
S_KS = 1  # K scales of group 0 there
S_V = 2
S_VS = 3
S_HEAD = 4  # bytes between heads, of fresh rows
S_STRIDE = 5  # bytes between groups, of fresh scales
S_ROW = 6  # bytes between slots
S_WIDTH = 7  # bytes of a slice
S_SLICE = 8  # values of a slice
S_SLICES = 9
S_GROUP = 10  # values of a group
S_GROUPS = 11
S_K4 = 12  # sealed K codes of head 0, the block's first row
S_HEADER = 13  # the block's header
S_POWERS = 14  # bytes of its powers; the ranges follow
S_V4 = 15
S_VS4 = 16  # V scales of group 0, the block's first row
S_GAP = 17  # from V's scales to its minima
S_HEAD4 = 18  # bytes between heads, of sealed rows
S_STRIDE4 = 19  # bytes between groups, of V's scales
S_ROW4 = 20
S_WIDTH4 = 21
S_SPREAD = 22
S_TOKEN = 23  # of the block: which one open() reads
S_COUNT = 24
