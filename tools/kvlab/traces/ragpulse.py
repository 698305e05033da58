"""RAGPulse: a folder with 0_trace.jsonl and a file for each kind of component, of which prompts are composed.

A line of the trace: `{"timestamp": "seconds", "input_length", "output_length", "hash_ids": {kind: [ids]},
"session_id"}`. The components' files have their token lengths; they are read first and held (27,000 numbers).
Blocks are the components in the order of the prompt, each of its own size; what a template puts between them
is in none. Not in order of time: two weeks follow each other, each from 0 on. The task is what the prompt is
made of: `web`, `passages` or `plain`, with `+history` where there is more than one piece of history (every
prompt has one).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from commandline import files

from .lines import Record, Source
from .request import Blocks, Request, Trace

TRACE = "0_trace.jsonl"
# Kind in "hash_ids", in the order of a prompt -> its file and the name of its id there.
COMPONENTS = {
    "sys_prompt": ("1_sys_prompt.jsonl", "sys_prompt_id"),
    "passages_ids": ("2_passages.jsonl", "passage_id"),
    "history": ("3_history.jsonl", "history_id"),
    "web_search": ("5_web_search.jsonl", "web_search_id"),
    "user_input": ("4_user_input.jsonl", "user_input_id"),
}


class RagPulse(Trace):
    kind = "ragpulse"
    ordered = False

    @property
    def name(self) -> str:
        return Path(self.path).absolute().parent.name

    def requests(self) -> Iterator[Request]:
        option = self.source.option
        lengths = {kind: self._lengths(kind, option) for kind in COMPONENTS}
        for line in self.source.lines():
            record = line.record()
            parts = record.inner("hash_ids")
            found = {kind: parts.ids(kind) for kind in COMPONENTS}
            sizes = [_length(parts, kind, each, lengths[kind]) for kind, ids in found.items() for each in ids]
            yield Request(
                record.seconds("timestamp"),
                record.count("input_length"),
                record.count("output_length"),
                _task(found),
                record.text("session_id"),
                Blocks.of([each for ids in found.values() for each in ids]),
                sizes=tuple(sizes),
            )

    def _lengths(self, kind: str, option: str) -> dict[int, int]:
        """Tokens of each component of that kind."""
        name, key = COMPONENTS[kind]
        path = files.existing_file(Path(self.path).with_name(name), option)
        found: dict[int, int] = {}
        for line in Source(path, option).lines():
            record = line.record()
            each = record.count(key)
            if each in found:
                raise record.fault(key, "an id that no line above has")
            found[each] = record.count("token_length")
        return found


def _length(parts: Record, kind: str, each: int, known: dict[int, int]) -> int:
    if each not in known:
        raise parts.line.fault(f"{kind} {each} is unknown; expected an id of {COMPONENTS[kind][0]}")
    return known[each]


def _task(found: dict[str, list[int]]) -> str:
    task = "web" if found["web_search"] else "passages" if found["passages_ids"] else "plain"
    return task + "+history" if len(found["history"]) > 1 else task
