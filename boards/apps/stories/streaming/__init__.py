"""Weights that come from flash into RAM while the core computes: streamed.py says how, making.py begins."""
