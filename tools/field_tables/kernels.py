"""Arrays and records that kernels read: of int8 and what is like it, of int4, of token policies."""

from __future__ import annotations

from field_tables.table import Table, rows

_KERNELS = "kernels/**/*.py"
_CACHES = ("*.py", "token_eviction/*.py", "int4_blocks/*.py", "paged/*.py")

ATTEND = Table(
    "attend",
    "The parameters `a` of attention: array('i'), all >= 0 unless said, one array a cache. Offsets are bytes"
    " from the start of the buffer.",
    {_KERNELS: ("a",), **dict.fromkeys(_CACHES, ("a", "*.a"))},
    rows("""
    N | tokens | look | visible; of int4 the fresh ones alone while av() runs
    RUNS | runs | look | of consecutive slots, see RUN
    ROW | bytes | setup | from a token's codes to the next token's, one head
    SLICES | slices | setup | of a row, one scale each
    WIDTH | bytes | setup | of a slice of codes of 8 bits, as a query has them; multiple of 4
    CODES | offset | head | K codes of this head, slot 0
    VCODES | offset | head | V codes of this head, slot 0
    SCALES | offset | head | K scales of this head's first slice, slot 0
    VSCALES | offset | head | V scales of this head's first slice, slot 0
    SCALE_STRIDE | bytes | setup | from one group's scales to the next group's
    SCORES | offset | setup | int32[N]
    DOTS | offset | setup | int32[N]: dots, then small weights; = SCORES with one slice
    KSCALE | offset | setup | uint16[SLICES][max_visible], scales relative to the largest exponent
    VSCALE | offset | setup | uint16[SLICES][max_visible], scales relative to the largest exponent
    SCALE_ROW | bytes | setup | of one such row
    UNITS | offset | setup | uint32[batches]: factor | shift << 16 | kind << 24, see plain.py
    SUMS | offset | setup | int32[ROW]
    QUERY | offset | head | query record of this head
    SINK_QUERY | bytes | row | from set 0 to the set the sinks use; 0 = the same
    SLICE | slice | head | being worked on
    KEXP | exponent | scales() | largest field among the visible K scales, or keys of floats
    VEXP | exponent | scales() | largest field among the visible V scales, or values of floats
    MAX | score | score() | largest; signed
    WHI | weights | weights() | their sum >> 16
    WLO | weights | weights() | their sum & 0xFFFF
    CORR | sum | weights(), of floats av() | what the offset 128 of all codes adds to every channel
    LOG_SCALE | mantissa | setup | 15 bits, of log2(e) / sqrt(head_dim)
    LOG_EXP | exponent | setup | = LOG_SCALE * 2^-LOG_EXP; of floats as much more as KEXP is, see setup.py
    V_BIAS | exponent | setup | of results: 2^(VEXP - V_BIAS) is what a step of emit() counts
    OUT_SHIFT | shift | row | BIAS + out_shift; 0 = float32
    Q_AT | element | row | of q to read
    SLICE_WIDTH | values | setup | of a slice
    HEAD_DIM | values | setup | of a head
    QUERY_BYTES | bytes | setup | of a query record
    SETS | sets | row | 1, or 2 when the sinks have a query of their own
    Q_SHIFT | shift | row | BIAS + q_shift; 0 = float32
    MASK31 | mask | setup | 0x7FFFFFFF
    HEADS | heads | setup | of queries
    QUERY_SET | bytes | setup | of one set in a query record
    V_ROW | bytes | setup | as ROW, of V
    V_WIDTH | bytes | setup | as WIDTH, of V
    V_RUNS | bytes | setup | offset in `a` of V's own runs, see V_RUN_CODES; 0: as K's
    VARIED | number | scales(), of floats | where exponents of keys differ the largest one's scale, else 0
    UNIT | bits | weights() | of their sum: sums have the unit 2^(UNIT - 21)
    QUERIES | offset | setup | first query record
    RUN*12 | runs | look | oldest first, see RUN_CODES: the sinks, and a ring in two parts
    """),
    names_end="A_COUNT",
)

