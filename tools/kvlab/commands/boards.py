"""`kvlab boards`: the boards there are, and every fact of one with its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kvlab import boards, facts, output
from kvlab.boards import Board


@click.command(epilog="\b\nExamples:\n  kvlab boards \n  kvlab boards rp2040 --json out/rp2040.json")
@click.argument("name", required=False)
@output.json_option
def command(name: str | None, json_path: Path | None) -> None:
    """List the boards; with NAME every fact of that one, and where it comes from."""
    known = [boards.load(each) for each in ([name] if name else boards.names())]
    if name:
        show_facts(known[0])
    else:
        show(known)
    if json_path is not None:
        output.write_json(json_path, {"boards": [figures(board) for board in known]})


def show(known: list[Board]) -> None:
    output.table(
        "",
        [
            (
                board.name,
                board.title,
                f"{board.machine.clock_hz / 1e6:g} MHz",
                f"{board.machine.heap_bytes:,}",
                f"{board.machine.largest_object_bytes:,}",
                f"{board.machine.flash_bytes:,}",
            )
            for board in known
        ],
        ("board", "", "clock", "heap\n(bytes)", "largest\nobject\n(bytes)", "storage\n(bytes)"),
    )


def show_facts(board: Board) -> None:
    known = all_facts(board)
    output.table(
        f"{board.title} ({board.name}), firmware {board.firmware}",
        [(key, facts.shown(key, fact.value), fact.kind) for key, fact in known.items()],
    )
    for key, fact in known.items():
        click.echo(f"- {facts.cited(key, fact)}")


def all_facts(board: Board) -> dict[str, Any]:
    """The facts of the board and of its memories by name."""
    return {
        **board.facts,
        **{f"{memory.name}.{key}": fact for memory in board.memories for key, fact in memory.facts().items()},
    }


def figures(board: Board) -> dict[str, Any]:
    return {
        **{key: getattr(board, key) for key in ("name", "title", "chip", "port", "firmware")},
        "heap_bytes": board.machine.heap_bytes,
        "largest_object_bytes": board.machine.largest_object_bytes,
        "areas_bytes": list(board.areas_bytes),
        "storage_bytes": board.machine.flash_bytes,
        "facts": {key: vars(fact) for key, fact in all_facts(board).items()},
    }
