"""Runs inside the unix port: takes the flash, draws the fence, runs the script, reports.

    micropython boot.py CONFIG.json SCRIPT [ARGUMENTS...]

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


config = load(sys.argv[1])

# One read of the exact size is one allocation: no growing, no copy.
with open(config["flash_file"], "rb") as file:
    image = file.read(config["flash_bytes"])

from time import ticks_diff, ticks_us

import micropython
from emu import begin, board, flash, native, watch, write_records

board.NAME = config["board"]
board.CLOCK_HZ = config["clock_hz"]
board.CLOCK_MAX_HZ = config["clock_max_hz"]
board.PARTITION = config["partition"]
flash.attach(image, config["erase_bytes"], config["program_bytes"], config["cut_after"])
# Imported here and not first by the script: their memory is the emulator's.
import machine

__import__(config["port"])


def one_line(error):
    """Type and text of an exception in one line, or None."""
    if error is None:
        return None
    text = str(error)
    return type(error).__name__ + (": " + text if text else "")


def run():
    """The script. Names of exceptions are locals: a full heap has no room for a new global."""
    global error, outcome, status
    try:
        execfile(script, names)
    except SystemExit as stop:
        status = stop.args[0] if stop.args else 0
        status = 0 if status is None else status if type(status) is int else 1
        outcome = "failed" if status else "ok"
    except MemoryError as full:
        error, outcome, status = full, "does not fit", 1
    except flash.PowerCut as cut:
        error, outcome, status = cut, "power cut", 1
    except KeyboardInterrupt as stop:
        error, outcome, status = stop, "interrupted", 130
    except BaseException as other:
        error, outcome, status = other, "failed", 1


def write_report(path):
    code = native.code_bytes()
    figures = {
        "outcome": outcome,
        "status": status,
        "error": one_line(error),
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
    }
    with open(path, "w") as file:
        json.dump(figures, file)
        file.write("\n")
        write_records(file)


import json

sys.argv[:] = sys.argv[2:]
script = sys.argv[0]
sys.path[0] = script.rsplit("/", 1)[0] if "/" in script else ""
names = {"__name__": "__main__"}
native_before = native.code_bytes()
# What is assigned while the script runs exists before the fence: a growing dict is an allocation.
error = ballast = None
outcome = "ok"
status = started_us = elapsed_us = allocated = live = limit = own = excess = 0
watch.install()

# The fence. First small pieces of ballast, one garbage collector's block each, which come to lie
# in the holes that loading has left at the bottom of the heap; then the rest in one. What stays
# free is one piece.
_BLOCK = 32 if sys.maxsize > 0x7FFFFFFF else 16
_REPORT_BYTES = 64 * 1024  # of ballast in one piece: room to write the report in
gc.collect()
own = gc.mem_alloc()
excess = gc.mem_free() - config["heap_bytes"]
if excess < _REPORT_BYTES:
    raise RuntimeError("the process was started with too little heap for the emulator itself")
while excess > _REPORT_BYTES:
    ballast = (ballast,)
    excess -= _BLOCK
ballast = (ballast, watch.real_bytearray(excess - 2 * _BLOCK))
gc.collect()
limit = gc.mem_free()
begin(gc.mem_alloc())
allocated = micropython.mem_total()
started_us = ticks_us()
run()
elapsed_us = ticks_diff(ticks_us(), started_us)
allocated = micropython.mem_total() - allocated
ballast = None
gc.collect()

# A script that dies between heap_lock and heap_unlock leaves the heap locked.
micropython.heap_lock()
for _ in range(micropython.heap_unlock()):
    micropython.heap_unlock()
gc.collect()
live = gc.mem_alloc() - own  # `names` still holds what the script kept

if error is not None:
    sys.print_exception(error, sys.stderr)
    if "heap is locked" in str(error):
        outcome = "failed"  # it allocated where it had promised not to: no lack of room
write_report(config["report_file"])
if config["flash_out"]:
    with open(config["flash_out"], "wb") as file:
        file.write(image)
sys.exit(status)
