"""What the app raises besides mpy_kv.errors."""


class ImageError(ValueError):
    """The board image is foreign, truncated, damaged, or of a shape this program cannot run."""
