"""Short names for long paths: what a script costs must not depend on where its files lie.

The interpreter keeps the name of every module it opens, and of every folder it looks in, in its heap,
and one of 256 bytes or more ends the process. So it sees only links, in a folder whose own name is of
one length wherever the repository, the script and TMPDIR are.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from types import TracebackType

from unix_port.errors import PortError

# POSIX promises this one. TMPDIR is for what is large; here are only links.
PARENT = Path("/tmp")

# Of the folder of links, where PARENT is not writable: leaves 156 bytes for the names of modules.
MOST_BYTES = 99


class Names:
    """A folder of links. A context manager; OSError when no folder can be made.

    `/tmp/kvlab-` and 8 characters; below TMPDIR only on a system without a writable /tmp, and then
    the heap that names take does depend on it.
    """

    def __init__(self) -> None:
        try:
            self._owner = tempfile.TemporaryDirectory(prefix="kvlab-", dir=PARENT)
        except OSError:
            self._owner = tempfile.TemporaryDirectory(prefix="kvlab-")
        self.folder = self._owner.name
        self._stands_for: dict[str, str] = {}

    def __enter__(self) -> Names:
        if len(self.folder.encode(errors="surrogateescape")) > MOST_BYTES:
            self._owner.cleanup()
            raise PortError(
                f"the interpreter takes no folder with a name as long as {self.folder};"
                " let TMPDIR name a shorter one"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._owner.cleanup()

    def give(self, name: str, path: Path, shown: str | None = None) -> str:
        """Let `name` in the folder lead to `path`, and return it with the folder. `restore` puts
        `shown` in its place, or the whole path.
        """
        target = path.absolute()
        (Path(self.folder) / name).symlink_to(target)
        self._stands_for[name] = str(target) if shown is None else shown
        return f"{self.folder}/{name}"

    def restore(self, text: str) -> str:
        """`text`, say a traceback, with the true paths instead of the names."""

        def true(found: re.Match[str]) -> str:
            return self._stands_for.get(found[1], found[0])

        return re.sub(re.escape(self.folder) + r"/([\w.]+)", true, text)
