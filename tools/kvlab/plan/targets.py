"""Boards and profiles as the planner sees them: where a cache may lie, and what is there beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kvlab import facts, profiles
from kvlab.boards import Board
from kvlab.facts import Memory
from kvlab.models.limits import LIMITS
from kvlab.plan import program
from kvlab.plan.shape import Model
from kvlab.plan.sizes import weight_bits
from kvlab.profiles import Profile
from mpy_kv.geometry import MAX_BYTES, MAX_VISIBLE


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
        bits = weight_bits(weights)
        count, read = model.parameters or 0, model.read_parameters or 0
        source = f"{count:,} parameters x {bits:g} bits"
        part = Part(
            f"weights ({weights}, {bits:g} bits each)", whole_bytes(count * bits), self.weights.name, source
        )
        return part, whole_bytes(read * bits)

    def beside(
        self, model: Model, sinks: int, codec: str, policy: str | None = None, window: int = 0
    ) -> list[Part]:
        """What shares the areas with caches of that codec; weights come on top. It does not grow with the
        caches, but for the tables of a policy that weighs the tokens of a window."""
        if self.profile is not None:
            fact = self.profile.reserved_bytes
            return [Part("system and runtime", fact.value, self.main.name, fact.source)]
        assert self.board is not None
        mapped = self.board.memory_mapped_flash
        measured = program.of_board(self.board.name, self.board.machine.port)
        weighs = program.weighs(policy)
        most, extra, watching = measured.beside(model, sinks, mapped, codec, weighs)
        source = measured.workspace.source
        parts = [Part("program and its objects", most, self.main.name, source)]
        if codec in measured.codecs:
            parts.append(Part(f"what {codec} has more", extra, self.main.name, measured.codecs[codec].source))
        if weighs:
            watching += program.table_bytes(window, sinks)
            parts.append(Part("the policy and its tables", watching, self.main.name, measured.policy.source))
        arrays = program.array_bytes(model, sinks, mapped)
        return [*parts, Part("the app's arrays", arrays, self.main.name, "boards/apps/stories/model.py")]

    def refused(self, model: Model, codec: str, policy: str | None) -> Sequence[int]:
        """Windows of one cache that were refused, though a larger one was told: they leave the heap in other
        pieces."""
        if self.board is None or self.board.name not in program.BOARDS:
            return ()
        measured = program.of_board(self.board.name, self.board.machine.port)
        return measured.refuses(model, codec, program.weighs(policy))

    def limits(self, model: Model, context: int, buffers: Sequence[int]) -> list[str]:
        """What the app and an mpy_kv cache on a board refuse, whatever the memory. `context`: tokens that
        may become visible at once."""
        said = []
        if self.board is not None:
            for name, most in LIMITS.items():
                value = getattr(model, name)
                if name != "seq_len" and value is not None and value > most:
                    said.append(f"{name} {value:,}; a board takes {most:,}")
        if self.board is not None and model.seq_len is not None and context > model.seq_len:
            said.append(
                f"a context of {context:,} tokens, and {model.id} was trained for {model.seq_len:,}: the app"
                " refuses it"
            )
        if self.board is not None and context > MAX_VISIBLE:
            said.append(f"{context:,} tokens visible at once; a cache on a board takes {MAX_VISIBLE:,}")
        if self.board is not None and max(buffers) > MAX_BYTES:
            said.append(f"a buffer of {max(buffers):,} bytes; a cache on a board takes {MAX_BYTES:,}")
        return said


def whole_bytes(bits: float) -> int:
    return math.ceil(bits / 8)


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
