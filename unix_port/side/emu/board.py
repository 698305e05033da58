"""The facts of the emulated board, filled in by boot before any stand-in is imported."""

NAME = ""
CHIP = ""
CLOCK_HZ = 0
CLOCK_MAX_HZ = 0
PARTITION = None  # {label, subtype, address} on esp32 boards
