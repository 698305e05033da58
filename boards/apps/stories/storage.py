"""Where a board keeps its model: read where it lies if the port can, else a file."""

FILE = "model.mkvm"


def in_flash():
    """A read-only view of the board image in an RP2's storage region, where it lies, or None.

    Looks at the start of every block; the checksum tells an image from what begins like one.
    """
    from .errors import ImageError
    from .image import Image

    try:
        import rp2

        flash = memoryview(rp2.Flash())
    except (ImportError, TypeError):  # another port; before 1.25 the flash has no view
        return None
    for start in range(0, len(flash), 4096):
        if flash[start : start + 4] == b"MKVM":
            try:
                Image(flash[start:])
                return flash[start:]
            except ImageError:
                pass
    return None


def find(file=FILE):
    """The model of this board: a path or a view, or None. ROMFS and raw flash come first: they are read
    where they lie, a file on littlefs row by row."""
    for source in ("/rom/" + file, None, file):
        if source is None:
            view = in_flash()
            if view is not None:
                return view
            continue
        try:
            open(source, "rb").close()
            return source
        except OSError:
            pass
    return None
