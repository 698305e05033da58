"""What goes over the memory bus, what waits for it, and what pays: docs/BUS.md."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kvlab.docs.registry import Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import INSTRUCTIONS

BOARD, MODEL = "rp2040", "stories"
LARGE_BOARD, LARGE = "esp32s3_psram", "qwen2.5-1.5b"
TOKENS, LARGE_TOKENS, PROMPT = 256, 2048, 8
ACCESS = (
    *("bus_access", "bus_access_large", "bus_words", "bus_words_large"),
    *("bus_boards", "bus_shares", "bus_memory"),
)
COSTS = "tools/kvlab/bus/costs.json"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rules = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rules, *rows))


def _counted() -> Any:
    """Of the shipped model: rows by board, and shares."""
    from kvlab import boards, paths
    from kvlab.bench import access as counting
    from kvlab.bus import access

    found = counting.count(paths.SHIPPED.read_bytes(), [TOKENS - 1], PROMPT)
    token = found.tokens[TOKENS - 1]
    rows = {
        name: access.rows(token, found.prompt, PROMPT, boards.load(name).memories)
        for name in boards.real_names()
    }
    return rows, access.shares(token)


def _told() -> Any:
    """The same of a large model, by its shape."""
    from kvlab import boards
    from kvlab.bus import access, formula
    from kvlab.plan import models

    shape = models.find(LARGE)
    token = formula.token(shape, LARGE_TOKENS)
    prompt = formula.prompt(shape, PROMPT, LARGE_TOKENS)
    return access.rows(token, prompt, PROMPT, boards.load(LARGE_BOARD).memories), access.shares(token)


def _access(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab.bus import access

    by_board, shares = _counted()
    rows = by_board[BOARD]
    large_rows, large = _told()
    both = ((f"{MODEL}, a Pico", shares), (f"{LARGE}, by its shape", large))
    kinds = [
        (title, *(f"{100 * found[kind]:.2f} %" for kind in access.KINDS))
        for title, found in (("the document", access.DOCUMENT_SHARES), *both)
    ]
    return {
        "bus_access": _bytes(rows),
        "bus_access_large": _bytes(large_rows),
        "bus_words": _words(rows),
        "bus_words_large": _words(large_rows),
        "bus_boards": _boards(by_board),
        "bus_memory": _memory(rows),
        "bus_shares": table(("", *(access.TITLES[kind] for kind in access.KINDS)), kinds),
    }


def _bytes(rows: Iterable[Any]) -> str:
    from kvlab.bus import access

    header = ("", "KV read", "KV write", "weights", "vectors in", "vectors out", "memory's time", "latency")
    return table(
        header,
        [
            (
                access.STEPS[row.step],
                *(f"{n:,}" for n in (row.bytes.kv_read, row.bytes.kv_write, row.bytes.weights)),
                *(f"{n:,}" for n in (row.bytes.io_read, row.bytes.io_write)),
                _time(row.bus_us),
                "-" if row.latency_ns is None else f"{row.latency_ns:,} ns",
            )
            for row in rows
        ],
    )


def _boards(by_board: Mapping[str, Any]) -> str:
    """Of each where keys, values and weights lie, and what memory alone takes of a token."""
    from kvlab import boards
    from kvlab.facts import memory_of, shown

    def said(memory: Any) -> tuple[str, str]:
        latency = memory.latency_ns
        rate = shown("_bytes_per_s", memory.read_bytes_per_s.value)
        return f"{memory.name}, {rate}", "-" if latency is None else f"{latency.value:,} ns"

    found = []
    for name, rows in by_board.items():
        board = boards.load(name)
        token = next(row for row in rows if row.step == "token")
        main, weights = memory_of(board.memories, "main"), memory_of(board.memories, "weights", "main")
        found.append((board.title, *said(main), *said(weights), _time(token.bus_us)))
    header = ("", "keys, values, vectors", "latency", "weights", "latency", "a token, memory alone")
    return table(header, found)


def _memory(rows: Iterable[Any]) -> str:
    """Of a Pico's token what its bytes alone take."""
    from kvlab import boards
    from kvlab.cost import model
    from kvlab.plan import models

    told = model.pace(boards.load(BOARD), models.find(MODEL), "int8").tokens_per_s
    assert told is not None
    token = next(row for row in rows if row.step == "token")
    return f"{token.bus_us / 1e3:.0f} of {1e3 / told:.0f} ms"


def _time(us: float) -> str:
    for most, unit, size in ((10_000, "µs", 1), (10_000_000, "ms", 1000)):
        if us < most:
            return f"{us / size:,.0f} {unit}"
    return f"{us / 1e6:,.0f} s"


def _words(rows: Iterable[Any]) -> str:
    """Of each step the word for what is counted, and the document's in brackets where that is another."""
    from kvlab.bus import access

    def said(row: Any, word: str) -> str:
        here, there = row.words.get(word), row.document[word]
        if here is None:
            return f"- ({there})"
        return here if here == there else f"{here} ({there})"

    return table(
        ("", *access.WORDS),
        [
            (access.STEPS[row.step], *(said(row, word) for word in access.WORDS))
            for row in rows
            if row.document
        ],
    )


def _calls(_wanted: Collection[str]) -> Mapping[str, str | bytes]:
    from kvlab import output
    from kvlab.bench import bus, targets

    targets.prepare(targets.QEMU)
    figures = bus.costs(targets.QEMU, bus.CALLS, lambda _steps: None)
    rows = [(bus.TITLES[name], f"{cost:,.0f}") for name, cost in figures["calls"].items()]
    told = {
        "what": "Instructions of a call on the emulated Cortex-M3: kvlab bench bus --target qemu",
        "calls": {name: round(cost) for name, cost in figures["calls"].items()},
    }
    return {"bus_calls": table(("", "instructions"), rows), COSTS: output.as_json(told)}


def _pays(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab import boards
    from kvlab.bus import pays
    from kvlab.plan import models

    shape = models.find(MODEL)
    rows = []
    for name in boards.real_names():
        ways = pays.pays(boards.load(name), shape)
        cells = ["-" if (x := ways[way].tokens_per_s) is None else f"{x:.1f}" for way in pays.WAYS]
        rows.append((boards.load(name).title, *cells))
    return {"bus_pays": table(("", *pays.WAYS), rows)}


PRODUCERS = (
    Producer(
        "bus_bytes",
        "kvlab bus",
        Cost.CHEAP,
        named(*ACCESS),
        _access,
        group="bus",
    ),
    Producer(
        "bus_costs",
        "kvlab bench bus --target qemu",
        Cost.MINUTES,
        named("bus_calls", COSTS, tolerance=INSTRUCTIONS),
        _calls,
        needs_firmware,
        group="bus",
    ),
    Producer("bus_pays", "kvlab bus", Cost.CHEAP, named("bus_pays"), _pays, group="bus"),
)
