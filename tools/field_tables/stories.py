"""Parameters of the stories app's kernels (boards/apps/stories): an array('i') a call, made by plan.py."""

from __future__ import annotations

from field_tables.table import Table, rows

KERNELS = "boards/apps/stories/kernels/*.py"
MODEL = "boards/apps/stories/model.py"
BY_NAME = "boards/apps/stories/by_name.py"
PLAN = "boards/apps/stories/plan.py"
SAMPLING = "boards/apps/stories/sampling.py"
SAVED = "boards/apps/stories/saved.py"
STREAMING = "boards/apps/stories/streaming/making.py"
PROGRAMS = "boards/apps/stories/programs.py"
ENCODING = "boards/apps/stories/encoding/*.py"

EMBED = Table(
    "embed",
    "The parameters `a` of embed(). Destinations are elements of the workspace, offsets bytes of the image.",
    {KERNELS: ("a",), MODEL: ("*.embed",), BY_NAME: ("a", "*.embed")},
    rows("""
    ROW_COLUMNS | values | plan | of a row of the embedding
    ROW_CODES | bytes | plan | of its codes, padded
    ROW_TO | element | plan | where it goes
    ROW_AT | offset | step | of the token's row
    ROW_EXPONENT | exponent | plan | of the weights, + POINT
    """),
)

VECTOR = Table(
    "of_vector",
    "The first parameters `a` of norm() and swiglu(), all those of quant() and widen().",
    {KERNELS: ("a",)},
    rows("""
    N | values | plan | of the vector
    PADDED | values | plan | the same, filled up to whole groups
    TO | element | plan | what quant() reads
    ACT | element | plan | where quant() puts the activation vector
    ROOT | root | norm() | what the vector is to be divided by; 2^14 is 1
    EXPONENT | exponent | kernels | of the vector at TO
    """),
)

NORM = Table(
    "norm",
    "The parameters `a` of norm() behind those of VECTOR.",
    {KERNELS: ("a",), PLAN: ("a",)},
    rows("""
    WEIGHTS | offset | plan | of int16[N]
    FROM | element | plan | the vector to be normalised
    WEIGHTS_EXPONENT | exponent | plan | of the weights
    EPS | 2^-32 | plan | added to the mean square
    """),
    first=6,
)

SWIGLU = Table(
    "swiglu",
    "The parameters `a` of swiglu() behind those of VECTOR.",
    {KERNELS: ("a",)},
    rows("""
    GATE | element | plan | overwritten
    UP | element | plan | multiplied with it
    """),
    first=6,
)

MATVEC = Table(
    "matvec",
    "The parameters `a` of matvec().",
    {KERNELS: ("a",), BY_NAME: ("a", "c"), PLAN: ("m",), STREAMING: ("a", "rows")},
    rows("""
    M_AT | offset | plan | of the first row
    M_ROWS | rows | plan | to multiply
    M_GROUPS | groups | plan | of 32 columns
    M_SKIP | bytes | plan | from a row's codes to the next row
    M_ACT | element | plan | activation vector
    M_TO | element | plan | of the results
    M_EXPONENT | exponent | plan | of the weights, + point of the results
    """),
)

ROPE = Table(
    "rope",
    "The parameters `a` of rope_table().",
    {KERNELS: ("a",), **dict.fromkeys((MODEL, BY_NAME), ("*.turn", "*.turn_sinks"))},
    rows("""
    FREQUENCIES | pairs | plan | of a head
    POSITION | tokens | step | of the token
    """),
)

ROTATE = Table(
    "rotate",
    "The parameters `a` of rotate().",
    {KERNELS: ("a",)},
    rows("""
    R_FROM | element | plan | first head
    R_HEADS | heads | plan | to turn
    R_PAIRS | pairs | plan | of a head
    R_STEP | elements | plan | from pair to pair
    R_GAP | elements | plan | inside a pair
    """),
)

NARROW = Table(
    "narrow",
    "The parameters `a` of narrow().",
    {KERNELS: ("a",)},
    rows("""
    NARROW_FROM | element | plan | first of them
    NARROW_COUNT | values | plan | to be made int16
    """),
)

ADD = Table(
    "add",
    "The parameters `a` of add().",
    {KERNELS: ("a",)},
    rows("""
    ADD_COUNT | values | plan | of each vector
    ADD_X | element | plan | the one that the other is added to
    ADD_Y | element | plan | the other
    """),
)

STEP = Table(
    "step",
    "A step of run(): 32-bit words. A program is steps and a word 0; the model has one a layer.",
    {PROGRAMS: ("words",)},
    rows("""
    STEP_CALL | address | programs | of a kernel's code
    STEP_R0 | number | programs | the first argument, of which the first two are addresses
    STEP_R1 | number | programs | the second
    STEP_R2 | number | programs | the third, 0 where there is none
    STEP_R3 | number | programs | the fourth
    """),
    names_end="STEP_WORDS",
)

PICK = Table(
    "pick",
    "The parameters `a` of argmax(), softmax() and pick().",
    {KERNELS: ("a",), SAMPLING: ("a",), SAVED: ("parameters", "*.parameters")},
    rows("""
    VOCAB | tokens | model | there are
    LOGITS | element | model | the first one
    HEAT | mantissa | sampling | 15 bits, of log2(e) / temperature
    HEAT_EXPONENT | exponent | sampling | of that
    BITS | bits | sampling | of the largest weight
    SUM | weight | softmax() | of all
    TOP_P | 2^-15 | sampling | share of the sum that is drawn from; 2^15 and more: all
    STATE | state | pick() | of the xorshift32 generator, not 0
    """),
)

TEXT = Table(
    "encoding",
    "The parameters `a` of search(), which finds a token by its text. Offsets are bytes of the image.",
    {ENCODING: ("a",)},
    rows("""
    E_ORDER | offset | encode | of uint16[E_TOKENS], tokens by their text
    E_RANKS | offset | encode | of uint16[E_TOKENS]
    E_OFFSETS | offset | encode | of uint32[E_TOKENS + 1], where texts begin and end
    E_TEXT | offset | encode | of all texts
    E_TOKENS | tokens | encode | there are
    E_JOIN | 0 or 1 | encode | sought is the text of two tokens, not a piece of one
    E_LEFT | place | encode | of the two tokens in the order
    E_RIGHT | place | encode | of the two tokens in the order
    E_RANK | rank | search() | of the token found
    E_AT | byte | encode, plain | of what is sought, in the text
    E_SIZE | bytes | encode, plain | of it
    E_NEXT | byte | plain | of the rest of what is sought
    E_MORE | bytes | encode, plain | of it
    E_LOW | place | plain | what is sought stands there or behind
    E_HIGH | place | plain | what is sought stands there or before
    E_STEP | places | plain | to the token that is compared next; 0: halfway
    E_SAME | 0 or 1 | plain | the token at E_HIGH is what is sought
    E_HERE | byte | plain | of what is left of the token that is compared
    E_LONG | bytes | plain | of it
    """),
    names_end="E_FIELDS",
)

TABLES = (EMBED, VECTOR, NORM, SWIGLU, MATVEC, ROPE, ROTATE, NARROW, ADD, STEP, PICK, TEXT)
