"""Index of each number in the parameter arrays that the kernels read (array('i'), all >= 0 unless said).

Offsets are bytes from the start of the buffer. viper.py repeats the indexes as literals, since only
literals become constants there; a test holds the two together.
"""

# a: attend
N = 0  # visible tokens
RUNS = 1  # how many runs of consecutive slots there are, see RUN
ROW = 2  # bytes from a token's codes to the next token's, one head
SLICES = 3  # slices of a row, one scale each
WIDTH = 4  # bytes of a slice of codes of 8 bits, as a query has them; multiple of 4
CODES = 5  # K codes of this head, slot 0
VCODES = 6
SCALES = 7  # K scales of this head's first slice, slot 0
VSCALES = 8
SCALE_STRIDE = 9  # bytes from one group's scales to the next group's
SCORES = 10  # int32[N]
DOTS = 11  # int32[N]: dots, then small weights; = SCORES with one slice
KSCALE = 12  # uint16[SLICES][max_visible], scales relative to the largest exponent
VSCALE = 13
SCALE_ROW = 14  # bytes of one such row
UNITS = 15  # uint32[batches]: factor | shift << 16
SUMS = 16  # int32[ROW]
QUERY = 17  # query record of this head
SINK_QUERY = 18  # byte offset from set 0 to the set the sinks use; 0 = the same
SLICE = 19  # slice being worked on
KEXP = 20  # largest exponent field among the visible K scales, or keys of floats; written by scales()
VEXP = 21
MAX = 22  # largest score; written by score(), signed
WHI = 23  # sum of weights >> 16; written by weights()
WLO = 24  # ... & 0xFFFF
CORR = 25  # what the offset 128 of all codes adds to every channel; written by weights(), of floats by av()
LOG_SCALE = 26  # mantissa (15 bits) of log2(e) / sqrt(head_dim)
LOG_EXP = 27  # that = LOG_SCALE * 2^-LOG_EXP; of floats as much more as KEXP is, see setup.py
V_BIAS = 28  # of results: 2^(VEXP - V_BIAS) is what a step of emit() counts
OUT_SHIFT = 29  # BIAS + out_shift; 0 = float32
Q_AT = 30  # element of q to read
SLICE_WIDTH = 31  # values of a slice
HEAD_DIM = 32
QUERY_BYTES = 33  # bytes of a query record
SETS = 34  # 1, or 2 when the sinks have a query of their own
Q_SHIFT = 35  # BIAS + q_shift; 0 = float32
MASK31 = 36  # 0x7FFFFFFF
HEADS = 37
QUERY_SET = 38  # bytes of one set in a query record
V_ROW = 39  # as ROW, of V
V_WIDTH = 40  # as WIDTH, of V
V_RUNS = 41  # byte offset in `a` of V's own runs, two numbers each: codes offset, count; 0: as K's
QUERIES = 42  # first query record
RUN = 43  # the runs, oldest first, four numbers each: codes offset, scales offset, count, query set
A_COUNT = RUN + 4 * 3  # sinks, and a ring in two parts

# e: encode
E_LAYER = 0  # entry of the table
E_SLOT = 1
E_AT = 2  # element of k and v to read
E_COUNT = 3  # values of each
E_GROUP = 4  # values that share a scale
E_WIDTH = 5  # values of a slice
E_BYTES = 6  # bytes of a slice
E_SLICES = 7  # slices of a head
E_HEAD = 8  # bytes between heads
E_STRIDE = 9  # bytes between groups
E_ROW = 10  # bytes between slots
E_CODES = 11  # bytes of a plane's codes; its scales follow
E_PLANE = 12  # bytes from K to V
E_MASK31 = 13
E_V_BYTES = 14  # as E_BYTES, E_HEAD, E_ROW and E_CODES, of V
E_V_HEAD = 15
E_V_ROW = 16
E_V_CODES = 17
E_TABLE = 18  # three numbers a layer: codes of slot 0, BIAS + shift of k (0 = float32), the same of v

MASK = 0x00FF00FF  # argument of qk() and av(): bytes 0 and 2 of a word
BIAS = 64  # shifts are -32..31 and stored non-negative

TOO_LARGE = -1  # query(), encode() of k: not finite, or beyond the float16 scale range
V_TOO_LARGE = -2  # encode(): k is good, v is not
