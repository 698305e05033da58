"""Runs the stories app of a board's main.py behind that board's fence and reads back what it tells."""

from __future__ import annotations

import ast
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from commandline.errors import BadInput, FellShort
from kvlab import element_types, emulators, paths
from kvlab.boards import Board
from kvlab.cost.model import Pace, pace
from kvlab.cost.turns import Turns, modelled
from unix_port import launcher

_COMPLAINT = "stories: error: "
TASK = paths.APPS / "story_task.py"
FIGURES = "figures"  # the file that the app writes them to
_BEFORE = "before.mkvs"  # the file of a story to go on with
_SAVED = "saved.mkvs"  # the file of one to be gone on with
RING = "window"  # the policy that drops the oldest
USUAL_SINKS = 4  # what the app takes unless it is told
USUAL_CODEC = element_types.USUAL  # the same, where the model's image names no other
USUAL_WINDOW = 256  # the same, where the board's main.py asks for no other
LONG_BYTES = 2000  # of a prompt that takes room worth a word, up to ten times as much while it is read


@dataclass(frozen=True)
class Telling:
    """What to tell; the fields are the options of the app (`boards/apps/stories/app.py`)."""

    ROOM: ClassVar[str] = "--window or --budget"  # what to lower where it does not fit

    tokens: int = 200
    prompt: str = ""
    window: int | None = None
    sinks: int | None = None
    temperature: str = "0.8"
    top_p: str = "0.9"
    seed: int = 1
    greedy: bool = False
    stop: bool = False
    codec: str | None = None
    policy: str | None = None
    budget: int | None = None
    compress: str | None = None
    kernels: str | None = None
    save: bool = False  # Told.saved is then a file to go on with
    resume: bytes | None = None  # such a file; it says how tokens are chosen
    task: bool = False  # an asyncio task: boards/apps/story_task.py instead of the board's main.py

    def arguments(self) -> list[str]:
        words: list[Any] = ["--tokens", self.tokens]
        if self.resume is None:
            words += ["--seed", self.seed, "--temperature", self.temperature, "--top-p", self.top_p]
        else:
            words += ["--resume", _BEFORE]
        if self.save:
            words += ["--save", _SAVED]
        for name in (*("prompt", "window", "sinks"), *("codec", "policy", "budget", "compress", "kernels")):
            value = getattr(self, name)
            if value not in (None, ""):
                words += [f"--{name}", value]
        of_ring = self.policy == RING and self.budget is None and self.compress is None
        if of_ring and self.resume is None:
            at = words.index("--policy")  # what the app does by itself, without its module of policies
            del words[at : at + 2]
        words += [f"--{name}" for name in ("greedy", "stop") if getattr(self, name)]
        return [str(word) for word in words]

    def longest_prompt(self) -> int:
        """In bytes."""
        return len(self.prompt.encode())


@dataclass(frozen=True)
class Told:
    """`figures` for people and `--json`; `report` of the emulator."""

    figures: dict[str, Any]
    report: launcher.Report
    saved: bytes | None = None


def tell(board: Board, image: bytes, telling: Telling, *, stream: bool = False) -> Told:
    """Tell a story with the model `image` on `board`, as `run` does."""
    seen, report = run(board, image, telling, stream=stream)
    figures = {**figures_of(board, seen, report), **paced(board, image, telling, seen).figures()}
    if telling.task:
        figures |= {name: seen[name] for name in ("beats", "longest_between_beats_us")}
        figures |= turns_of(board, image, telling, seen).figures()
    return Told({**figures, "notes": notes(telling, seen, seen["context"])}, report, seen.get("saved"))


def run(
    board: Board, image: bytes, telling: Telling, *, stream: bool = False
) -> tuple[dict[str, Any], launcher.Report]:
    """What the app and the emulator have to say of a run of the app with the model `image` on `board`.

    The board runs its own main.py, with the modules compiled to .mpy as they are deployed. On a board
    whose flash is memory-mapped the image lies in the storage region and is read where it lies, on the
    others it is a file, read row by row. With `stream` the story also appears as it is told.
    Where sinks are not asked for there are as many as usual or as the model's context has room for.
    Raises BadInput for what the app refuses, FellShort when it fails or does not fit.
    """
    telling = with_sinks(telling, image)
    with prepared(board, image, telling) as (place, script, arguments, how):
        report = emulators.emulate(board)(script, arguments, board.machine, stream=stream, **how)
        judge(report, telling)
        seen: dict[str, Any] = json.loads((place / FIGURES).read_text())
        if telling.save:
            seen["saved"] = (place / _SAVED).read_bytes()
    return seen, report


def turns_of(board: Board, image: bytes, telling: Telling, seen: Mapping[str, Any]) -> Turns:
    """What others would see on the board itself of such a run as a task, modelled."""
    from kvlab.models.image import Header

    why_not = ""
    if seen["policy"] != RING:
        why_not = f"no figure: policy {seen['policy']} was not counted"
    if telling.kernels not in (None, "thumb"):
        why_not = f"no figure: kernels {telling.kernels} were not counted"
    shape = Header.unpack(image)
    chosen = {"window": seen["window"], "sinks": seen["sinks"], "why_not": why_not}
    return modelled(board, shape, seen["codec"], **chosen)


