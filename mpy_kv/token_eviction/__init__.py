"""One sequence that keeps a budget of tokens, chosen by what attention they get.

    from mpy_kv.token_eviction import BudgetCache
    cache = BudgetCache(Geometry(5, 8, 4, 8, window=64, sinks=4), policy="window-lru")
    # steps as KVCache's; cache.compress(0.5) after a prefill drops the less worthy half

cache         BudgetCache
table         where tokens lie
setup         arrays and numbers of a new one
compression   compress, and what mends a table after an exception
raise_errors  its errors
"""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does.
    from ..undecorated import install_all

    install_all(
        "mpy_kv",
        __file__[: __file__.rfind("token_eviction/")],
        ("token_eviction.table", "token_eviction.cache"),
    )

from .cache import BudgetCache  # noqa: E402, F401
