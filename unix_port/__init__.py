"""The board emulator: runs MicroPython scripts on the unix port behind a board's fence.

`launcher.emulate` is the way in and `report.Report` what comes out. `port` finds and starts the
interpreter, `processes` and `pipes` see that it ends and is read, `names` keeps paths out of its heap;
`side/` is what runs inside it.
"""