RUN = Table(
    "run",
    "A run of consecutive slots, from RUN on in `a`: 32-bit words.",
    {_KERNELS: ("run", "a"), **dict.fromkeys(_CACHES, ("a", "*.a"))},
    rows("""
    RUN_CODES | bytes | look | from slot 0's codes to the first slot's
    RUN_SCALES | bytes | look | from slot 0's scales to the first slot's
    RUN_COUNT | slots | look | of the run
    RUN_SINKS | flag | look | 1: the set of queries is that of the sinks
    """),
    names_end="RUN_WORDS",
)

V_RUN = Table(
    "v_run",
    "A run of V where its rows are of another length than K's: 32-bit words.",
    {_KERNELS: ("v_run", "a"), **dict.fromkeys(_CACHES, ("a", "*.a"))},
    rows("""
    V_RUN_CODES | bytes | look | from slot 0's codes to the first slot's
    V_RUN_COUNT | slots | look | of the run
    """),
    names_end="V_RUN_WORDS",
)

SPARSE = Table(
    "sparse",
    "What sparse has in `a` before V's own runs: 32-bit words.",
    {"kernels/sparse/*.py": ("own", "a"), "setup.py": ("a",)},
    rows("""
    SPARSE_QUERIES | bytes | setup | of the query records of one KV head
    SPARSE_GROUP | values | setup | that share a scale, and a mask of those kept
    SPARSE_STRIDE | bytes | setup | from one group's kept values to the next group's
    """),
    names_end="SPARSE_WORDS",
)

CALLS = Table(
    "calls",
    "What heads() calls and steps through, `calls` of a cache: array('i'). Kernels by the addresses of their"
    " code, offsets as in ATTEND.",
    {_KERNELS: ("calls",), "attention.py": ("calls",)},
    rows("""
    CALL_SCALES | address | setup | of scales()
    CALL_QK | address | setup | of qk()
    CALL_SCORE | address | setup | of score()
    CALL_USES | address | setup | of a token policy's uses(); 0: none
    CALL_WEIGHTS | address | setup | of weights()
    CALL_AV | address | setup | of av()
    CALL_EMIT | address | setup | of emit()
    POLICY_AT | address | setup | of what uses() is told
    TABLES_AT | address | setup | of what weights() and uses() read
    LAYER_AT | offset | row | codes of the layer, slot 0
    TO_VALUES | bytes | setup | from a layer's K codes to its V codes
    TO_SCALES | bytes | setup | from a layer's K codes to their scales
    TO_VSCALES | bytes | setup | from a layer's V codes to their scales
    NEXT_CODES | bytes | setup | from a KV head's K codes to the next one's
    NEXT_VCODES | bytes | setup | from a KV head's V codes to the next one's
    NEXT_SCALES | bytes | setup | from the scales that KV heads share to the next ones'
    NEXT_QUERY | bytes | setup | of a query record
    FIRST_QUERY | offset | setup | the first query record
    KV_HEADS | heads | setup | of keys and values
    GROUP_HEADS | heads | setup | of queries, that share a KV head
    SHARED_SCALES | heads | setup | of keys and values, that share scales
    """),
    names_end="CALLS_COUNT",
)

QUERY = Table(
    "query",
    "A query record of one head: 32-bit words.",
    {_KERNELS: ("record",)},
    rows("""
    QUERY_MANTISSA | mantissa | query() | of the scale of this head's codes
    QUERY_EXP | exponent | query() | 2048 + that of the scale
    QUERY_DOWN | bits | query() | that dots lose before they are multiplied with a scale
    QUERY_AT | element | query() | of q, the head's first
    QUERY_WORDS | words | query() | from here on, a set after the other: SLICES constants, then the codes
    """),
)

