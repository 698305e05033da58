"""Runs many cases of cases.py in one start.

usage: all_cases.py OUT KERNELS CASE...    writes [case, its result] as JSON, one a line, with every float
as the hex of its float32: a board prints them with fewer digits
"""

import binascii
import json
import struct
import sys

import cases
from mpy_kv import kernels


def exact(value):
    if isinstance(value, float):
        return binascii.hexlify(struct.pack("<f", value)).decode()
    if isinstance(value, (list, tuple)):
        return [exact(x) for x in value]
    if isinstance(value, dict):
        return {key: exact(x) for key, x in value.items()}
    return value


if __name__ == "__main__":
    the_set = kernels.get(sys.argv[2])
    with open(sys.argv[1], "w") as out:
        for name in sys.argv[3:]:
            out.write(json.dumps([name, exact(cases.CASES[name](the_set))]))
            out.write("\n")
