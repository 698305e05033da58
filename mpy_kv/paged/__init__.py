"""Many requests in one arena: block tables, sharing, copy on write, prefixes found again by content.

    from mpy_kv.paged import PagedGeometry, Requests
    g = PagedGeometry(layers=5, heads=8, kv_heads=4, head_dim=8, window=256, block_tokens=16)
    requests = Requests(g, blocks=64, max_requests=4)
    r = requests.open(task=1, reserve_tokens=64, tokens=prompt)
    # r.length prompt tokens are there already; for the others, and each new one:
    #   for each layer  r.append(layer, k, v); r.attend(layer, q, out)
    #   then once       r.commit(token)
    r.close()

blocks      references, free and reusable blocks
prefix      the index: blocks found by the tokens they hold
requests    Requests: open, pin, look
ledger      who holds what, and may take what
request     Request: one sequence in blocks
pages       where its tokens lie
"""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does.
    from ..undecorated import install_all

    install_all(
        "mpy_kv",
        __file__[: __file__.rfind("paged/")],
        (
            "eviction.linked_list",
            "paged.prefix",
            "paged.blocks",
            "paged.pages",
            "paged.request",
            "paged.ledger",
        ),
    )

# Loaded before the arena is made, so that code does not lie behind it.
from . import blocks  # noqa: E402, F401
from .geometry import PagedGeometry  # noqa: E402, F401
from .requests import Requests  # noqa: E402, F401
