"""Importing this makes mpy_kv one of a port without native code: its trial of the emitter is made to fail, so
that the package takes the path of such ports, its files with native decorators left out."""

import sys

with open(__file__[: __file__.rfind("/") + 1] + "../../mpy_kv/port.py") as f:
    text = f.read()
assert text.count("EMITTER = True") == 1
names = {"__name__": "mpy_kv.port", "__file__": "mpy_kv/port.py"}
exec(text.replace("EMITTER = True", "EMITTER = False"), names)


class Module:
    pass


port = Module()
for key in names:
    setattr(port, key, names[key])
sys.modules["mpy_kv.port"] = port