ENCODE = Table(
    "encode",
    "The parameters `e` of storing: array('i'), one array a cache.",
    {_KERNELS: ("e",), **dict.fromkeys(_CACHES, ("e", "*.e"))},
    rows("""
    E_LAYER | element | append | of `e`, where the layer's record is counted from E_TABLE on: its number
    E_SLOT | slot | append | to write
    E_AT | element | append | of k and v to read
    E_COUNT | values | setup | of each
    E_GROUP | values | setup | that share a scale
    E_WIDTH | values | setup | of a slice
    E_SLICES | slices | setup | of a head
    E_STRIDE | bytes | setup | between groups
    E_MASK31 | mask | setup | 0x7FFFFFFF
    E_K*6 | words | setup | how keys are stored, see VECTOR_AT
    E_V*6 | words | setup | how values are stored
    """),
    names_end="E_TABLE",
)

VECTOR = Table(
    "vector",
    "How one vector is stored, K's or V's, from E_K and E_V on in `e`: 32-bit words.",
    {_KERNELS: ("vector", "e"), **dict.fromkeys(_CACHES, ("e", "*.e"))},
    rows("""
    VECTOR_AT | bytes | setup | from a layer's codes to its plane: 0 of K
    VECTOR_ROW | bytes | setup | between slots
    VECTOR_CODES | bytes | setup | of the plane's codes; its scales follow
    VECTOR_BYTES | bytes | setup | of a slice
    VECTOR_HEAD | bytes | setup | between heads, of sparse values between groups
    VECTOR_MOST | code | setup | the largest: 127; 7: two codes a byte; 0: int8's encode() leaves it out
    """),
    names_end="VECTOR_WORDS",
)

LAYER = Table(
    "layer",
    "A layer's record, from E_TABLE on in `e`: 32-bit words.",
    {_KERNELS: ("layer", "e"), **dict.fromkeys(_CACHES, ("e", "*.e"))},
    rows("""
    LAYER_CODES | offset | setup | codes of slot 0
    LAYER_K_SHIFT | shift | setup | BIAS + shift of k; 0 = float32
    LAYER_V_SHIFT | shift | setup | BIAS + shift of v; 0 = float32
    """),
    names_end="LAYER_WORDS",
)

ATTEND4 = Table(
    "attend4",
    "What int4 has in `a` behind the runs of the fresh rows.",
    {"kernels/int4/*.py": ("a",), "int4_blocks/*.py": ("a",), "attention.py": ("a",)},
    rows("""
    SEALED | tokens | look | visible in sealed form; the others, fresh, come first
    FIRST | row | look | of the oldest of them; rows follow one another, and row 0 the last
    ROWS | rows | setup | 16 a block
    ROW4 | bytes | setup | of a row, of K or V
    WIDTH4 | bytes | setup | of a slice of it
    CODES4 | offset | head | K codes of this head, row 0
    RANGES | offset | head | K ranges of this head, block 0: a word a channel
    VCODES4 | offset | head | V codes of this head, row 0
    POWERS | offset | head | K powers of two of this head's first slice, block 0
    VSCALES4 | offset | head | V scales of this head's first slice, row 0
    MINIMA_GAP | bytes | setup | from V's scales to its minima
    HEADER | bytes | setup | from a block's powers and ranges to the next block's
    STRIDE4 | bytes | setup | from one group's V scales to the next group's
    CENTERS | offset | setup | int16[SLICES][SEALED]: middle of the range of V, see scales()
    CENTER_ROW | bytes | setup | of one such row
    LIFT | sum | center() | >> 16, what the middles add to every channel; signed
    LIFT_LOW | sum | center() | the rest of it, below 2^16
    SPREAD | offset | setup | words for qk4(): the query's codes, then what it is multiplied with
    FINER | bits | setup | that a sealed key's dot has more than a fresh one's
    TOTAL | tokens | look | visible, fresh and sealed; N counts the fresh ones alone while av() runs
    """),
    first=ATTEND.first + sum(field.size for field in ATTEND.fields),
    names_end="A4_COUNT",
)

