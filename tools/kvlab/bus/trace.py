"""Runs as Chrome's trace events, which ui.perfetto.dev and chrome://tracing open: a process a run, a thread
for each kind of the model's transfers and for each other task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from commandline import files
from kvlab.bus.contention import Outcome
from kvlab.bus.kinds import IO, KINDS
from kvlab.bus.wire import PS_PER_US, Span


def events(runs: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """Complete events (ph X), times in microseconds; before each that had to wait, its wait."""
    found: list[dict[str, Any]] = []
    for pid, (name, outcome) in enumerate(runs.items(), 1):
        found.append(_named("process_name", name, pid, 0))
        threads: dict[str, int] = {}
        for span in outcome.spans:
            title = span.agent if span.kind == IO else KINDS[span.kind]
            if title not in threads:
                threads[title] = len(threads) + 1
                found.append(_named("thread_name", title, pid, threads[title]))
            found += _of(span, title, pid, threads[title])
    return found


def _named(what: str, name: str, pid: int, tid: int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _of(span: Span, title: str, pid: int, tid: int) -> Iterator[dict[str, Any]]:
    whose = {"bytes": span.nbytes} if span.layer < 0 else {"bytes": span.nbytes, "layer": span.layer}
    parts = [("transfer", title, span.begin_ps, span.end_ps)]
    if span.begin_ps > span.asked_ps:
        parts.insert(0, ("wait", f"{title} waits", span.asked_ps, span.begin_ps))
    for kind, name, begin, end in parts:
        times = {"ts": begin / PS_PER_US, "dur": (end - begin) / PS_PER_US}
        yield {"ph": "X", "cat": kind, "name": name, "pid": pid, "tid": tid, **times, "args": whose}


def write(path: Path, runs: Mapping[str, Outcome], option: str = "--trace") -> None:
    """Write them as one file. BadInput when it cannot be written."""
    data = {"displayTimeUnit": "ns", "traceEvents": events(runs)}
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, (json.dumps(data, separators=(",", ":")) + "\n").encode(), option)
