"""The geometry and the cache of one sequence, for whatever element type a program is given.

Loads what that type needs and no more: sealed blocks for int4, layers that differ for a list of types, else
what mpy_kv has loaded anyway. Allocates as the classes do.
"""

from .geometry import Geometry


def geometry_for(codec, *shape, **options):
    """A Geometry, of int4 a SealedGeometry, of a list or tuple (a type a layer) a MixedGeometry. shape,
    options: what they take. BadArgument as they raise it."""
    if isinstance(codec, (list, tuple)):
        from .per_layer import MixedGeometry as made
    elif isinstance(codec, str) and codec == "int4":  # of a numpy array it would be an array
        from .int4_blocks import SealedGeometry as made
    else:
        made = Geometry
    return made(*shape, codec=codec, **options)


def cache_for(geometry, *arguments, **options):
    """The cache that stores a sequence of that geometry: KVCache, SealedCache or MixedCache. arguments,
    options: what they take. BadArgument as they raise it."""
    if getattr(geometry, "sealed", False):
        from .int4_blocks import SealedCache as made
    elif isinstance(getattr(geometry, "codec", None), tuple):
        from .per_layer import MixedCache as made
    else:
        from .cache import KVCache as made
    return made(geometry, *arguments, **options)
