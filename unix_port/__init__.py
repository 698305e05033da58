"""The board emulator: runs MicroPython scripts on the unix port behind a board's fence.

`launcher.emulate` is the way in; `port` finds and starts the interpreter; `side/` is what runs
inside it.
"""
