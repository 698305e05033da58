"""Parts of mpy_kv that a board can leave out: what belongs to each, and the files that a program needs.

`table.py` names the parts, `closure.py` follows their imports without importing anything, `ask.py` says which
parts a story or a program takes. Standard library and mpy_kv alone: tools/package_json.py runs
without the rest.
"""