SEAL = Table(
    "seal",
    "The parameters `s` of sealing a block of int4 and of opening it again: array('i').",
    {"kernels/int4/*.py": ("s",), "int4_blocks/*.py": ("s", "*._s")},
    rows("""
    S_K | offset | seal | K codes of head 0 in the slot of the block's first token
    S_KS | offset | seal | K scales of group 0 there
    S_V | offset | seal | V codes of head 0 there
    S_VS | offset | seal | V scales of group 0 there
    S_HEAD | bytes | setup | between heads, of fresh rows
    S_STRIDE | bytes | setup | between groups, of fresh scales
    S_ROW | bytes | setup | between slots
    S_WIDTH | bytes | setup | of a slice
    S_SLICE | values | setup | of a slice
    S_SLICES | slices | setup | of a head
    S_GROUP | values | setup | of a group
    S_GROUPS | groups | setup | of a token
    S_K4 | offset | seal | sealed K codes of head 0, the block's first row
    S_HEADER | offset | seal | the block's header
    S_POWERS | bytes | setup | of its powers; the ranges follow
    S_V4 | offset | seal | sealed V codes of head 0, the block's first row
    S_VS4 | offset | seal | V scales of group 0, the block's first row
    S_GAP | bytes | setup | from V's scales to its minima
    S_HEAD4 | bytes | setup | between heads, of sealed rows
    S_STRIDE4 | bytes | setup | between groups, of V's scales
    S_ROW4 | bytes | setup | of a sealed row
    S_WIDTH4 | bytes | setup | of a slice of it
    S_SPREAD | offset | setup | words for open()
    S_TOKEN | token | open | of the block: which one open() reads
    """),
    names_end="S_COUNT",
)

PLAN = Table(
    "plan",
    "`plan`, the array('i') by which a budget cache and its kernels talk. Ring: the slots behind the sinks,"
    " one more than the budget; an index of one is counted from 0 there, and RING, their number, means none.",
    {
        "eviction/tokens/*.py": ("plan",),
        **dict.fromkeys(("token_eviction/*.py", "snapshot/*.py"), ("plan", "*.plan")),
        "*.py": ("*.plan",),
    },
    rows("""
    RING | slots | setup | of the ring
    SINKS | slots | setup | of sinks
    RECENT | tokens | setup | newest, that never leave
    KIND | kind | setup | USED, MASS, DECAYED or BLIND
    PEAK | flag | setup | 1: of a token's shares the largest counts, 0: their sum
    BITS | bits | step | a share of everything is 2^BITS in this step
    FRESH | worth | step | that a token begins with
    ALL_HEADS | heads | setup | of all layers
    DOWN | bits | step | masses count 2^-DOWN of what a step of one row adds up
    FIRST | slot | step | where its first token goes
    HOLE | slot | step | whose token leaves when it is committed
    ROWS | tokens | step | of it
    SEEN | sinks | step | that its last token sees
    COUNT | tokens | step | of the ring that it sees, itself included
    THRESHOLD | share | step | a sum or peak above it is a use
    UP | bits | step | that a share of one row has more
    SINCE | tokens | step | length at which it is committed, all of it in force; 0: no step
    BANK | bank | commit | array of worths in force, 0 or 1
    NEXT_BANK | bank | step | the same once the step is committed
    EVICTED | tokens | commit | that ever left, mod 2^30
    NEXT_EVICTED | tokens | step | the same once the step is committed
    LIVE | tokens | survey() | of the ring, there
    FREE | slot | survey() | first without one
    TOP | slot | survey() | last with one
    VICTIM | slot | survey() | of the least worthy token that may leave
    MOVING | slot | step | whose token is also in a lower one, or about to be
    SHRINKING | flag | compress | 1: tokens marked GONE in the other bank have left
    ROW_BITS | bits | setup | BITS of a step of one row
    ACC | share | watch() | by place in what a token sees: sinks, then the ring but for HOLE; then scratch
    """),
)

KIND = Table(
    "kind",
    "KIND in `plan`: what watch() does with shares, see plain.py.",
    {},
    rows("""
    USED | kind | setup | a use counts
    MASS | kind | setup | shares are summed up
    DECAYED | kind | setup | and the older ones count less and less
    BLIND | kind | setup | nothing
    """),
)

TABLES = (ATTEND, RUN, V_RUN, SPARSE, CALLS, QUERY, ENCODE, VECTOR, LAYER, ATTEND4, SEAL, PLAN, KIND)
