"""The parts of mpy_kv by name, each by the modules it is asked for with; what these import comes with them.

A module named here is a *root*: what another module imports of it only when it is called, such as sealed
blocks in mpy_kv/factory.py, is left out with its part. All other imports are followed. So a root belongs to
no program that did not ask for it, and what is no root is never missing. Kernel sets are no parts of their
own: plain and viper kernels are in each part that computes, those in Thumb assembler as well, where the board
has an Arm core.
"""

from __future__ import annotations

from kvlab.element_types import NAMES, SEALED, TYPES, USUAL
from kvlab.paths import ROOT

# What every program has: each element type is made of int8's kernels.
BASE = ("core", USUAL)


def _of_type(name: str) -> tuple[str, ...]:
    """Of an element type: its kernels, the codec that reads back, and what it alone takes."""
    file, of = name.replace("-", "_"), TYPES[name]
    kernels = "mpy_kv.kernels" if name == USUAL else f"mpy_kv.kernels.{file}"
    sealed = ("mpy_kv.int4_blocks", "mpy_kv.int4_blocks.selfcheck") if name == SEALED else ()
    value_runs = ("mpy_kv.value_runs",) if of.k_bits != of.v_bits else ()  # rows of V differ from those of K
    checks = (f"mpy_kv.selfcheck_{file}",) if (ROOT / "mpy_kv" / f"selfcheck_{file}.py").exists() else ()
    return (*checks, *sealed, kernels, f"mpy_kv.codecs.{file}", *value_runs)


# The log itself; what a program may ask of it beside that is in its part alone.
FLASH_LOG = (
    *("mpy_kv.flash_log", "mpy_kv.flash_log.opening", "mpy_kv.flash_log.recovery"),
    *("mpy_kv.flash_log.files", "mpy_kv.flash_log.formatting"),
)

PARTS = {
    "core": ("mpy_kv", "mpy_kv.selfcheck"),
    **{name: _of_type(name) for name in NAMES},
    # A type a layer. The types themselves are asked for beside it.
    "per-layer": ("mpy_kv.per_layer",),
    # Token policies; the app's choice of one comes with them.
    "token-eviction": (
        *("mpy_kv.token_eviction", "mpy_kv.eviction.tokens", "mpy_kv.eviction.tokens.params"),
        "stories.budgets",
    ),
    # Many requests, and the app's several stories at once.
    "paged": ("mpy_kv.paged", "stories.many"),
    "admission": ("mpy_kv.admission.admission", "mpy_kv.admission.predictor", "mpy_kv.admission.waiting"),
    # A sequence as bytes, in a file or a stream.
    "snapshot": ("mpy_kv.snapshot", "stories.saved", "stories.kept"),
    # What lies in flash, weights above all, by DMA of an rp2 chip while the core computes.
    "bus-stream": (
        *("mpy_kv.bus.stream", "mpy_kv.bus.stream.dma"),
        *("stories.streaming", "stories.streaming.making", "stories.streaming.streamed"),
    ),
    # Pools for a program's own use. A cache has a fixed one, of which it takes no blocks by the dozen.
    "pool-fixed": ("mpy_kv.pools.fixed", "mpy_kv.pools.batch"),
    "pool-slab": ("mpy_kv.pools.slab",),
    "pool-buddy": ("mpy_kv.pools.buddy",),
    "pool-region": ("mpy_kv.pools.region",),
    "pool-slab-region": ("mpy_kv.pools.slab_region",),
    # Bytes that kernels read and write, counted.
    "counting": ("mpy_kv.kernels.counting",),
    # Records on raw flash that outlive a power cut.
    "flash-log": (*FLASH_LOG, "mpy_kv.flash_log.places"),
    # The same records in plain files.
    "file-store": ("mpy_kv.file_store", "mpy_kv.file_store.opening"),
    # A sequence in such a log as it grows, for it to go on after a reset.
    "resume": (
        *("stories.kept", "stories.logged", *FLASH_LOG),
        *("mpy_kv.resume", "mpy_kv.resume.restoring", "mpy_kv.resume.sizes"),
    ),
    # Who may use the memory bus, by turns or by buckets, and a story as an asyncio task, a layer at a time.
    "bus": (
        *("mpy_kv.bus.slots", "mpy_kv.bus.schedule", "stories.beside", "stories.layered"),
        *("mpy_kv.bus.tracker", "mpy_kv.bus.rates", "mpy_kv.bus.awaiting", "mpy_kv.bus.tracking.inspect"),
    ),
    # Copies over the memory bus, joined to chains; a DMA controller's where there is one.
    "bus-dma": tuple(f"mpy_kv.bus.{name}" for name in ("copying", "rows", "rp2_dma", "tasks", "queue")),
    # Policies that order blocks between requests.
    "evict-fifo": ("mpy_kv.eviction", "mpy_kv.eviction.fifo"),
    "evict-lru": ("mpy_kv.eviction", "mpy_kv.eviction.lru"),
    "evict-lfu": ("mpy_kv.eviction", "mpy_kv.eviction.lfu"),
    "evict-hybrid": ("mpy_kv.eviction", "mpy_kv.eviction.hybrid"),
    "evict-sieve": ("mpy_kv.eviction", "mpy_kv.eviction.sieve"),
    "evict-s3fifo": ("mpy_kv.eviction", "mpy_kv.eviction.s3fifo"),
}

# Kernel sets by the name of their file, in the order of what they need: of a compiler of native code, of an
# Arm core. Files of these names are counted apart from the parts they come with.
KERNEL_SETS = ("viper", "thumb")

# Stands in for what boards have built in, and is never copied.
HOST_ONLY = ("mpy_kv.cpython",)

# These read sources of native code, and are not copied with compiled modules unless the whole package is.
SOURCES_ONLY = ("mpy_kv.sources", "mpy_kv.undecorated")

# Modules that import what a name says at run time: the names are the table's, none is followed.
REGISTRIES = {
    "mpy_kv.codecs": "element types",
    "mpy_kv.kernels": "element types",
    "mpy_kv.eviction": "policies",
}
