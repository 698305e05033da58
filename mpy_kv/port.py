"""What differs between interpreters, in one place: word size, native code, addresses.

Used at import and construction only; nothing here runs per token.

The package is written for 32-bit boards. Three kinds of interpreter need a different text of the same
source, made here at import by literal replacement, so that there is one source to read and test:
- 64-bit words (the unix port): viper products must be cut to 32 bits, see sources.py;
- no native emitter (webassembly): `@micropython.native` does not compile, see undecorated.py;
- CPython: no `micropython` module at all, see mpy_kv/cpython.py.
"""

import gc
import sys
from array import array

MICROPYTHON = sys.implementation.name == "micropython"
WIDE = sys.maxsize > 0x7FFFFFFF
EMITTER = False
if MICROPYTHON:
    try:
        exec("import micropython\n@micropython.viper\ndef f(a: int) -> int:\n return a\n", {})
        EMITTER = True
    except SyntaxError:
        pass
# Whether it has the Thumb assembler: asked with two lines, as the names in a file would stay in memory.
THUMB = False
if EMITTER:
    try:
        exec("import micropython\n@micropython.asm_thumb\ndef f():\n nop()\n", {})
        THUMB = True
    except SyntaxError:
        pass

try:
    from uctypes import addressof
except ImportError:

    def addressof(buf):
        """CPython has no addresses to align: plain kernels work on indexes."""
        return 0


def ints(first, zeros=0, kind="i"):
    """The small ints `first`, then `zeros` times 0: a sequence to be changed in place, never resized.

    In MicroPython an array of `kind` "i" or "H". In CPython a list: an array makes an object of each item
    read and checks the type of each stored, which takes two thirds of a pool's time.
    """
    if not MICROPYTHON:
        return list(first) + [0] * zeros
    found = array(kind, first)
    found.extend(array(kind, bytes((2 if kind == "H" else 4) * zeros)))
    return found


def load_native(path, package=None, skip=()):
    """Namespace (dict) of the kernels in the source file at `path`; raises where they cannot run.

    One function at a time is compiled: a whole file's parse tree takes more memory than a board has left.
    Functions named in `skip` are not.
    package: where only the .mpy of `path` is there, compiled for this word size (see sources.py), the
    module of that name in `package` is imported as it is.
    """
    if not EMITTER:
        raise ImportError("no native code emitter on this port")
    try:
        source = open(path, "rb")
    except OSError:
        if package is None:
            raise
        name = path[path.rfind("/") + 1 : path.rfind(".")]
        return __import__(package + "." + name, None, None, ("x",)).__dict__
    from .transient import load_module  # here: this file is also read where there is no package yet

    names = {"__name__": "native"}
    with source as f:
        for name, text in load_module("mpy_kv.sources").functions(f):
            if name not in skip:
                exec(text, names)
                # What stays is then put beside what is there, and not behind the litter of compiling.
                gc.collect()
    return names
