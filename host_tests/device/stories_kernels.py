"""Calls kernels of the stories app on recorded arguments; the same file under CPython and MicroPython.

usage: stories_kernels.py CASES OUT KERNELS
CASES, OUT: a JSON value a line. Case: [kernel, [argument, ...]]; an argument is an int or ["B" | "h" |
"H" | "i", hex of its bytes]. Result: [returned int, hex of every buffer, in order].
"""

import binascii
import json
import sys
from array import array

from stories import kernels


def run(case, functions):
    name, arguments = case
    values = []
    for a in arguments:
        if not isinstance(a, int):
            data = binascii.unhexlify(a[1])
            a = bytearray(data) if a[0] == "B" else array(a[0], data)
        values.append(a)
    returned = getattr(functions, name)(*values)
    buffers = [binascii.hexlify(bytes(v)).decode() for v in values if not isinstance(v, int)]
    return [returned] + buffers


if __name__ == "__main__":
    the_set = kernels.get(sys.argv[3])
    with open(sys.argv[1]) as cases, open(sys.argv[2], "w") as out:
        for line in cases:
            out.write(json.dumps(run(json.loads(line), the_set)))
            out.write("\n")
