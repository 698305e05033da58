"""Where a board keeps its model: read where it lies if the port can, else a file.

Transient (mpy_kv/transient.py): a program looks once.
"""

import sys

from .errors import ImageError
from .image import Image

FILE = "model.mkvm"


def find():
    """The model of this board: a path, an Image that is checked and read where it lies, or None.

    In this order: ROMFS; on an RP2 the flash between firmware and storage, nearest the storage first, then
    the storage region; a file, which is read row by row. What is refused between firmware and storage is told
    on stderr: a file system, whose blocks may begin like an image, is only in the storage. Raises ImageError,
    the last reason, if all there is lies broken in flash.
    """
    if readable("/rom/" + FILE):
        return "/rom/" + FILE
    wrong = None
    try:
        import rp2
        from uctypes import addressof, bytearray_at

        storage = memoryview(rp2.Flash())
    except (ImportError, TypeError):  # another port; before 1.25 the flash has no view
        pass
    else:
        start = addressof(storage)
        end = start + len(storage)
        # The chip sees its flash from a multiple of 16 MiB on.
        for blocks in range(start - 4096, (start & -0x1000000) - 1, -4096), range(start, end, 4096):
            for at in blocks:
                if bytearray_at(at, 4) == b"MKVM":
                    try:
                        return Image(bytearray_at(at, (end if at >= start else start) - at))
                    except ImageError as error:
                        wrong = "flash at 0x%x: %s" % (at, error)
                        if at < start:
                            sys.stderr.write("stories: not taken: %s\n" % wrong)
    if readable(FILE):
        return FILE
    if wrong:
        raise ImageError(wrong)
    return None


def readable(path):
    """Whether there is such a file."""
    try:
        open(path, "rb").close()
        return True
    except OSError:
        return False
