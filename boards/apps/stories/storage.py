"""Where a board keeps its model: read where it lies if the port can, else a file."""

from .errors import ImageError

FILE = "model.mkvm"


def in_flash():
    """A read-only view of the board image in an RP2's storage region, where it lies, or None.

    Looks at the start of every block; the checksum tells an image from what begins like one. Raises
    ImageError, the last reason, if something begins like an image and nothing is one.
    """
    from .image import Image

    try:
        import rp2

        flash = memoryview(rp2.Flash())
    except (ImportError, TypeError):  # another port; before 1.25 the flash has no view
        return None
    wrong = None
    for start in range(0, len(flash), 4096):
        if flash[start : start + 4] == b"MKVM":
            try:
                Image(flash[start:])
                return flash[start:]
            except ImageError as error:
                wrong = "at byte %d of the flash: %s" % (start, error)
    if wrong:
        raise ImageError(wrong)
    return None


def find(file=FILE):
    """The model of this board: a path or a view, or None. ROMFS and raw flash come first: they are read
    where they lie, a file on littlefs row by row. Raises ImageError if all there is lies broken in flash."""
    wrong = None
    if _readable("/rom/" + file):
        return "/rom/" + file
    try:
        view = in_flash()
        if view is not None:
            return view
    except ImageError as error:
        wrong = error
    if _readable(file):
        return file
    if wrong is not None:
        raise wrong
    return None


def _readable(path):
    try:
        open(path, "rb").close()
        return True
    except OSError:
        return False
