"""The fields of mpy_kv's arrays of parameters and state: one table makes the indexes of all that use them.

MicroPython folds `_NAME = const(n)` within the file that has it, in bytecode, native, viper and asm_thumb
alike, and what is imported not at all. So each file has the lines that it uses, between two marks, which name
the tables:

    # fields: attend, encode
    _N = const(0)
    # end of fields

`python tools/fields.py --write` makes them from the tables here; without `--write` it refuses other lines,
and a number where an array of a table is indexed.
"""
