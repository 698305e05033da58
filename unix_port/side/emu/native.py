"""How much machine code the native emitter has made.

The unix port maps executable pages outside the Python heap, at least one a function. A page's code
ends where its trailing zero bytes begin, so the sum over pages is the code to within a few bytes.
"""

from micropython import const
from uctypes import bytearray_at

_PAGE = const(4096)


def code_bytes():
    """Bytes of native and viper code alive now, or None where the system does not tell. Allocates.
    """
    total = 0
    try:
        maps = open("/proc/self/maps")
    except OSError:
        return None
    with maps:
        for line in maps:
            if " rwxp " in line and line.rstrip().endswith(" 0"):
                first, last = line.split(" ", 1)[0].split("-")
                for page in range(int(first, 16), int(last, 16), _PAGE):
                    memory = bytearray_at(page, _PAGE)
                    used = _PAGE
                    while used and memory[used - 1] == 0:
                        used -= 1
                    total += used
    return total
