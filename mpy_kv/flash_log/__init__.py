"""A log of records on raw flash that outlives a power cut at any moment. See log.py; format: docs/SPEC.md."""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does.
    from ..undecorated import install_all

    install_all("mpy_kv.flash_log", __file__[: __file__.rfind("/") + 1], ("words", "log", "opening", "files"))

from .log import FlashLog  # noqa: E402

__all__ = ["FlashLog"]