def paced(board: Board, image: bytes, telling: Telling, seen: Mapping[str, Any]) -> Pace:
    """What a run of `telling`, of which the app has said `seen`, would take on the board itself, modelled."""
    from kvlab.models.image import Header

    if telling.resume is not None:
        return Pace(note="no figure: a story that goes on was not counted")
    if seen["policy"] != RING:
        return Pace(note=f"no figure: policy {seen['policy']} was not counted")
    if telling.kernels not in (None, "thumb"):
        return Pace(note=f"no figure: kernels {telling.kernels} were not counted")
    if telling.task:
        return Pace(note="no figure: what asyncio takes at each turn was not counted")
    return pace(
        board,
        Header.unpack(image),
        seen["codec"],
        tokens=seen["tokens"],
        prompt_tokens=max(0, seen["prompt_tokens"] - 1),  # the token that starts a story is in the start
        window=seen["window"],
        sinks=seen["sinks"],
    )


def in_heap(board: Board, image: bytes, telling: Telling, heap_bytes: int) -> dict[str, Any] | None:
    """What the app has to say of a run in a heap of that size instead of the board's; None where it does
    not fit. BadInput and FellShort as `run` raises them."""
    telling = with_sinks(telling, image)
    with prepared(board, image, telling) as (place, script, arguments, how):
        report = emulators.emulate(board)(script, arguments, board.machine, heap_bytes=heap_bytes, **how)
        if report.outcome == "does not fit":
            return None
        judge(report, telling)
        seen: dict[str, Any] = json.loads((place / FIGURES).read_text())
    return seen


def usual_window(board: Board) -> int:
    """The window that the board's main.py asks for, where a model was trained for as much."""
    source = (paths.BOARDS / board.name / "main.py").read_text(encoding="utf-8")
    for line in ast.parse(source).body:
        if isinstance(line, ast.Assign) and [ast.unparse(to) for to in line.targets] == ["WINDOW"]:
            return int(ast.literal_eval(line.value))
    return USUAL_WINDOW


def sinks_beside(window: int, context: int, usual: int = USUAL_SINKS) -> int:
    """Sinks of a window that has none asked for: as many as usual, or as a model's context has room for. A
    window that is larger than the context leaves them what one of the right size would."""
    return min(usual, context - (window if window <= context else 1))


def with_sinks(telling: Telling, image: bytes) -> Telling:
    """`telling`, with sinks chosen where the app's own choice would not fit beside the window. With a budget,
    or a policy that weighs tokens, that choice is the app's."""
    from kvlab.models.image import HEADER_BYTES, Header

    asked = telling.sinks is not None or telling.budget is not None or telling.policy not in (None, RING)
    if asked or telling.resume is not None or len(image) < HEADER_BYTES:
        return telling
    sinks = sinks_beside(telling.window or 1, Header.unpack(image).seq_len)
    return replace(telling, sinks=sinks) if sinks < USUAL_SINKS else telling


def notes(telling: Telling, seen: Mapping[str, Any], context: int) -> list[str]:
    """What was chosen for `telling` otherwise than usual. seen: `window` and `sinks` as they are; context:
    tokens the model was trained for."""
    chosen = telling.resume is not None or telling.sinks is not None or telling.policy not in (None, RING)
    if chosen or seen["sinks"] >= USUAL_SINKS:
        return []
    return [fewer_sinks(seen["window"], seen["sinks"], context)]


def fewer_sinks(window: int, sinks: int, context: int) -> str:
    """Why a window has fewer sinks than usual."""
    said = (
        f"sinks: {sinks} instead of {USUAL_SINKS}, as the model was trained for {context:,} tokens and the"
        f" window has {window:,} of them"
    )
    room = context - USUAL_SINKS
    return said if room < 1 else f"{said}; a window of at most {room:,} leaves {USUAL_SINKS}"


def with_peak(board: Board, image: bytes, telling: Telling, told: Told) -> Told:
    """`told` with heap_peak_bytes: the smallest heap in which the same board tells `telling` with the
    same window. A short one: the app allocates nothing per token, so its peak is that of any.
    """
    f = told.figures
    short = replace(telling, tokens=8, compress=None, save=False)
    if telling.budget is None and telling.policy in (None, RING):
        short = replace(short, window=f["window"], sinks=f["sinks"])
    with prepared(board, image, short) as (_, script, arguments, how):
        peak = launcher.smallest_heap(script, arguments, board.machine, run=emulators.emulate(board), **how)
    told.report.heap_peak_bytes = peak
    return Told({**f, "heap_peak_bytes": peak}, told.report, told.saved)


