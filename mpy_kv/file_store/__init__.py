"""Records of sequences as plain files in a folder, on any file system. See store.py; format: docs/SPEC.md."""

from .store import FileStore, Files, shape_of

__all__ = ["FileStore", "Files", "shape_of"]
