"""The order of all packages: each uses what stands before it, and itself.

An entry is a name and what belongs to it: modules, or packages with all that lies in them and has no nearer
entry. A module of no entry is refused: say where it belongs.
"""

from __future__ import annotations

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # The device package.
    (
        "base",
        tuple(
            f"mpy_kv.{name}" for name in ("errors", "transient", "port", "sources", "undecorated", "cpython")
        ),
    ),
    ("orders", ("mpy_kv.eviction",)),
    ("memory", ("mpy_kv.arena", "mpy_kv.pools")),
    ("geometry", ("mpy_kv.geometry",)),
    ("bus", ("mpy_kv.bus",)),
    ("flash log", ("mpy_kv.flash_log",)),
    ("file store", ("mpy_kv.file_store",)),
    ("codecs", ("mpy_kv.codecs",)),
    ("kernels", ("mpy_kv.kernels",)),
    ("token policies", ("mpy_kv.eviction.tokens",)),
    ("attention", ("mpy_kv.attention", "mpy_kv.heads", "mpy_kv.value_runs")),
    ("construction", ("mpy_kv.setup",)),
    ("inspection", ("mpy_kv.inspect",)),
    ("sequence", ("mpy_kv.sequence", "mpy_kv.raise_errors")),
    ("cache", ("mpy_kv.cache",)),
    (
        "other caches",
        tuple(f"mpy_kv.{name}" for name in ("int4_blocks", "token_eviction", "per_layer", "paged")),
    ),
    ("snapshots", ("mpy_kv.snapshot",)),
    ("rows on the bus", ("mpy_kv.bus.rows", "mpy_kv.bus.make_rows")),
    ("resumption", ("mpy_kv.resume",)),
    ("choice", ("mpy_kv.factory",)),
    ("self-check", ("mpy_kv.selfcheck", "mpy_kv.selfcheck_float16")),
    ("admission", ("mpy_kv.admission",)),
    ("mpy_kv", ("mpy_kv",)),
    # Programs on boards.
    ("apps", ("stories", "bench")),
    # The host: emulators, then the tools from what they stand on to their command line.
    ("command lines", ("commandline",)),
    ("unix port", ("unix_port",)),
    ("firmware", ("firmware",)),
    ("emulated boards", ("qemu_port",)),
    (
        "kvlab",
        ("kvlab", *(f"kvlab.{name}" for name in ("paths", "output", "element_types", "uf2", "binary_info"))),
    ),
    ("facts", ("kvlab.facts", "kvlab.shipped", "kvlab.traces", "kvlab.snapshots")),
    (
        "boards and models",
        tuple(f"kvlab.{name}" for name in ("boards", "profiles", "models", "engine", "parts", "flash_gap")),
    ),
    ("deployment", ("kvlab.deploy", "kvlab.emulators")),
    ("studies", tuple(f"kvlab.{name}" for name in ("replay", "predict", "soak", "train", "quality"))),
    ("costs", ("kvlab.cost",)),
    ("buses", ("kvlab.bus",)),
    ("power cuts", ("kvlab.powercut",)),
    ("stories", ("kvlab.story", "kvlab.resets")),
    ("plans", ("kvlab.plan", "kvlab.plots", "kvlab.many", "kvlab.rp2040", "kvlab.judging")),
    ("measurements", ("kvlab.pictures", "kvlab.bench")),
    ("docs", ("kvlab.docs",)),
    ("options", ("kvlab.options",)),
    ("commands", ("kvlab.commands",)),
    ("command line", ("kvlab.cli", "kvlab.__main__")),
)

# Arrows up that are there and should not be. One that is gone must go from this list, too.
NOT_YET: dict[tuple[str, str], str] = {}

# Circles of the same kind: their modules, sorted.
CIRCLES_YET: tuple[tuple[str, ...], ...] = ()

# Packages whose modules are of many layers: one of no entry of its own has none.
DIVIDED = ("mpy_kv", "kvlab")


def layer_of(module: str) -> int | None:
    """The index of its nearest entry; None if there is none."""
    name = module
    while name:
        if name in _LAYER and (name == module or name not in DIVIDED):
            return _LAYER[name]
        name = name.rpartition(".")[0]
    return None


_LAYER = {each: i for i, (_, members) in enumerate(LAYERS) for each in members}
