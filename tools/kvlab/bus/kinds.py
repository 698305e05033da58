"""Kinds of traffic, numbered as the device's tracker has them (a test compares)."""

KV_READ, KV_WRITE, WEIGHTS, IO = range(4)
KINDS = ("KV read", "KV write", "weights", "I/O")
