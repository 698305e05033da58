"""A sequence that goes on after a power cut: its tokens in a flash log, block by block. See blocks.py."""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does.
    from ..undecorated import install_all

    install_all("mpy_kv.resume", __file__[: __file__.rfind("/") + 1], ("blocks",))

from .blocks import BlockLog  # noqa: E402

__all__ = ["BlockLog"]
