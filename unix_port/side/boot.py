"""Runs inside the unix port: takes the flash, draws the fence, runs the script, reports.

    micropython -c 'import sys; sys.path[0] = sys.argv[1] + "/side"; import boot' FOLDER

FOLDER holds links (unix_port/names.py): data (with the files config and flash; this writes report and,
when asked to, flash_after), main.py (the script), home (its folder) and the folders of modules.

The process is started with more heap than the board has. What the emulator needs comes out of that
first, the flash image before all else; a block of ballast then takes what is left over, so that
the script starts with `gc.mem_free()` equal to the board's, in one piece but for small holes. The
ballast goes when the script has ended: there is room to tell how it ended even when the heap was
full.
"""

import gc
import sys


def load(path):
    """A JSON file. A function, so that its names are gone when the flash is read."""
    import json

    with open(path) as file:
        return json.load(file)


folder = sys.argv[1]
open(folder + "/data/report", "w").close()  # an interpreter was here, whatever comes of it
config = load(folder + "/data/config")

# One read of the exact size is one allocation: no growing, no copy.
with open(folder + "/data/flash", "rb") as file:
    image = file.read(config["flash_bytes"] + 1)

below = b""
if config.get("below_bytes"):
    with open(folder + "/data/below", "rb") as file:
        below = file.read(config["below_bytes"])

from time import ticks_diff, ticks_us

import micropython
from emu import at_sample, begin, board, flash, native, watch, write_records
from emu.text import brief

board.NAME = config["board"]
board.CHIP = config.get("chip", "")
board.CLOCK_HZ = config["clock_hz"]
board.CLOCK_MAX_HZ = config["clock_max_hz"]
board.PARTITION = config["partition"]
flash.attach(
    *(image, config["erase_bytes"], config["program_bytes"], config["cut_after"]),
    torn=config.get("torn"),
    state=config.get("flash_state"),
)
flash.below = below
flash.storage_at = config.get("storage_at", 0)
if config.get("cut_at_sample"):
    at_sample(config["cut_at_sample"], flash.cut_next)
if config.get("mount"):
    import os

    os.mount(os.VfsLfs2(flash.BlockDevice(0, flash.size), progsize=flash.program_bytes), config["mount"])
# Imported here and not first by the script: their memory is the emulator's.
import machine

__import__(config["port"])


def run():
    """The script. Names of exceptions are locals: a full heap has no room for a new global."""
    global error, exit, outcome, status
    try:
        execfile(script, names)
    except SystemExit as stop:
        exit = stop
    except MemoryError as full:
        error, outcome, status = full, "does not fit", 1
    except flash.PowerCut as cut:
        error, outcome, status = cut, "power cut", 1
    except KeyboardInterrupt as stop:
        error, outcome, status = stop, "interrupted", 130
    except BaseException as other:
        error, outcome, status = other, "failed", 1


def exit_status(stop):
    """What a SystemExit asks for: None or a number, and all else is a message and means 1."""
    value = stop.args[0] if len(stop.args) == 1 else stop.args or None
    if value is None:
        return 0
    if type(value) in (int, bool):
        return int(value) & 255
    print(brief(value), file=sys.stderr)
    return 1


def show(error):
    """Its traceback, on stderr."""
    try:
        sys.print_exception(error, sys.stderr)
    except BaseException:  # its own __str__, in the last line
        print("%s: %s" % (type(error).__name__, brief(error)), file=sys.stderr)


def error_text(error):
    """Type and text of an exception, or None."""
    if error is None:
        return None
    text = brief(error)
    return type(error).__name__ + (": " + text if text else "")


def write_report(path):
    code = native.code_bytes()
    figures = {
        "outcome": outcome,
        "status": status,
        "error": error_text(error),
        "heap_limit_bytes": limit,
        "heap_live_end_bytes": live,
        "allocated_bytes": allocated,
        "largest_object_bytes": watch.largest_bytes,
        "largest_object_kind": watch.largest_kind,
        "native_code_bytes": None if code is None else code - native_before,
        "clock_hz": machine.freq(),
        "seconds": elapsed_us / 1000000,
        "flash_erases": flash.erases,
        "flash_programs": flash.programs,
        "flash_lost_bits": flash.lost_bits,
        "flash_state": flash.state(),
    }
    with open(path, "w") as file:
        json.dump(figures, file)
        file.write("\n")
        write_records(file)


import json

sys.argv[:] = config["argv"]
script = folder + "/main.py"
sys.path[0] = folder + "/home"
names = {"__name__": "__main__"}
native_before = native.code_bytes()
# What is assigned while the script runs exists before the fence: a growing dict is an allocation.
error = exit = ballast = None
outcome = "ok"
status = started_us = elapsed_us = allocated = live = limit = base = excess = depth = 0
watch.install()

# The fence. First small pieces of ballast, one garbage collector's block each, which come to lie
# in the holes that loading has left at the bottom of the heap; then the rest in one. What stays
# free is one piece.
_BLOCK = 32 if sys.maxsize > 0x7FFFFFFF else 16
_REPORT_BYTES = 64 * 1024  # of ballast in one piece: room to write the report in
_LONG_NAME = "-" * 200
gc.collect()
excess = gc.mem_free() - config["heap_bytes"]
if excess < 2 * _REPORT_BYTES:
    raise RuntimeError("the process was started with too little heap for the emulator itself")
while excess > _REPORT_BYTES:
    ballast = (ballast,)
    excess -= _BLOCK
# Names of modules and attributes lie in pieces of 128 bytes or more, and how full the last one is
# depends on how loading went. This name is a piece of its own, with no room behind it: every script
# starts with the same, none.
hasattr(sys, _LONG_NAME)
excess = gc.mem_free() - config["heap_bytes"]
ballast = (ballast, watch.real_bytearray(excess - 2 * _BLOCK))
gc.collect()
limit = gc.mem_free()
base = gc.mem_alloc()
begin(base)
allocated = micropython.mem_total()
started_us = ticks_us()
run()
elapsed_us = ticks_diff(ticks_us(), started_us)
allocated = micropython.mem_total() - allocated

# A script that dies between heap_lock and heap_unlock leaves the heap locked.
micropython.heap_lock()
for depth in range(micropython.heap_unlock()):
    micropython.heap_unlock()
gc.collect()
live = gc.mem_alloc() - base  # `names` still holds what the script kept
ballast = None
gc.collect()

if exit is not None:
    status = exit_status(exit)
    outcome = "failed" if status else "ok"
if error is not None:
    show(error)
    if "heap is locked" in brief(error):
        outcome = "failed"  # it allocated where it had promised not to: no lack of room
try:
    write_report(folder + "/data/report")
    if config["keep_flash"]:
        with open(folder + "/data/flash_after", "wb") as file:
            file.write(memoryview(image)[: config["flash_bytes"]])
except BaseException as full:  # a disk, as a rule; uncaught it would go to stdout
    sys.print_exception(full, sys.stderr)
    status = 1
sys.exit(status)
