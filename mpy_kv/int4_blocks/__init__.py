"""int4: a sequence whose older tokens lie in sealed blocks of 16, keys and values in 4 bits.

    from mpy_kv.int4_blocks import SealedCache, SealedGeometry
    cache = SealedCache(SealedGeometry(layers=5, heads=8, kv_heads=4, head_dim=8, window=256))
    # used as a KVCache is; or, for whatever codec a program is given:
    # cache = mpy_kv.cache_for(mpy_kv.geometry_for("int4", 5, 8, 4, 8, window=256))

geometry    SealedGeometry: sizes and strides
cache       SealedCache: the steps
blocks      where tokens lie; sealing, re-opening
"""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does.
    from ..undecorated import install_all

    install_all(
        "mpy_kv", __file__[: __file__.rfind("int4_blocks/")], ("int4_blocks.blocks", "int4_blocks.cache")
    )

from .cache import SealedCache  # noqa: E402, F401
from .geometry import SealedGeometry  # noqa: E402, F401
