"""main.py of a Raspberry Pi Pico 2: tells a story at power-up, then another, and so on.

Needs mpy_kv and stories in /lib and a board image of a model; boards/rp2350/README.md says how each
gets there. On an emulator sys.argv holds options of the app, and the image is in the flash.
"""

import sys

import rp2
import stories

TOKENS = 1000
FILE = "model.mkvm"


def in_flash():
    """A read-only view of the board image in the storage region, where it lies, or None.

    Looks at the start of every block; the checksum tells an image from what begins like one.
    """
    try:
        flash = memoryview(rp2.Flash())
    except TypeError:  # before firmware 1.25 the flash cannot be read where it lies
        return None
    for start in range(0, len(flash), 4096):
        if flash[start : start + 4] == b"MKVM":
            try:
                stories.Image(flash[start:])
                return flash[start:]
            except stories.ImageError:
                pass
    return None


def find_model():
    """ROMFS and raw flash are read where they lie, a file on littlefs row by row."""
    for path in ("/rom/" + FILE, FILE):
        try:
            open(path, "rb").close()
            return path
        except OSError:
            pass
        if path != FILE:
            view = in_flash()
            if view is not None:
                return view
    raise OSError("no model: copy a board image to " + FILE + ", see boards/rp2350/README.md")


stories.main(sys.argv[1:], model=find_model(), tokens=TOKENS)
