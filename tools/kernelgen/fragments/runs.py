"""Runs of consecutive slots: `run` and `runs_left` of the frame are where and how many. r3 a."""

from __future__ import annotations

from field_tables.kernels import QUERY, RUN
from kernelgen.language import *


def begin_runs(a: Array, sp: Frame) -> None:
    """r4 is used."""
    put(sp.runs_left, a.RUNS, by=r4)
    point(r4, a.RUN)
    str_(r4, sp.run)


def query_of_run(a: Array, sp: Frame) -> None:
    """r3 a, r6 the buffer, r7 the run, r4 the words of the query that is for it; r5 is used."""
    ldr(r3, sp.a)
    ldr(r6, sp.buffer)
    ldr(r7, sp.run)
    locate(r4, a.QUERY, r6)
    add(r4, Array(r4, QUERY).QUERY_WORDS.offset)
    ldr(r5, Array(r7, RUN).RUN_SINKS)
    with when(ne(r5, 0)):
        plus(r4, a.SINK_QUERY, by=r5)


def results_of_run(result: Register, end: Register, sp: Frame) -> None:
    """The end of the words that are made of the run at r7, and on to the next one; r5 is used."""
    run = Array(r7, RUN)
    ldr(r5, run.RUN_COUNT)
    index(r5, 2, result)
    mov(end, r5)
    add(r7, run.RUN_WORDS.offset)
    str_(r7, sp.run)
