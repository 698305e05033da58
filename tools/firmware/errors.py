"""The one error of this package."""

from __future__ import annotations


class FirmwareError(ValueError):
    """No firmware can be had: a missing tool, no source, a build that fails. One line, with the remedy."""
