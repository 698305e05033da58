"""Start-up check: as that of int8, on caches of this element type."""

from ..selfcheck import compare as _compare


def compare(reference, candidate):
    """As mpy_kv.kernels.selfcheck.compare."""
    return _compare(reference, candidate, "sparse")
