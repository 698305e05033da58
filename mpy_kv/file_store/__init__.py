"""Records of sequences as plain files in a folder, on any file system. See store.py; format: docs/SPEC.md."""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does.
    from ..undecorated import install_all

    install_all("mpy_kv.file_store", __file__[: __file__.rfind("/") + 1], ("store",))

from .store import FileStore, Files, shape_of  # noqa: E402

__all__ = ["FileStore", "Files", "shape_of"]
