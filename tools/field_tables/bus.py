"""Arrays of the bus: what its tracker knows."""

from __future__ import annotations

from field_tables.table import Table, rows

_ARRAYS = {
    "bus/tracking/*.py": ("bus", "*._bus"),
    "bus/tracker.py": ("bus",),
}

BUS = Table(
    "bus",
    "`bus` of the tracker; LOW and HIGH of an amount: its low 30 bits, and what is above. An amount of "
    "micro-bytes is bytes * 10^6, as bytes/s * us is.",
    _ARRAYS,
    rows("""
    CLOCK | tick | step | of the last call
    STARTED | flag | step | whether there was one
    INTO | us | step | gone of the running slice
    SLICE_US | us | setup | of a slice
    RUNNING | slice | step | that counts
    MOST | bytes | setup | that a slice may count
    TASKS | tasks | task | there are
    LIMIT | bytes/s | setup | that may be admitted in all
    CARRY | micro-bytes | pour | fewer than the tasks that they are to be split among
    MISSING_LOW | micro-bytes | take | that the last task refused does not have
    MISSING_HIGH | micro-bytes | take | the same
    TOTAL_LOW*4 | bytes | take | by kind
    TOTAL_HIGH*4 | bytes | take | by kind
    SLICES*17 | bytes | take, step | of the running slice and the 16 before it, in a ring
    """),
    names_end="RECORDS",
)

BUS_TASK = Table(
    "bus task",
    "Of each task so many words behind the tracker's own.",
    {"bus/tracking/*.py": ("bus", "*._bus", "own"), "bus/tracker.py": ("bus",)},
    rows("""
    KIND | kind | task | of its traffic
    GUARANTEE | bytes/s | task | that it gets whatever others do
    CAP | bytes/s | yields | that it gets at most now
    OWN_LIMIT | bytes/s | task | that it gets at most
    OPTIONAL | flag | task | whether it yields where a tier is slow
    BURST_LOW | micro-bytes | task | that it may take at once
    BURST_HIGH | micro-bytes | task | the same
    LEVEL_LOW | micro-bytes | pour, take | taken of the burst, owed beyond it; 0: the bucket is full
    LEVEL_HIGH | micro-bytes | pour, take | the same
    ROOM_LOW | micro-bytes | pour | that it can take of the pool
    ROOM_HIGH | micro-bytes | pour | the same
    ABOVE | bytes/s | wait | 1 + the most that it may take above its guarantee; 0: nothing, or it is counted
    """),
    names_end="RECORD_WORDS",
)

RATES = Table(
    "rates",
    "`rates` of Rates.",
    {"bus/tracking/*.py": ("rates",), "bus/rates.py": ("rates", "*._rates")},
    rows("""
    SLOW_TIERS | tiers | note | that are slow
    """),
    names_end="TIER_RECORDS",
)

TIER = Table(
    "tier",
    "Of each tier so many words behind those; a LOW and HIGH as of the tracker.",
    {"bus/tracking/*.py": ("rates", "own"), "bus/rates.py": ("rates", "*._rates")},
    rows("""
    BELOW | bytes/s | tier | of its average, where it becomes slow
    FROM | bytes/s | tier | of its average, where it no longer is
    SLOW | flag | note | whether it is
    AVERAGE | bytes/s | note | 1 + the moving average; 0: there is none
    EIGHTHS | bytes/s | note | of one, that are left over by the average
    TIER_LOW | bytes | note | of all transfers
    TIER_HIGH | bytes | note | the same
    TIER_US_LOW | us | note | of all transfers
    TIER_US_HIGH | us | note | the same
    """),
    names_end="TIER_WORDS",
)

TABLES = (BUS, BUS_TASK, RATES, TIER)
