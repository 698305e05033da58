"""What a Request says when it refuses: one function a reason, each raises. Lent (mpy_kv/lend.py)."""

from ..errors import BadArgument, BadHandle, Locked, NoRoom


def closed(request):
    raise BadHandle("the request is closed")


def locked(request):
    raise Locked("the request is locked: unlock it before closing")


def unplaced(position):
    raise BadArgument("position %r is in no block of the request" % (position,))


def _no_room(request, why, needed, free):
    requests = request.requests
    raise NoRoom(
        why,
        needed,
        max(free, 0),
        evictable=requests.blocks.meta[3],
        pinned=requests.state[3],
        unit="blocks",
    )


def limit(request, new):
    requests = request.requests
    most = requests.limit[request.row]
    _no_room(
        request,
        "limit_tokens allows this request %d blocks" % most,
        new,
        most - requests.held[request.row],
    )


def room(request, new):
    _no_room(
        request,
        "others hold or have reserved the rest: close requests or give more blocks",
        new,
        request.requests.room(request.row),
    )
