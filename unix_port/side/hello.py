"""The smallest script: `kvlab emulate unix_port/side/hello.py` shows what a report says."""

import gc

import machine

hz = machine.freq() if hasattr(machine, "freq") else "its own number of"
print("hello from a board with", gc.mem_free(), "bytes free at", hz, "Hz")
