"""Pieces that several kernels have. A register that a call does not name stands in the docstring."""
