"""A log of records on raw flash that outlives a power cut at any moment. See log.py; format: docs/SPEC.md."""

from .log import FlashLog

__all__ = ["FlashLog"]
