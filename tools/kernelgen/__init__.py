"""Kernels in Thumb assembler, written in Python: `sources` say what thumb.py files below mpy_kv are made of.

A source is a function that puts down one instruction after another (thumb.py, moves.py), with the names
that fields have in tools/field_tables and words on the stack in its frame (operands.py). A loop or a
condition is a `with` (flow.py), what several kernels have in common a function (`fragments`). The files are
made by `python tools/generate_kernels.py --write`.
"""
