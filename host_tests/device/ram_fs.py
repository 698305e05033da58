"""A file system in a board's RAM, for firmware that has none: `vfs.mount(RamFS(), "/")`.

Knows what `kvlab deploy` and import ask for. Folders and files are entries of one dict, by their path.
"""

import io
import os
import vfs

BLOCK = 512
BLOCKS = 2048


class RamFile(io.IOBase):
    def __init__(self, data, text):
        self.data = data
        self.text = text
        self.at = 0

    def readinto(self, into):
        piece = self.data[self.at : self.at + len(into)]
        into[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)

    def read(self, size=-1):
        into = bytearray(len(self.data) - self.at if size < 0 else size)
        n = self.readinto(into)
        return str(into[:n], "utf8") if self.text else bytes(into[:n])

    def __iter__(self):
        return self

    def __next__(self):
        end = self.data.find(b"\n", self.at) + 1 or len(self.data)
        if self.at == end:
            raise StopIteration
        line = bytes(self.data[self.at : end])
        self.at = end
        return str(line, "utf8") if self.text else line

    def write(self, data):
        self.data.extend(data)
        return len(data)

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, len(self.data))[whence]
        return self.at

    def tell(self):
        return self.at

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *why):
        pass

    def ioctl(self, request, argument):
        return 256 if request == 11 else 0  # the size of the buffer an import reads with


class RamFS:
    def __init__(self):
        self.entries = {"/": None}
        self.here = "/"

    def path(self, name):
        whole = name if name.startswith("/") else self.here.rstrip("/") + "/" + name
        whole = whole.replace("/./", "/")
        if whole.endswith("/."):
            whole = whole[:-2]
        return whole.rstrip("/") or "/"

    def known(self, name):
        path = self.path(name)
        if path not in self.entries:
            raise OSError(2)
        return path

    def mount(self, readonly, mkfs):
        pass

    def umount(self):
        pass

    def chdir(self, name):
        self.here = self.known(name or "/")

    def getcwd(self):
        return self.here

    def open(self, name, mode):
        path = self.path(name)
        if "w" in mode:
            self.entries[path] = bytearray()
        elif self.entries[self.known(name)] is None:
            raise OSError(21)
        return RamFile(self.entries[path], "b" not in mode)

    def stat(self, name):
        data = self.entries[self.known(name)]
        if data is None:
            return (0x4000, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        return (0x8000, 0, 0, 0, 0, 0, len(data), 0, 0, 0)

    def mkdir(self, name):
        self.entries[self.path(name)] = None

    def remove(self, name):
        del self.entries[self.known(name)]

    def rename(self, old, new):
        self.entries[self.path(new)] = self.entries.pop(self.known(old))

    def ilistdir(self, name):
        start = self.known(name).rstrip("/") + "/"
        for path in sorted(self.entries):
            if path.startswith(start) and path != "/" and "/" not in path[len(start) :]:
                data = self.entries[path]
                yield (path[len(start) :], 0x4000 if data is None else 0x8000, 0)

    def statvfs(self, name):
        used = sum(len(data) // BLOCK + 1 for data in self.entries.values() if data is not None)
        return (BLOCK, BLOCK, BLOCKS, BLOCKS - used, BLOCKS - used, 0, 0, 0, 0, 255)


vfs.mount(RamFS(), "/")
os.chdir("/")
