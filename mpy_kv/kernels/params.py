"""Names of the numbers in the parameter arrays that the kernels read, and numbers that go with them."""

# all fields: attend, run, v_run, encode, vector, layer
# The parameters `a` of attention: array('i'), all >= 0 unless said, one array a cache. Offsets are bytes
# from the start of the buffer.
N = 0  # tokens, by look: visible; of int4 the fresh ones alone while av() runs
RUNS = 1  # runs, by look: of consecutive slots, see RUN
ROW = 2  # bytes, by setup: from a token's codes to the next token's, one head
SLICES = 3  # slices, by setup: of a row, one scale each
WIDTH = 4  # bytes, by setup: of a slice of codes of 8 bits, as a query has them; multiple of 4
CODES = 5  # offset, by head: K codes of this head, slot 0
VCODES = 6  # offset, by head: V codes of this head, slot 0
SCALES = 7  # offset, by head: K scales of this head's first slice, slot 0
VSCALES = 8  # offset, by head: V scales of this head's first slice, slot 0
SCALE_STRIDE = 9  # bytes, by setup: from one group's scales to the next group's
SCORES = 10  # offset, by setup: int32[N]
DOTS = 11  # offset, by setup: int32[N]: dots, then small weights; = SCORES with one slice
KSCALE = 12  # offset, by setup: uint16[SLICES][max_visible], scales relative to the largest exponent
VSCALE = 13  # offset, by setup: uint16[SLICES][max_visible], scales relative to the largest exponent
SCALE_ROW = 14  # bytes, by setup: of one such row
UNITS = 15  # offset, by setup: uint32[batches]: factor | shift << 16 | kind << 24, see plain.py
SUMS = 16  # offset, by setup: int32[ROW]
QUERY = 17  # offset, by head: query record of this head
SINK_QUERY = 18  # bytes, by row: from set 0 to the set the sinks use; 0 = the same
SLICE = 19  # slice, by head: being worked on
KEXP = 20  # exponent, by scales(): largest field among the visible K scales, or keys of floats
VEXP = 21  # exponent, by scales(): largest field among the visible V scales, or values of floats
MAX = 22  # score, by score(): largest; signed
WHI = 23  # weights, by weights(): their sum >> 16
WLO = 24  # weights, by weights(): their sum & 0xFFFF
CORR = 25  # sum, by weights(), of floats av(): what the offset 128 of all codes adds to every channel
LOG_SCALE = 26  # mantissa, by setup: 15 bits, of log2(e) / sqrt(head_dim)
LOG_EXP = 27  # exponent, by setup: = LOG_SCALE * 2^-LOG_EXP; of floats as much more as KEXP is, see setup.py
V_BIAS = 28  # exponent, by setup: of results: 2^(VEXP - V_BIAS) is what a step of emit() counts
OUT_SHIFT = 29  # shift, by row: BIAS + out_shift; 0 = float32
Q_AT = 30  # element, by row: of q to read
SLICE_WIDTH = 31  # values, by setup: of a slice
HEAD_DIM = 32  # values, by setup: of a head
QUERY_BYTES = 33  # bytes, by setup: of a query record
SETS = 34  # sets, by row: 1, or 2 when the sinks have a query of their own
Q_SHIFT = 35  # shift, by row: BIAS + q_shift; 0 = float32
MASK31 = 36  # mask, by setup: 0x7FFFFFFF
HEADS = 37  # heads, by setup: of queries
QUERY_SET = 38  # bytes, by setup: of one set in a query record
V_ROW = 39  # bytes, by setup: as ROW, of V
V_WIDTH = 40  # bytes, by setup: as WIDTH, of V
V_RUNS = 41  # bytes, by setup: offset in `a` of V's own runs, see V_RUN_CODES; 0: as K's
VARIED = 42  # number, by scales(), of floats: where exponents of keys differ the largest one's scale, else 0
UNIT = 43  # bits, by weights(): of their sum: sums have the unit 2^(UNIT - 21)
QUERIES = 44  # offset, by setup: first query record
RUN = 45  # runs, by look: oldest first, see RUN_CODES: the sinks, and a ring in two parts
A_COUNT = 57
# A run of consecutive slots, from RUN on in `a`: 32-bit words.
RUN_CODES = 0  # bytes, by look: from slot 0's codes to the first slot's
RUN_SCALES = 1  # bytes, by look: from slot 0's scales to the first slot's
RUN_COUNT = 2  # slots, by look: of the run
RUN_SINKS = 3  # flag, by look: 1: the set of queries is that of the sinks
RUN_WORDS = 4
# A run of V where its rows are of another length than K's: 32-bit words.
V_RUN_CODES = 0  # bytes, by look: from slot 0's codes to the first slot's
V_RUN_COUNT = 1  # slots, by look: of the run
V_RUN_WORDS = 2
# The parameters `e` of storing: array('i'), one array a cache.
E_LAYER = 0  # element, by append: of `e`, where the layer's record is counted from E_TABLE on: its number
E_SLOT = 1  # slot, by append: to write
E_AT = 2  # element, by append: of k and v to read
E_COUNT = 3  # values, by setup: of each
E_GROUP = 4  # values, by setup: that share a scale
E_WIDTH = 5  # values, by setup: of a slice
E_SLICES = 6  # slices, by setup: of a head
E_STRIDE = 7  # bytes, by setup: between groups
E_MASK31 = 8  # mask, by setup: 0x7FFFFFFF
E_K = 9  # words, by setup: how keys are stored, see VECTOR_AT
E_V = 15  # words, by setup: how values are stored
E_TABLE = 21
# How one vector is stored, K's or V's, from E_K and E_V on in `e`: 32-bit words.
VECTOR_AT = 0  # bytes, by setup: from a layer's codes to its plane: 0 of K
VECTOR_ROW = 1  # bytes, by setup: between slots
VECTOR_CODES = 2  # bytes, by setup: of the plane's codes; its scales follow
VECTOR_BYTES = 3  # bytes, by setup: of a slice
VECTOR_HEAD = 4  # bytes, by setup: between heads, of sparse values between groups
VECTOR_MOST = 5  # code, by setup: the largest: 127; 7: two codes a byte; 0: int8's encode() leaves it out
VECTOR_WORDS = 6
# A layer's record, from E_TABLE on in `e`: 32-bit words.
LAYER_CODES = 0  # offset, by setup: codes of slot 0
LAYER_K_SHIFT = 1  # shift, by setup: BIAS + shift of k; 0 = float32
LAYER_V_SHIFT = 2  # shift, by setup: BIAS + shift of v; 0 = float32
LAYER_WORDS = 3
# end of fields

MASK = 0x00FF00FF  # argument of qk() and av(): bytes 0 and 2 of a word
BIAS = 64  # shifts are -32..31 and stored non-negative
DENORMAL = 10  # exponents of scales are -9..31, as denormals have 11 bits here too, and stored so much larger

TOO_LARGE = -1  # query(), encode() of k: not finite, or beyond the float16 scale range
V_TOO_LARGE = -2  # encode(): k is good, v is not
