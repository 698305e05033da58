"""What a story takes on a user's board, measured there, and beside it what the model says of that board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from commandline.errors import BadInput
from kvlab import boards
from kvlab.bench import targets
from kvlab.bench.targets import Steps
from kvlab.boards import Board
from kvlab.cost import model
from kvlab.deploy import identity
from kvlab.deploy.identity import Identity
from kvlab.deploy.link import BoardError, connected

SCRIPT = "board.py"
FASTEST = ["thumb", "thumb"]  # of an RP2040: what the model counts

# Figure -> what it is called.
MEASURED = {
    "tokens_per_s": "told, tokens/s",
    "first_word_s": "first word of a first start, s",
    "first_word_remembered_s": "first word, kernels remembered, s",
    "prompt_tokens_per_s": "a prompt's tokens/s",
}


@dataclass(frozen=True)
class Asked:
    """Of a measurement: tokens told, the window (None: the app's), the clock (None: as it is)."""

    tokens: int = model.USUAL_STORY
    window: int | None = None
    freq: int | None = None


Run = Callable[[int, int, int], Mapping[str, Any]]  # tokens, prompt, check -> figures of board.py


def measure(port: str | None, board: Board | None, asked: Asked, done: Steps) -> dict[str, Any]:
    """{"measured": ..., "modelled": ..., "notes": ...} of the board on that port, None: on the only one.

    board: whose figures are modelled; None: the board's that answers. BadInput, FellShort.
    """
    found = _prepared(port, asked.freq)

    def run(tokens: int, prompt: int, check: int) -> dict[str, Any]:
        return targets.on_port(port, SCRIPT, [tokens, prompt, check, asked.window or 0], done)

    first, again = run(asked.tokens, model.USUAL_PROMPT, 1), run(1, 0, 0)
    return compared(board or _of(found), found, first, again)


def steps(asked: Asked) -> int:
    """Of the progress bar."""
    return asked.tokens


def compared(
    board: Board | None, found: Identity, first: Mapping[str, Any], again: Mapping[str, Any]
) -> dict[str, Any]:
    """Figures of board.py, of a first start and of one that finds its kernels checked, beside the model's."""
    measured = {
        "tokens_per_s": first["tokens"] / first["told_us"] * 1e6,
        "first_word_s": first["first_word_us"] / 1e6,
        "first_word_remembered_s": again["first_word_us"] / 1e6,
        "prompt_tokens_per_s": first["prompt_tokens"] / first["read_us"] * 1e6
        if first["prompt_tokens"]
        else None,
    }
    notes = []
    if board is None:
        pace = model.Pace(
            note=f'no figure: "{found.machine or found.platform}" is no board that is known here'
        )
    else:
        pace = model.pace(
            board,
            SimpleNamespace(**first["shape"]),
            first["codec"],
            tokens=first["tokens"],
            window=first["window"],
            sinks=first["sinks"],
            clock_hz=first["clock_hz"],
        )
    modelled = pace.figures()
    if pace.tokens_per_s is not None:
        if first["model_place"] != pace.model_place:
            notes.append(
                f"modelled with the model {pace.model_place}; on the board it is a {first['model_place']}"
            )
        if first["kernels"] != FASTEST:
            notes.append(f"modelled with thumb kernels; on the board {' and '.join(first['kernels'])}")
    return {
        "board": board.name if board else None,
        "machine": found.machine,
        "micropython": found.release,
        **{key: first[key] for key in ("clock_hz", "codec", "window", "sinks", "tokens", "model_id")},
        "kernels": first["kernels"],
        "model_place": first["model_place"],
        "measured": measured,
        "modelled": modelled,
        "notes": [pace.note, *notes],
    }


def rows(figures: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """For a table: measured, modelled, and the first over the second."""
    made: list[tuple[str, ...]] = []
    for key, title in MEASURED.items():
        at, said = figures["measured"][key], figures["modelled"].get(key)
        told = "-" if at is None else f"{at:.2f}"
        beside = "-" if said is None else f"{said:.2f}"
        over = "-" if at is None or said is None else f"{at / said:.3f}"
        made.append((title, told, beside, over))
    return made


def _prepared(port: str | None, freq: int | None) -> Identity:
    """Who answers there, its clock set. BadInput."""
    with connected(port) as link:
        found = identity.ask(link)
        if freq is not None:
            try:
                link.run(f"from stories.clock import set_clock\nset_clock({freq})")
            except BoardError as error:
                if "ImportError" in error.text:
                    raise BadInput(
                        f"--port {link.port}: {error.text}; put the app there first: kvlab deploy"
                    ) from error
                raise BadInput(f"--freq {freq}: {error.text}") from error
    return found


def _of(found: Identity) -> Board | None:
    """The board that says so of itself; of several of one chip the first: the model takes them alike."""
    known = [boards.load(name) for name in boards.real_names()]
    return next((board for board in known if not identity.mismatch(board, found)), None)
