"""Boards and profiles as the planner sees them: where a cache may lie, and what is there beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvlab import facts, profiles
from kvlab.boards import Board
from kvlab.facts import Fact, Memory
from kvlab.models.limits import LIMITS
from kvlab.plan.shape import Model
from kvlab.profiles import Profile
from mpy_kv.geometry import CODECS, MAX_BYTES, MAX_VISIBLE

MEASURED = Path(__file__).with_name("measured.json")
WEIGHTS_GROUP = 32  # weights that share a scale where they are stored as scaled codes
ROW_BUFFER_BYTES = 4096  # of the stories app, where weights are read row by row


@dataclass(frozen=True)
class Part:
    """Something that needs room, and where that is."""

    name: str
    bytes: int
    memory: str
    source: str


@dataclass(frozen=True)
class Target:
    """`areas`: room for caches and `beside`, a buffer must fit one of them and be at most `largest`."""

    kind: str  # board or profile
    name: str
    title: str
    main: Memory
    weights: Memory
    memories: tuple[Memory, ...]
    areas: tuple[int, ...]
    largest: int
    weights_room: int  # what `weights` leaves for them, where it is not `main`
    codec: str  # the default
    board: Board | None = None
    profile: Profile | None = None

    @property
    def room(self) -> int:
        return sum(self.areas)

    @property
    def weights_apart(self) -> bool:
        return self.weights is not self.main

    def weights_part(self, model: Model, weights: str) -> tuple[Part, int]:
        """The weights, and how many bytes of them one token reads."""
        if self.board is not None and model.image_bytes is not None:
            part = Part("weights (board image)", model.image_bytes, self.weights.name, "the image's format")
            return part, model.image_read_bytes or 0
        bits, _, scaled = CODECS[weights]
        each = bits / 8 + (2 / WEIGHTS_GROUP if scaled else 0)
        count, read = model.parameters or 0, model.read_parameters or 0
        source = f"{count:,} parameters x {each:g} bytes"
        part = Part(f"weights ({weights})", round(count * each), self.weights.name, source)
        return part, round(read * each)

    def beside(self, model: Model, sinks: int, codec: str) -> list[Part]:
        """What shares the areas with caches of that codec, whatever their size; weights come on top."""
        if self.profile is not None:
            fact = self.profile.reserved_bytes
            return [Part("system and runtime", fact.value, self.main.name, fact.source)]
        assert self.board is not None
        mapped = self.board.memory_mapped_flash
        program, more = measured(self.board.machine.port, codec)
        arrays = app_array_bytes(model, sinks, mapped)
        parts = [Part("program and its objects", program.value, self.main.name, program.source)]
        if more is not None:
            parts.append(Part(f"what {codec} has more", more.value, self.main.name, more.source))
        return [*parts, Part("the app's arrays", arrays, self.main.name, "boards/apps/stories/model.py")]

    def limits(self, model: Model, visible: int, buffers: Sequence[int]) -> list[str]:
        """What the app and an mpy_kv cache on a board refuse, whatever the memory."""
        said = []
        if self.board is not None:
            for name, most in LIMITS.items():
                value = getattr(model, name)
                if name != "seq_len" and value is not None and value > most:
                    said.append(f"{name} {value:,}; a board takes {most:,}")
        if self.board is not None and visible > MAX_VISIBLE:
            said.append(f"{visible:,} tokens visible at once; a cache on a board takes {MAX_VISIBLE:,}")
        if self.board is not None and max(buffers) > MAX_BYTES:
            said.append(f"a buffer of {max(buffers):,} bytes; a cache on a board takes {MAX_BYTES:,}")
        return said


def measured(port: str, codec: str) -> tuple[Fact, Fact | None]:
    """What the program takes of the heap beside the cache and the app's arrays, by MicroPython port, with
    int8; and what that codec has more, None if it has no native kernels of its own."""
    found = json.loads(MEASURED.read_text(encoding="utf-8"))[port]
    more = found["codecs"].get(codec)
    return Fact(**found["program"]), None if more is None else Fact(**more)


def of_board(board: Board) -> Target:
    return Target(
        *("board", board.name, board.title),
        main=facts.memory_of(board.memories, "main"),
        weights=facts.memory_of(board.memories, "weights"),
        memories=board.memories,
        areas=board.areas_bytes,
        largest=board.machine.largest_object_bytes,
        weights_room=board.machine.flash_bytes,
        codec=profiles.load("mcu").defaults["codec"],
        board=board,
    )


def of_profile(profile: Profile) -> Target:
    main = facts.memory_of(profile.memories, "main")
    weights = facts.memory_of(profile.memories, "weights", "main")
    return Target(
        *("profile", profile.name, profile.title),
        main=main,
        weights=weights,
        memories=profile.memories,
        areas=(main.size_bytes.value,),
        largest=main.size_bytes.value,
        weights_room=weights.size_bytes.value,
        codec=profile.defaults["codec"],
        profile=profile,
    )


def app_array_bytes(model: Model, sinks: int, mapped: bool) -> int:
    """Payload of the arrays of the stories app: `Llama.ram_bytes()` of that shape, for any model."""
    dim, hidden, d, layers = model.dim, model.hidden, model.head_dim, model.layers
    q, kv, vocab = model.heads * d, model.kv_heads * d, model.vocab or 0

    def padded(n: int) -> int:
        return -(-n // 32) * 32

    def row(columns: int) -> int:
        return -(-(padded(columns) // 32 * 34) // 4) * 4

    activation = 2 + 17 * (padded(max(dim, hidden, q)) // 32)
    shared = max(padded(dim), padded(q), q + 2 * kv, 2 * padded(hidden), vocab)
    words = dim + activation + shared  # the workspace
    words += d // 2 + 2 * 2  # increments, turns
    words += 5 + 8 + 3 + 5 + 5 + 2  # parameters: embed, swiglu, add, rotate q and k, narrow
    words += 10 * (2 * layers + 1) + 7 * (7 * layers + 1) + 6 * layers  # norms, matrices, widen
    halves = 2 * q + 2 * kv + 2 * d + (q if sinks else 0)
    total = 4 * words + 2 * halves
    if not mapped:
        longest = max(row(dim), row(hidden), row(q))
        total += max(longest, ROW_BUFFER_BYTES) // 4 * 4 + -(-2 * dim // 4) * 4 * (2 * layers + 1) + 4 * 7
    return total
