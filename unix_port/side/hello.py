"""The smallest script: `kvlab emulate unix_port/side/hello.py` shows what a report says."""

import gc

import machine

print("hello from a board with", gc.mem_free(), "bytes free at", machine.freq(), "Hz")
