"""The bus's two tasks under MicroPython's asyncio: nothing is lost, half done or waited for in vain."""

from __future__ import annotations

import json
from typing import Any

from known_cases import DEVICE


def part(upy: Any, name: str) -> Any:
    return json.loads(upy.run(DEVICE / "bus_tasks.py", [name], timeout=30))


def test_what_writers_push_is_done(upy: Any) -> None:
    """20 random lists through a queue of 3 descriptors, in bursts of 4 bytes."""
    assert part(upy, "whole") == 20 * [["cancelled", True, ["written"], True]]


def test_before_serve_and_beside_it(upy: Any) -> None:
    assert part(upy, "alone") == [0, ["written"], "StepError: serve() runs already", "cancelled", True]


def test_serve_is_cancelled_in_every_round(upy: Any) -> None:
    rounds, found = part(upy, "cancelled")
    assert rounds > 100
    assert found == [
        ["cancelled", False, told, True, ["written"]]
        for told in ("not begun", "serve() has ended: CancelledError", "written")
    ]


def test_a_writer_is_cancelled_in_every_round(upy: Any) -> None:
    assert part(upy, "writers_cancelled") == [["cancelled", True, "written"]]


def test_an_error_in_every_burst(upy: Any) -> None:
    """Who serves has the error and who waits is told; a spare backend does the chain anew: none is lost."""
    told = "serve() has ended: [Errno 5] EIO"
    assert part(upy, "errors") == [
        ["OSError: [Errno 5] EIO", [told], 0, 1, None],
        ["cancelled", ["written"], 0, 1, True],
    ]


def test_blocks_of_tokens_to_records(upy: Any) -> None:
    """100 tokens in blocks of 16, five layers: a chain a layer, of 10 runs; of 20 where the ring of 49 slots
    behind 4 sinks ends within the block, as it does once."""
    ends, blocks, chains, descriptors, runs = part(upy, "kv_writer")
    assert ends == ["cancelled", "StepError: serve() has ended: CancelledError"]
    assert blocks == [[16 * i, 16, i % 2, True] for i in range(6)]
    assert (chains, descriptors, runs) == (6 * 5, 350, 350)
    assert sum(16 * i < 4 + 49 < 16 * (i + 1) for i in range(6)) * 50 + 6 * 50 == descriptors


def test_no_byte_beyond_what_rounds_cost(upy: Any) -> None:
    a_round, beyond, rounds = part(upy, "allocation")
    assert a_round > 0, "the counter sees nothing"
    assert rounds > 100
    assert beyond == 0
