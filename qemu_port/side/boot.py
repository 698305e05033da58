"""Runs on the emulated board: draws the fence, runs the script, reports. hostfs is there before it.

    boot.run(CONFIG)    CONFIG is the path of a JSON file, see qemu_port/board.py

With a fence the script starts with `gc.mem_free()` exactly as asked: what the board has beyond that is
taken by ballast, which goes when the script has ended, so that there is room to tell how it ended.
"""

import gc
import io
import json
import sys

import emu
import micropython
from instructions import PER_TICK, elapsed, ticks

gc.enable()  # what the script before this one turned off stays off when the board starts anew

_BLOCK = 16  # of the garbage collector on a 32-bit board
_HOLES_BYTES = 40 * 1024  # that starting has left in the lower part of the heap, or less

# What is assigned while the script runs exists before the fence: a growing dict is an allocation.
error = ballast = None
outcome = "ok"
status = limit = own = live = allocated = excess = start = ran = 0
names = {"__name__": "__main__"}


def fence(free):
    """Take ballast until `free` bytes of the heap are left.

    First one block at a time, which come to lie in the holes that starting has left at the bottom of
    the heap; the rest of much ballast is one object above them. What stays free is one piece.
    """
    global ballast, excess
    gc.collect()
    excess = gc.mem_free() - free
    if excess < 0:
        raise RuntimeError("the firmware's heap is %d bytes too small for this fence" % -excess)
    whole = excess - _HOLES_BYTES
    if whole < 4 * _BLOCK:
        whole = 0
    excess -= whole
    while excess > 0:
        ballast = (ballast,)
        excess -= _BLOCK
    if whole:
        ballast = (ballast, bytearray(whole - 2 * _BLOCK))
    gc.collect()


def call(script):
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
    except KeyboardInterrupt as stop:
        error, outcome, status = stop, "interrupted", 130
    except BaseException as other:
        error, outcome, status = other, "failed", 1


def one_line(problem):
    """Type and text of an exception in one line, or None."""
    if problem is None:
        return None
    text = str(problem)
    return type(problem).__name__ + (": " + text if text else "")


def run(config):
    global allocated, ballast, limit, live, own, outcome, ran, start
    with open(config) as file:
        config = json.load(file)
    script = config["script"]
    report = config["report"]
    sys.argv[:] = [script] + config["arguments"]
    sys.path[:] = config["path"]
    free = config["heap_bytes"]
    config = file = None
    gc.collect()
    own = gc.mem_alloc()
    if free:
        fence(free)
    limit = gc.mem_free()
    emu.begin(gc.mem_alloc())
    allocated = micropython.mem_total()
    start = ticks()
    call(script)
    ran = elapsed(start, ticks())
    allocated = micropython.mem_total() - allocated
    ballast = None
    # A script that dies between heap_lock and heap_unlock leaves the heap locked.
    micropython.heap_lock()
    for _ in range(micropython.heap_unlock()):
        micropython.heap_unlock()
    gc.collect()
    live = gc.mem_alloc()
    text = io.StringIO()
    if error is not None:
        sys.print_exception(error, text)
        if "heap is locked" in str(error):
            outcome = "failed"  # it allocated where it had promised not to: no lack of room
    with open(report, "w") as file:
        json.dump(
            {
                "outcome": outcome,
                "status": status,
                "error": one_line(error),
                "traceback": text.getvalue(),
                "heap_limit_bytes": limit,
                "heap_live_end_bytes": live - own,
                "allocated_bytes": allocated,
                "instructions": ran * PER_TICK,
                "marks": emu.marks(),
            },
            file,
        )
