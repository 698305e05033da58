"""Arrays of the staggered schedule of the bus."""

from __future__ import annotations

from field_tables.table import Table, rows

_WHERE = dict.fromkeys(("bus/schedule.py", "bus/staggering/*.py"), ("s", "self._s", "t"))

SCHEDULE = Table(
    "schedule",
    "`_s` of a Schedule: whose the bus is, and until when. Times are ticks of period 2^30.",
    _WHERE,
    rows("""
    SLOT_NOW | kind | enter | of the slot that runs; IO: a gap
    BEGAN | time | enter | of that slot
    BASE | time | enter, may | from which on time is promised: in a slot its planned end
    PROMISED | us | may | from there on
    WAITING | tasks | may | that have been promised a part of it
    BUSY | time | may | at which the burst that runs is over
    RUNS | task | may | whose burst that is, counted from 1; 0: nobody's
    WANTED | flag | enter | whether the model waits for the gap to end
    TO_COME | kind | enter | of the slot that it waits with
    BEHIND | us | may | promised behind that slot
    LONGEST | us | enter | of the slots' planned times
    TASKS | tasks | add_task | there are
    TAKEN | bytes | add_task | of all their bursts
    BURSTS_US | us | add_task | of all their bursts
    BYTES*4 | bytes | made | of the longest slot of each kind; of IO of a burst of all tasks
    US*4 | us | enter | of the longest slot of each kind, planned or seen
    """),
    names_end="PLACES",
)

SCHEDULE_TASK = Table(
    "schedule task",
    "Of each task so many numbers, behind those of the schedule.",
    _WHERE,
    rows("""
    BURST | bytes | add_task | most that it asks for at a time
    BURST_US | us | add_task | that this takes
    WAITS | mark | enter, may | 0, 1: for its time in a gap, 2: for the slot that is to come
    OFFSET | us | may | of its time from BASE on, or from the end of the slot to come
    SERVED | flag | enter, may | whether it had a burst since the model waits
    """),
    names_end="TASK_WORDS",
)

TABLES = (SCHEDULE, SCHEDULE_TASK)
