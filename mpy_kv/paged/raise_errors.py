"""What a Request says when it refuses: one function a reason, each raises. Transient (mpy_kv/transient.py).
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, BadHandle, Locked, NoRoom

# fields: blocks, requests
_REUSABLE = const(3)
_PINNED = const(3)
# end of fields


def closed(request):
    raise BadHandle("the request is closed")


def locked(request):
    raise Locked("the request is locked: unlock it before closing")


def unplaced(position):
    raise BadArgument("position %r is in no block of the request" % (position,))


def _no_room(request, why, needed, free):
    ledger = request.ledger
    raise NoRoom(
        why,
        needed,
        max(free, 0),
        evictable=ledger.blocks.meta[_REUSABLE],
        pinned=ledger.state[_PINNED],
        unit="blocks",
    )


def limit(request, new):
    ledger = request.ledger
    most = ledger.limit[request.row]
    _no_room(
        request,
        "limit_tokens allows this request %d blocks" % most,
        new,
        most - ledger.held[request.row],
    )


def room(request, new, room):
    _no_room(request, "others hold or have reserved the rest: close requests or give more blocks", new, room)
