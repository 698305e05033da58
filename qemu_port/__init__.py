"""MicroPython's 32-bit firmware on an emulated Cortex-M3: what the unix port cannot show of a board.

Run a script, from a shell:

    python -m qemu_port script.py [ARGUMENTS...] [--heap BYTES] [--fence BYTES] [--compiled]

and from Python:

    from qemu_port.board import Qemu
    with Qemu(heap_bytes=512 * 1024) as board:
        done = board.run(Path("script.py"), ["an argument"])   # or source text instead of a Path
        done.stdout, done.status, board.report["heap_live_end_bytes"]

`Qemu(machine=machines.RV32)` and `--machine rv32` are the same on a 32-bit RISC-V core.
`board` starts a machine for each run; `launcher.emulate` runs a script behind a board's fence and reports as
unix_port.launcher does; `side/` is what runs on the board. The firmware comes from tools/firmware.
"""
