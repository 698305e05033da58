"""Which form the tokens of a cache have, and whether now is the time. Transient (mpy_kv/transient.py)."""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, StepError
from ..transient import load_module

# fields: turn
_HIGH = const(2)
_STEP = const(3)
# end of fields


def of(cache):
    """What moves the bytes of this kind of cache (positions.py)."""
    if not hasattr(cache, "placement"):
        raise BadArgument("cache must be one of mpy_kv, got %s" % type(cache).__name__)
    if hasattr(cache, "ledger"):
        cache._alive()
        made = load_module("mpy_kv.snapshot.pages").Pages
    elif hasattr(cache, "plan"):
        made = load_module("mpy_kv.snapshot.chosen").Chosen
    elif getattr(cache.geometry, "sealed", False):
        made = load_module("mpy_kv.snapshot.blocks").Sealed
    else:
        made = load_module("mpy_kv.snapshot.positions").Positions
    return made(cache)


def check_idle(cache):
    """StepError within a step, or after one that was broken off."""
    if cache._turn[_STEP] or cache._turn[_HIGH] > cache.length:
        raise StepError("within a step: commit or abort it first")


def check_empty(cache):
    check_idle(cache)
    if cache.length:
        raise StepError("load into an empty sequence: this one has %d tokens" % cache.length)
