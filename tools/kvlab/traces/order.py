"""Requests in the order of their arrival, of one trace or of several."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from .request import Request, Trace

_ARRIVAL = attrgetter("arrival_s")


def in_order(trace: Trace) -> Iterator[Request]:
    """By arrival, equal ones as in the file. A format that is not ordered is read whole and sorted."""
    return iter(trace) if trace.ordered else iter(sorted(trace, key=_ARRIVAL))


def together(traces: Sequence[Trace]) -> Iterator[Request]:
    """All of them by arrival (equal ones in the order of `traces`), times counted from a common start.

    Traces in UTC keep their distance to each other; any other one starts when the first of all does.
    """
    streams = []
    firsts = []
    for trace in traces:
        stream = in_order(trace)
        first = next(stream)  # a trace that holds nothing is BadInput
        streams.append(chain([first], stream))
        firsts.append(first.arrival_s)
    utc = min((at for at, trace in zip(firsts, traces, strict=True) if trace.utc), default=0.0)
    starts = [utc if trace.utc else at for at, trace in zip(firsts, traces, strict=True)]
    return heapq.merge(
        *(_since(start, stream) for start, stream in zip(starts, streams, strict=True)), key=_ARRIVAL
    )


def _since(start: float, stream: Iterator[Request]) -> Iterator[Request]:
    for request in stream:
        yield replace(request, arrival_s=request.arrival_s - start)
