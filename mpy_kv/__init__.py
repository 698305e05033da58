"""mpy_kv: the KV cache of a language model in pure MicroPython.

    from mpy_kv import Geometry, KVCache
    cache = KVCache(Geometry(layers=5, heads=8, kv_heads=4, head_dim=8, window=256, sinks=4))
    # per token: for each layer  cache.append(layer, k, v); cache.attend(layer, q, out)
    # then once                  cache.commit()

A program that is given an element type lets geometry_for(codec, ...) and cache_for(geometry) choose.

Imports nothing but MicroPython's own modules, at import neither time nor asyncio. Memory comes from one
bytearray (Geometry.bytes() says how much); after construction nothing allocates per token, and
kernels.release() gives back what only construction needed.
"""

__version__ = "0.1.0"

import gc as _gc

from . import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # Without an emitter `@micropython.native` does not compile: the same files, decorators left out.
    from .undecorated import install_all

    install_all(
        "mpy_kv",
        __file__[: __file__.rfind("/") + 1],
        (
            "pools.batch",
            "pools.fixed",
            "pools.units",
            "pools.buddy",
            "pools.region",
            "pools.slab",
            "pools.slab_region",
            "value_runs",
            "heads",
            "attention",
            "sequence",
            "cache",
        ),
    )

from . import errors  # noqa: E402, F401
from .cache import KVCache  # noqa: E402, F401
from .factory import cache_for, geometry_for  # noqa: E402, F401
from .geometry import Geometry  # noqa: E402, F401
from .kernels import FAMILY as _FAMILY  # noqa: E402

_FAMILY.check = "mpy_kv.selfcheck"  # makes caches, of which kernels know nothing

if _port.MICROPYTHON:
    # What compiling sources has left: what is loaded next would lie above it and cut the heap into pieces.
    _gc.collect()
