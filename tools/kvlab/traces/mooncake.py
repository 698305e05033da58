"""Mooncake traces: `{"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}` a line, in order.

hash_ids name the prompt's blocks of 512 tokens, the last of which may be part full. The task is the file's
name without its ending.
"""

from __future__ import annotations

from collections.abc import Iterator

from .request import Blocks, Request, Trace

BLOCK_TOKENS = 512


class Mooncake(Trace):
    kind = "mooncake"
    ordered = True

    def requests(self) -> Iterator[Request]:
        before = 0.0
        for line in self.source.lines():
            record = line.record()
            arrival = record.seconds("timestamp", 1e-3)
            if arrival < before:
                raise record.fault(
                    "timestamp", f"at least the {before * 1e3:.0f} of the line above: in order of time"
                )
            before = arrival
            prompt, output = record.count("input_length"), record.count("output_length")
            ids = record.ids("hash_ids")
            blocks = -(-prompt // BLOCK_TOKENS)
            if len(ids) != blocks:
                raise line.fault(
                    f'"hash_ids" has {len(ids)} blocks; expected {blocks} of {BLOCK_TOKENS} tokens'
                    f" for the input_length {prompt}"
                )
            yield Request(
                arrival, prompt, output, self.path.stem, blocks=Blocks.of(ids), block_tokens=BLOCK_TOKENS
            )
