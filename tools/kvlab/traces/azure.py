"""Azure LLM inference traces: `TIMESTAMP,ContextTokens,GeneratedTokens`, one request a line, in order.

Says nothing of tasks, sessions or content: the task is the file's name without its ending.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone

from .lines import MOST_TOKENS, Line
from .request import Request, Trace

HEADER = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:\+00:00|Z)?", re.ASCII)


class Azure(Trace):
    kind = "azure"
    ordered = True
    utc = True

    def requests(self) -> Iterator[Request]:
        lines = self.source.lines()
        header = next(lines, None)
        if header is None:
            return
        if tuple(header.text.split(",")) != HEADER:
            raise header.fault(f'is "{header.text[:60]}"; expected the header {",".join(HEADER)}')
        before = 0.0
        for line in lines:
            cells = line.text.split(",")
            if len(cells) != len(HEADER):
                raise line.fault(f"has {len(cells)} columns; expected 3: {', '.join(HEADER)}")
            arrival = _seconds(line, cells[0])
            if arrival < before:
                raise line.fault(
                    f"{HEADER[0]} {cells[0]} is before that of the line above; expected order of time"
                )
            before = arrival
            prompt, output = _count(line, HEADER[1], cells[1]), _count(line, HEADER[2], cells[2])
            yield Request(arrival, prompt, output, self.path.stem)


def _seconds(line: Line, cell: str) -> float:
    """Since 1970, in UTC. The files have seven decimals, more than datetime reads."""
    found = _TIME.fullmatch(cell)
    if found:
        try:
            whole = datetime(*map(int, found.groups()[:6]), tzinfo=timezone.utc)  # type: ignore[misc,arg-type]
            return whole.timestamp() + float(found[7] or 0)
        except ValueError:  # the 31st of a short month
            pass
    raise line.fault(f'{HEADER[0]} is "{cell[:40]}"; expected a time such as 2023-11-16 18:17:03.9799600')


def _count(line: Line, column: str, cell: str) -> int:
    digits = cell.strip()
    if digits.isascii() and digits.isdigit() and len(digits) <= 10 and int(digits) <= MOST_TOKENS:
        return int(digits)
    raise line.fault(f'{column} is "{cell[:40]}"; expected a whole number from 0 to {MOST_TOKENS}')
