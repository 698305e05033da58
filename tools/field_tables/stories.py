"""Parameters of the stories app's kernels (boards/apps/stories): an array('i') a call, made by plan.py."""

from __future__ import annotations

from field_tables.table import Table, rows

EMBED = Table(
    "embed",
    "The parameters `a` of embed(). Destinations are elements of the workspace, offsets bytes of the image.",
    {},
    rows("""
    ROW_COLUMNS | values | plan | of a row of the embedding
    ROW_CODES | bytes | plan | of its codes, padded
    ROW_TO | element | plan | where it goes
    ROW_AT | offset | step | of the token's row
    ROW_EXPONENT | exponent | plan | of the weights, + POINT
    """),
)

_VECTOR = rows("""
    N | values | plan | of the vector
    PADDED | values | plan | the same, filled up to whole groups
    TO | element | plan | what quant() reads
    ACT | element | plan | where quant() puts the activation vector
    ROOT | root | norm() | what the vector is to be divided by; 2^14 is 1
    EXPONENT | exponent | kernels | of the vector at TO
""")

NORM = Table(
    "norm",
    "The parameters `a` of norm(), and of quant() and widen(), which take the first six.",
    {},
    _VECTOR
    + rows("""
    WEIGHTS | offset | plan | of int16[N]
    FROM | element | plan | the vector to be normalised
    WEIGHTS_EXPONENT | exponent | plan | of the weights
    EPS | 2^-32 | plan | added to the mean square
    """),
)

SWIGLU = Table(
    "swiglu",
    "The parameters `a` of swiglu(), of which quant() takes the first six.",
    {},
    _VECTOR
    + rows("""
    GATE | element | plan | overwritten
    UP | element | plan | multiplied with it
    """),
)

MATVEC = Table(
    "matvec",
    "The parameters `a` of matvec().",
    {},
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
    {},
    rows("""
    FREQUENCIES | pairs | plan | of a head
    POSITION | tokens | step | of the token
    """),
)

ROTATE = Table(
    "rotate",
    "The parameters `a` of rotate().",
    {},
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
    {},
    rows("""
    NARROW_FROM | element | plan | first of them
    NARROW_COUNT | values | plan | to be made int16
    """),
)

ADD = Table(
    "add",
    "The parameters `a` of add().",
    {},
    rows("""
    ADD_COUNT | values | plan | of each vector
    ADD_X | element | plan | the one that the other is added to
    ADD_Y | element | plan | the other
    """),
)

PICK = Table(
    "pick",
    "The parameters `a` of argmax(), softmax() and pick().",
    {},
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

TABLES = (EMBED, NORM, SWIGLU, MATVEC, ROPE, ROTATE, NARROW, ADD, PICK)
