"""A poor file system in RAM: runs full in many ways, refuses to rename, and a power cut leaves any part of
what was not synced, in any order.

Asked as the file store asks (mpy_kv/file_store: Files), on CPython and MicroPython, or mounted in
MicroPython. Pure Python, as nor.py is.

full: what happens when there is no room: "short", write() takes less; "write", it raises; "flush" and
"close", only these raise; "silent", nothing does, and the file is empty. rename_error: a number of an error,
or 0. before: called with kind and path before each operation that changes something, and may raise.
"""

FULL = ("short", "write", "flush", "close", "silent")
_ENOENT = 2
_EEXIST = 17
_ENOSPC = 28


class PoorNode:
    """A file's bytes, whatever its name. kept: those that are on the storage."""

    def __init__(self, data=b""):
        self.data = bytearray(data)
        self.kept = bytearray(data)


class PoorFile:
    def __init__(self, fs, node, path, writes):
        self.fs = fs
        self.node = node
        self.path = path
        self.writes = writes
        self.at = 0
        self.lost = False  # there was no room for something that was taken

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def readinto(self, into):
        piece = self.node.data[self.at : self.at + len(into)]
        into[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)

    def read(self, size=-1):
        into = bytearray(len(self.node.data) - self.at if size < 0 else size)
        n = self.readinto(into)
        return bytes(into[:n])

    def write(self, piece):
        fs = self.fs
        fs.do("write", self.path)
        piece = bytes(piece)
        free = max(0, fs.room - fs.used())
        if len(piece) > free:
            if fs.full == "write":
                raise OSError(_ENOSPC)
            if fs.full == "short":
                piece = piece[:free]
            else:
                self.lost = True
                return len(piece)
        self.node.data[self.at : self.at + len(piece)] = piece
        fs.pending.append(("write", self.node, self.at, piece))
        self.at += len(piece)
        return len(piece)

    def flush(self):
        self.fs.flush(self)

    def close(self):
        if not self.writes:
            return
        self.writes = False
        self.fs.open_nodes.remove(self.node)
        if self.lost:
            self.node.data[:] = b""
            self.fs.pending.append(("empty", self.node))
            if self.fs.full != "silent":
                raise OSError(_ENOSPC)


class PoorFiles:
    def __init__(self, room=1 << 30, full="write", names_at_once=False):
        self.room = room
        self.full = full
        self.names_at_once = names_at_once  # as littlefs has them
        self.rename_error = 0
        self.before = None
        self.here = {}  # by path a PoorNode, as a program sees it
        self.kept = {}  # as the storage has it
        self.folders = {"/", ""}
        self.pending = []  # operations that are not synced, in their order
        self.open_nodes = []

    def do(self, kind, path):
        if self.before is not None:
            self.before(kind, path)

    def used(self):
        names = set(id(node) for node in self.here.values())
        extra = [node for node in self.open_nodes if id(node) not in names]
        return sum(len(node.data) for node in self.here.values()) + sum(len(node.data) for node in extra)

    # As mpy_kv.file_store.Files

    def open(self, path, mode):
        if "w" in mode:
            self.do("create", path)
            node = PoorNode()
            self.here[path] = node
            self._named(("create", path, node))
            self.open_nodes.append(node)
            return PoorFile(self, node, path, True)
        return PoorFile(self, self._node(path), path, False)

    def names(self, folder):
        start = folder.rstrip("/") + "/"
        for path in sorted(self.here):
            if path.startswith(start) and "/" not in path[len(start) :]:
                yield path[len(start) :]

    def size(self, path):
        return len(self.here[path].data) if path in self.here else -1

    def mkdir(self, path):
        if path in self.folders:
            raise OSError(_EEXIST)
        self.folders.add(path)

    def rename(self, old, new):
        self.do("rename", old)
        node = self._node(old)
        if self.rename_error:
            raise OSError(self.rename_error)
        del self.here[old]
        self.here[new] = node
        self._named(("rename", old, new, node))

    def remove(self, path):
        self.do("remove", path)
        self._node(path)
        del self.here[path]
        self._named(("remove", path))

    def flush(self, f):
        """The file's bytes are on the storage, whatever its name is there."""
        self.do("flush", f.path)
        if f.lost and self.full == "flush":
            raise OSError(_ENOSPC)
        self.pending = [each for each in self.pending if each[1] is not f.node or each[0] == "create"]
        f.node.kept = bytearray(f.node.data)

    def sync(self, folder):
        """The names are, whatever of the files' bytes is."""
        self.do("sync", folder)
        rest = []
        for each in self.pending:
            if each[0] in ("write", "empty"):
                rest.append(each)
            else:
                _apply(each, self.kept)
        self.pending = rest

    def _node(self, path):
        if path not in self.here:
            raise OSError(_ENOENT)
        return self.here[path]

    def _named(self, each):
        if self.names_at_once:
            _apply(each, self.kept)
        else:
            self.pending.append(each)

    # The power

    def after_cut(self, chance):
        """Another file system: what a cut here may leave. chance(n): a number below n."""
        left = PoorFiles(self.room, self.full, self.names_at_once)
        left.folders = set(self.folders)
        nodes = {}

        def of(node):
            if id(node) not in nodes:
                nodes[id(node)] = PoorNode(node.kept)
            return nodes[id(node)]

        for path in self.kept:
            left.here[path] = of(self.kept[path])
        # Mostly some of all; at times nothing but names, or nothing but bytes.
        kind = chance(4)
        for each in self.pending:
            bytes_only = each[0] in ("write", "empty")
            lives = chance(2) if kind < 2 else bytes_only == (kind == 2)
            if not lives:
                continue
            if each[0] == "write":
                _, node, at, piece = each
                data = of(node).data
                n = len(piece) if chance(4) else chance(len(piece) + 1)
                if n:
                    data.extend(bytes(max(0, at - len(data))))
                    data[at : at + n] = piece[:n]
            elif each[0] == "empty":
                of(each[1]).data[:] = b""
            elif each[0] == "create":
                left.here[each[1]] = of(each[2])
            elif each[0] == "rename":
                left.here.pop(each[1], None)
                left.here[each[2]] = of(each[3])
            else:
                left.here.pop(each[1], None)
        for path in left.here:
            node = left.here[path]
            node.kept = bytearray(node.data)
            left.kept[path] = node
        return left

    # As MicroPython's file systems, mounted at "/x": paths begin with "/" there.

    def mount(self, readonly, mkfs):
        pass

    def umount(self):
        pass

    def ilistdir(self, path):
        for name in self.names(path):
            yield (name, 0x8000, 0)

    def stat(self, path):
        if path.rstrip("/") in self.folders:
            return (0x4000, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        return (0x8000, 0, 0, 0, 0, 0, len(self._node(path).data), 0, 0, 0)


def _apply(each, names):
    """A change of names."""
    if each[0] == "create":
        names[each[1]] = each[2]
    elif each[0] == "rename":
        names.pop(each[1], None)
        names[each[2]] = each[3]
    else:
        names.pop(each[1], None)