@contextmanager
def prepared(
    board: Board, image: bytes, telling: Telling, *, in_storage: bool = True
) -> Iterator[tuple[Path, Path, list[str], dict[str, Any]]]:
    """The folder of the app's files, script, arguments and options of the emulator. in_storage: False where
    the storage has a file system; the model then lies before it if it can.

    FellShort when the board has no room for the image.
    """
    storage = board.machine.flash_bytes
    if len(image) > storage:
        raise FellShort(
            f"does not fit: the model has {len(image):,} bytes, and {board.title} has {storage:,} of"
            " flash for it; choose another --model or --board"
        )
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        place = Path(folder)
        telling = _without_usual(telling, image)
        if telling.task:
            telling = _with_window(board, telling, image)
        arguments = telling.arguments()
        # In its own folder the app knows its files by the same short names everywhere, so that they take
        # the same heap.
        how: dict[str, Any] = {"compiled": True, "cwd": place}
        if board.memory_mapped_flash and (in_storage or len(image) <= board.machine.storage_at):
            at = 0 if in_storage else -(-(-len(image) // 4096) * 4096)
            how["flash"] = [launcher.FlashFile(image, at, name="--model")]
        else:
            (place / "model.mkvm").write_bytes(image)
            arguments += ["--model", "model.mkvm"]
        if telling.resume is not None:
            (place / _BEFORE).write_bytes(telling.resume)
        arguments += ["--json", FIGURES]
        yield place, TASK if telling.task else paths.BOARDS / board.name / "main.py", arguments, how


def _with_window(board: Board, telling: Telling, image: bytes) -> Telling:
    """`telling` with the window that the board's main.py would ask for, which the task is not told of."""
    from kvlab.models.image import HEADER_BYTES, Header

    if telling.window is not None or telling.budget is not None or len(image) < HEADER_BYTES:
        return telling
    sinks = USUAL_SINKS if telling.sinks is None else telling.sinks
    return replace(telling, window=max(1, min(usual_window(board), Header.unpack(image).seq_len - sinks)))


def _without_usual(telling: Telling, image: bytes) -> Telling:
    """`telling` without the type that the app takes by itself: naming it changes nothing of the heap."""
    from kvlab.models.image import HEADER_BYTES, Header

    if (
        telling.codec != USUAL_CODEC
        or telling.resume is not None
        or len(image) < HEADER_BYTES
        or Header.unpack(image).codecs_off
    ):
        return telling
    return replace(telling, codec=None)


def judge(report: launcher.Report, telling: Telling) -> None:
    """Turn an emulated run that did not end well into this program's error."""
    if report.fits:
        return
    # A board with one line for both says it in its stdout.
    for line in reversed((report.stdout + report.stderr).split("\n")):
        if line.startswith(_COMPLAINT):
            said = line[len(_COMPLAINT) :]
            named = f"--resume {_BEFORE} "
            if said.startswith(named):
                said = "--resume: " + said[len(named) :].removeprefix("cannot be read: ")
            raise BadInput(said)
    if report.outcome not in ("ok", "does not fit"):
        sys.stderr.write(report.stderr)  # a fault of the app: show where
    remedy = f"; lower {telling.ROOM}" if report.verdict.startswith("does not fit: ") else ""
    if remedy and (long := telling.longest_prompt()) >= LONG_BYTES:
        remedy += f", or shorten --prompt, of {long:,} bytes"
    raise FellShort(report.verdict + remedy)


def as_typed(text: str) -> str:
    """What the app says of its keyword arguments, in options of the command line."""
    name, space, rest = text.partition(" ")
    if name in Telling.__dataclass_fields__:
        text = f"--{name.replace('_', '-')}{space}{rest}"
    for name in ("window", "sinks"):
        text = text.replace(f"lower {name}", f"lower --{name}")
    return text


def figures_of(board: Board, seen: dict[str, Any], report: launcher.Report) -> dict[str, Any]:
    return {
        "board": board.name,
        "tokens": seen["tokens"],
        "text": report.stdout.strip(),
        "heap_limit_bytes": report.heap_limit_bytes,
        "heap_peak_bytes": report.heap_peak_bytes,
        "heap_live_bytes": report.heap_live_peak_bytes,
        "largest_object_bytes": report.largest_object_bytes,
        "machine_code_bytes": report.native_code_bytes,
        "kv_bytes": seen["kv_bytes"],
        "buffer_bytes": seen["buffer_bytes"],
        "alloc_bytes_per_token": seen["alloc_bytes_per_token"],
        "evicted_tokens": seen["evicted_tokens"],
        "window": seen["window"],
        "sinks": seen["sinks"],
        "codec": seen["codec"],
        "policy": seen["policy"],
        "budget": seen["budget"],
        "context_tokens": seen["context"],
        "compressed_tokens": seen["compressed_tokens"],
        "position": seen["position"],
        "reused_tokens": seen.get("reused_tokens", 0),
        "saved_bytes": seen.get("saved_bytes"),
        "kernels": seen["kernels"],
        "cache_kernels": seen["cache_kernels"],
        "seconds": seen["ms"] / 1000 if seen["ms"] is not None else report.seconds,
        "instructions": report.instructions,
    }
