"""The bytes of a board image that is a file and whose tables find no room in memory."""

_PAGE = 32


class Image:
    """By index, a few read at a time. They stay what they are."""

    def __init__(self, image):
        self._image = image
        self._page = bytearray(_PAGE)
        self._at = -_PAGE

    def __getitem__(self, at):
        if not 0 <= at - self._at < _PAGE:
            self._at = min(at, self._image.total_bytes - _PAGE)
            self._image.read(self._at, self._page, _PAGE)
        return self._page[at - self._at]
