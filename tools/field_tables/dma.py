"""Arrays of the bus's DMA queue."""

from __future__ import annotations

from field_tables.table import Table, rows

_WORDS = {"bus/*.py": ("words", "*.words")}
_PLAIN = {f"bus/{name}.py": ("words",) for name in ("plain", "make_queue")}  # one array, no pointers into it

DMA = Table(
    "dma",
    "`words` of a Queue: its state, then both banks of descriptors, then the regions.",
    _WORDS,
    rows("""
    ROOM | descriptors | Queue | of a bank, beside the four zeros that end a chain
    FILLED | descriptors | push, close | in the bank that is filled
    BANK | word | close | of the bank that is filled: its first
    OTHER | word | close | of the bank that runs or rests: its first
    RUN_READ | byte | push | where the last run ends
    RUN_WRITE | byte | push | the same, where it goes
    RUN_BYTES | bytes | push, close | its length; 0: none to join with
    RUN_FROM | word | push, push_rows | the region it is read from
    RUN_TO | word | push, push_rows | the region it goes to
    SPARE | transfers | Queue | that a join may cost more than two descriptors take
    JOINED | pushes | push | joined, modulo 2^32
    REGIONS | word | Queue | of the first region
    REGIONS_END | word | Queue | behind the last one
    CONTROL*3 | word | Queue | CTRL of transfers of 1, 2 and 4 bytes
    """),
    names_end="BANKS",
)

REGION = Table(
    "dma region",
    "A region: a buffer, of which nothing reaches into another.",
    {"bus/*.py": ("ptr32(r)", "ptr32(w)"), **_PLAIN},
    rows("""
    START | byte | Queue | of the queue's addresses: its first
    END | byte | Queue | behind its last
    BASE | word | Queue | what makes one of these the low word of a machine's address
    WRITABLE | flag | Queue | whether anything may be copied into it
    """),
    names_end="REGION_WORDS",
)

DESCRIPTOR = Table(
    "descriptor",
    "A transfer, as the chip's channels have it in alias 0 of their registers.",
    {"bus/*.py": ("ptr32(p)",), **_PLAIN, "bus/stream/dma.py": ("block",)},
    rows("""
    READ_ADDR | address | push | first byte
    WRITE_ADDR | address | push | where it goes
    TRANS_COUNT | transfers | push | of the size that CTRL tells
    CTRL | bits | push | of the channel; 0 starts none
    """),
    names_end="DESCRIPTOR_WORDS",
)

STRIDE = Table(
    "stride",
    "`how` of a Queue: the rows of push_rows(), and what shape() sets.",
    {"bus/*.py": ("how", "*.how")},
    rows("""
    ROW_BYTES | bytes | shape | of a row
    READ_STEP | bytes | shape | from row to row
    WRITE_STEP | bytes | shape | the same, where they go
    """),
    names_end="HOW_WORDS",
)

PLANES = Table(
    "planes",
    "`plan` of a Rows: behind it of each layer the word of its first group, and one more; then the groups.",
    {"bus/*.py": ("plan", "*.plan")},
    rows("""
    ALL_LAYERS | layers | Rows | of the cache
    ALL_SINKS | slots | Rows | of the cache, which stay
    RING | slots | Rows | of the cache behind the sinks
    TOKENS | slots | Rows | of a record
    PACKED | flag | Rows | whether there is a record; else the other side lies as the cache does
    BACK | flag | Rows | whether it is copied into the cache
    AT_SLOT | slot | move | of the record, that the first token goes to
    PLAN_READ | byte | Rows, move | where the side that is read begins
    PLAN_WRITE | byte | Rows, move | where the other one does
    """),
    names_end="GROUPS",
)

GROUP = Table(
    "plane",
    "Planes of one kind of a layer: codes of K, scales of K, codes of V, scales of V.",
    {"bus/*.py": ("ptr32(e)",), "bus/plain.py": ("plan",)},
    rows("""
    PLANE_READ | byte | Rows | slot 0 of the first plane, from where its side begins
    PLANE_WRITE | byte | Rows | the same, where it goes
    SLOT_BYTES | bytes | Rows | of a slot
    PLANES | planes | Rows | how many
    READ_GAP | bytes | Rows | from plane to plane
    WRITE_GAP | bytes | Rows | the same
    """),
    names_end="GROUP_WORDS",
)

PROGRESS = Table(
    "copying",
    "Where a plain copy of a chain is.",
    {"bus/*.py": ("at", "*.at")},
    rows("""
    RECORD | word | begin, copy | of the descriptor that is copied
    COPIED | bytes | copy | of it
    """),
    names_end="AT_WORDS",
)

TABLES = (DMA, REGION, DESCRIPTOR, STRIDE, PLANES, GROUP, PROGRESS)
