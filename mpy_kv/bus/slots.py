"""Slots of a staggered schedule, from a model's shape and a board's figures. Transient (mpy_kv/transient.py),
as it is made once.
"""

from ..errors import BadArgument
from .schedule import IO, KV_READ, KV_WRITE, WEIGHTS, Schedule

GROUP, GROUP_BYTES = 32, 34  # weights of a row are whole groups, each with its scale

# Bytes a second of each kind of slot, by what a board's figures call them.
RATES = ("kv_read", "kv_write", "weights", "io")

MOST = 1 << 40


def make(model, geometry, rates, burst=512, tasks=8):
    """A Schedule. model: has dim, hidden, heads, kv_heads and head_dim, such as an image; geometry: the
    cache's; rates: a dict of bytes a second by RATES; burst: bytes of all tasks' bursts together."""
    return Schedule(slots(model, geometry, rates, burst), tasks)


def slots(model, geometry, rates, burst):
    """(bytes, microseconds) of the longest slot of each kind: of one layer, at a full window."""
    token = geometry.kv_bytes(1)
    of_layer = (token + geometry.layers - 1) // geometry.layers
    by_kind = [0] * 4
    by_kind[KV_READ] = of_layer * geometry.max_visible
    by_kind[KV_WRITE] = of_layer
    by_kind[WEIGHTS] = weights_bytes(model)
    by_kind[IO] = burst
    return [(by_kind[kind], _us(by_kind[kind], rates, RATES[kind])) for kind in range(4)]


def weights_bytes(model):
    """Of a layer, as an image has them: no piece of a step reads more."""
    q = model.heads * model.head_dim
    kv = model.kv_heads * model.head_dim
    of_dim = q + 2 * kv + 2 * model.hidden
    return of_dim * _row(model.dim) + model.dim * (_row(q) + _row(model.hidden))


def _row(n):
    return (n + GROUP - 1) // GROUP * GROUP_BYTES


def _us(nbytes, rates, name):
    rate = rates.get(name)
    if type(rate) is not int or not 0 < rate <= MOST:
        raise BadArgument("rates: %s must be bytes a second, 1..%d, got %r" % (name, MOST, rate))
    return (nbytes * 1000000 + rate - 1) // rate
