"""What the stories app takes of a board's heap beside the cache's buffer: code, objects, arrays, tables.

It is measured, by measure.py, for each board with a small heap, and is in measured/: for the shapes of the
models that ship, with each element type, with and without a policy, it is what the heap has beside the buffer
of the largest window that was told, so that this window is the plan's answer. It hangs by a few KB on
where the heap has holes when an array is made, so another shape is counted with room for that. The app needs
most at one of two moments: when its workspace is made, of which there is a copy for that moment, or when all
of its arrays are there. The arrays follow from the shape, what else lies in the heap then is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab.element_types import EXACT, USUAL
from kvlab.facts import Fact
from kvlab.plan.shape import Model
from mpy_kv.eviction.tokens import params as tokens_kept

MEASURED = Path(__file__).with_name("measured")  # a file a board
ROW_BUFFER_BYTES = 4096  # of the stories app, where weights are read row by row
# Boards that are measured: their heap does not hold all that the model was trained for.
BOARDS = ("rp2040", "esp32", "esp32c3", "esp32s3", "qemu_arm")
# Boards of which each stands for those of its port that were not measured.
STANDS_FOR_PORT = {"rp2": "rp2040", "esp32": "esp32s3", "qemu": "qemu_arm"}
# Room for the holes between objects, in bytes: by how much less of a heap a shape may have than one measured
# in it. Two summands of what a shape that was not measured is counted with; a measured one needs neither.
HOLES_BYTES = 2048  # in `workspace` and `arrays`, of shapes that measure.py makes: stands in measured/
UNMEASURED_BYTES = 4096  # on top of them, when a plan is made: of shapes unlike those
RING = "window"  # the token policy that a ring is by itself


@dataclass(frozen=True)
class Program:
    """Bytes that were measured, with int8 and the newest tokens kept: `workspace` with the workspace and its
    copy not counted, `arrays` with the app's arrays and `layer` for each layer not counted.

    `codecs`, `policy`: what another element type, and a policy that weighs tokens, have more at most; its
    tables are not counted. `shapes`: all beside the buffer and those tables, by `shape_of` a model, whether a
    policy weighs tokens ("weighed") or the newest stay ("ring"), and element type. `refused`: by the same,
    windows below the largest that were refused, with as many sinks as there are by itself.
    """

    workspace: Fact
    arrays: Fact
    layer: Fact
    codecs: Mapping[str, Fact]
    policy: Fact
    shapes: Mapping[str, Mapping[str, Mapping[str, int]]]
    refused: Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]

    def beside(
        self, model: Model, sinks: int, mapped: bool, codec: str, weighs: bool
    ) -> tuple[int, int, int]:
        """Bytes of program and objects, what the element type has more, and what the policy, beside the app's
        arrays and the policy's tables. `mapped`: weights are read where they lie."""
        arrays = array_bytes(model, sinks, mapped)
        known = self.shapes.get(shape_of(model))
        if codec == EXACT:  # no plan counts what its kernels allocate
            codec = USUAL
        if known is None:
            first = self.workspace.value + 2 * workspace_bytes(model) - arrays
            program = max(first, self.arrays.value + self.layer.value * model.layers) + UNMEASURED_BYTES
            extra = self.codecs[codec].value if codec in self.codecs else 0
            return program, extra, self.policy.value if weighs else 0
        total = known[_kind(weighs)][codec] - arrays
        extra = max(0, known["ring"][codec] - known["ring"][USUAL])
        policy = max(0, total - (known["ring"][codec] - arrays))
        return total - extra - policy, extra, policy

    def refuses(self, model: Model, codec: str, weighs: bool) -> Sequence[int]:
        """Windows of one cache that were refused, though a larger one was told."""
        return self.refused.get(shape_of(model), {}).get(_kind(weighs), {}).get(codec, ())


def weighs(policy: str | None) -> bool:
    """Whether a policy weighs tokens by the attention they get, which the newest ones do not need."""
    return policy not in (None, RING)


def _kind(weighs: bool) -> str:
    return "weighed" if weighs else "ring"


def of_board(name: str, port: str) -> Program:
    """The program on a board: its own figures, or those of another board of its MicroPython port where it was
    not measured."""
    path = MEASURED / f"{name}.json"
    if not path.is_file():
        path = MEASURED / f"{STANDS_FOR_PORT[port]}.json"
    return parse(json.loads(path.read_text(encoding="utf-8")))


def parse(found: Mapping[str, Any]) -> Program:
    codecs = {codec: Fact(**fact) for codec, fact in found["codecs"].items()}
    names = ("workspace", "arrays", "layer", "policy")
    facts = {name: Fact(**found[name]) for name in names}
    return Program(codecs=codecs, shapes=found["shapes"], refused=found["refused"], **facts)


def shape_of(model: Model) -> str:
    """What the app's arrays and objects hang on, as measured/ has it."""
    heads = f"{model.heads} heads on {model.kv_heads} of {model.head_dim}"
    return f"{model.layers} layers of {model.dim} and {model.hidden}, {heads}, {model.vocab} words"


def workspace_bytes(model: Model) -> int:
    """The app's largest array: all vectors of 32-bit numbers (boards/apps/stories/workspace.py)."""
    dim, hidden, d = model.dim, model.hidden, model.head_dim
    q, kv = model.heads * d, model.kv_heads * d
    activation = 2 + 25 * (_padded(max(dim, hidden, q)) // 32)
    shared = max(_padded(dim), _padded(q), q + 2 * kv, 2 * _padded(hidden), model.vocab or 0)
    return 4 * (dim + activation + shared)


def array_bytes(model: Model, sinks: int, mapped: bool) -> int:
    """Payload of the arrays of the stories app: `Llama.ram_bytes()` of that shape, for any model."""
    dim, hidden, d, layers = model.dim, model.hidden, model.head_dim, model.layers
    q, kv = model.heads * d, model.kv_heads * d
    words = d // 2 + 2 * 2  # increments, turns
    words += 5 + 8 + 3 + 5 + 5 + 2  # parameters: embed, swiglu, add, rotate q and k, narrow
    words += 10 * (2 * layers + 1) + 7 * (7 * layers + 1) + 6 * layers  # norms, matrices, widen
    halves = 2 * q + 2 * kv + 2 * d + (q if sinks else 0)
    total = workspace_bytes(model) + 4 * words + 2 * halves
    if not mapped:
        longest = max(_row(dim), _row(hidden), _row(q))
        total += max(longest, ROW_BUFFER_BYTES) // 4 * 4 + -(-2 * dim // 4) * 4 * (2 * layers + 1) + 4 * 7
    return total


def table_bytes(window: int, sinks: int) -> int:
    """Payload of the tables of a policy that weighs tokens, and of what they are copied from when they are
    made (mpy_kv/token_eviction/setup.py): two of them are copies of one."""
    ring = window + 1
    seen = sinks + ring
    made_once = tokens_kept.ACC + seen + (seen + 1) // 2 + ring
    return int(4 * (2 * made_once + 3 * (ring + 2)))


def _padded(n: int) -> int:
    return -(-n // 32) * 32


def _row(columns: int) -> int:
    """Bytes of a row of a matrix in a board image."""
    return -(-(_padded(columns) // 32 * 34) // 4) * 4
