"""The memory bus as a resource that work is admitted to: how much of it is used, who may use it next, and
copies that go over it in few bursts. Imported by nothing: each module is asked for by itself.
"""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does, for each part that is there.
    from ..undecorated import install_all

    _folder = __file__[: __file__.rfind("/") + 1]
    try:
        install_all("mpy_kv.bus", _folder, ("tracker", "rates"))
    except OSError:
        pass
    try:
        install_all("mpy_kv.bus", _folder, ("copying", "queue", "tasks"))
    except OSError:
        pass
