"""Which format a file has: by what its first line is, never by its name."""

from __future__ import annotations

import os
from pathlib import Path

from commandline import files
from commandline.errors import BadInput

from . import ragpulse
from .azure import HEADER, Azure
from .lines import Source
from .mooncake import Mooncake
from .ragpulse import RagPulse
from .request import Trace
from .weka import Weka


def open_trace(path: str | Path, option: str = "--trace") -> Trace:
    """The reader for that file or folder; BadInput names `option`, and the formats when it has none of them.

    RAGPulse may be named by its folder or by the 0_trace.jsonl in it.
    """
    if os.path.isdir(path):
        inside = Path(path) / ragpulse.TRACE
        if not os.path.isfile(inside):
            raise BadInput(
                f"{option} {path}: is a folder without {ragpulse.TRACE}; name a file, or a RAGPulse folder"
            )
        path = inside
    found = files.existing_file(path, option)
    source = Source(found, option)
    first = next(source.lines(), None)
    if first is None:
        raise source.fault(None, "holds no requests; name a trace that does")
    text = first.text
    if text.startswith("{"):
        fields = first.record().fields
        if "reqs" in fields:
            return Weka(found, option)
        if isinstance(fields.get("hash_ids"), dict):
            return RagPulse(found, option)
        if "input_length" in fields or "hash_ids" in fields:
            return Mooncake(found, option)
    elif text.split(",")[0] == HEADER[0]:
        return Azure(found, option)
    raise first.fault(
        f'is "{text[:60]}"; expected the header {",".join(HEADER)} (Azure), or a JSON object with "hash_ids"'
        ' (Mooncake, RAGPulse) or "reqs" (WEKA compact)'
    )
