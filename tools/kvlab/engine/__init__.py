"""The host's engine: the device's own transitions, compiled.

Pools of mpy_kv keep their state in arrays and change it in module-level functions of ints and arrays, marked
`@micropython.native`. Here numba compiles those very functions, from the files the device runs; nothing is
written twice.
"""
