"""Coding-agent sessions of WEKA's kv-cache-tester, in the compact packing: one conversation a line.

`{id, models, block_size, tool_tokens, system_tokens, reqs}`; a request is `{t, in, out, api, think, ty, stop,
keep, add}`: its blocks are the first `keep` of the request before it and the runs `[first id, count]` of
`add`. An entry `{ty: "subagent", t, agent_id, reqs}` is a sub-agent: a history of its own, its times counted
from its own `t`. Times count from the start of the conversation, and nothing says when that was: the file is
not in order of time, and in_order() lets all conversations begin at 0.

Ids are local to a conversation; here they are made different between conversations. The task is the (first)
model of the conversation, or the sub-agent's type; the session is the conversation's id, with a sub-agent's
after a slash. A conversation is held whole; its requests come in order of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from .lines import Line, Record
from .request import Blocks, Request, Trace

_Runs = tuple[tuple[int, int], ...]
_LOCAL_BITS = 32  # of a block's id, below the number of its conversation


class Weka(Trace):
    kind = "weka"
    ordered = False

    def requests(self) -> Iterator[Request]:
        for number, line in enumerate(self.source.lines()):
            yield from _conversation(line, number << _LOCAL_BITS)


def _conversation(line: Line, base: int) -> list[Request]:
    whole = line.record()
    block_tokens = whole.count("block_size", 1)
    session = whole.text("id")
    models = whole.fields.get("models")
    if not isinstance(models, list) or not models or not isinstance(models[0], str):
        raise whole.fault("models", "a list of names")
    found = list(_history(whole, models[0], session, 0.0, base, block_tokens))
    found.sort(key=attrgetter("arrival_s"))  # stable: sub-agents in between
    return found


def _history(
    owner: Record, task: str, session: str, start: float, base: int, block_tokens: int
) -> Iterator[Request]:
    runs: _Runs = ()
    before = 0.0
    for each in owner.inners("reqs"):
        at = each.seconds("t")
        if each.fields.get("ty") == "subagent":
            if owner.inside:
                raise each.fault("ty", "no sub-agent inside a sub-agent")
            agent, kind = each.text("agent_id"), each.text("subagent_type")
            yield from _history(
                each, f"subagent {kind}", f"{session}/{agent}", start + at, base, block_tokens
            )
            continue
        if at < before:
            raise each.fault("t", f"at least the {before} of the request before it")
        before = at
        prompt = each.count("in")
        runs = _kept(each, runs, each.count("keep")) + _added(each, base)
        blocks = Blocks(runs)
        if len(blocks) != prompt // block_tokens:
            raise owner.line.fault(
                f'"{each.inside}": "keep" and "add" make {len(blocks)} blocks; expected'
                f" {prompt // block_tokens} whole ones of {block_tokens} for {prompt} tokens"
            )
        yield Request(start + at, prompt, each.count("out"), task, session, blocks, block_tokens)


def _kept(request: Record, runs: _Runs, keep: int) -> _Runs:
    """The first `keep` blocks of `runs`."""
    kept: list[tuple[int, int]] = []
    left = keep
    for first, count in runs:
        if left <= 0:
            break
        kept.append((first, min(count, left)))
        left -= count
    if left > 0:
        raise request.fault("keep", f"at most the {keep - left} blocks of the request before it")
    return tuple(kept)


def _added(request: Record, base: int) -> _Runs:
    runs = request.fields.get("add")
    if not isinstance(runs, list) or not all(
        isinstance(run, list)
        and len(run) == 2
        and type(run[0]) is type(run[1]) is int
        and 0 <= run[0] < 1 << (_LOCAL_BITS - 1)
        and 1 <= run[1] < 1 << (_LOCAL_BITS - 1)
        for run in runs
    ):
        raise request.fault("add", "a list of [first id, count]")
    return tuple((base + first, count) for first, count in runs)
