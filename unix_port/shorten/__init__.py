"""Shortens the machine code that mpy-cross makes for ARMv6-M: the same computations in fewer bytes.

mpy-cross decides how long a jump is before it knows where it goes, and fills the rest with nops; it puts
each number between the instructions that need it, with a jump around; it moves operands through registers
of their own. `modules.shortened(data)` takes a .mpy file and gives one, `code.py` reads and writes a
function's machine code, `passes.py` has what is done to it, each step by what registers are still needed
(`live.py`). A function that is not understood to the last instruction is left as it is.
"""
