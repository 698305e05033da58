"""What differs between interpreters, in one place: word size, native code, addresses.

Used at import and construction only; nothing here runs per token.

The package is written for 32-bit boards. Three kinds of interpreter need a different text of the same
source, made here at import by literal replacement, so that there is one source to read and test:
- 64-bit words (the unix port): viper products must be cut to 32 bits, see `viper_source`;
- no native emitter (webassembly): `@micropython.native` does not compile, see `install`;
- CPython: no `micropython` module at all, see mpy_kv/cpython.py.
"""

import sys

MICROPYTHON = sys.implementation.name == "micropython"
WIDE = sys.maxsize > 0x7FFFFFFF
EMITTER = False
if MICROPYTHON:
    try:
        exec("import micropython\n@micropython.viper\ndef f(a: int) -> int:\n return a\n", {})
        EMITTER = True
    except SyntaxError:
        pass

try:
    from uctypes import addressof
except ImportError:

    def addressof(buf):
        """CPython has no addresses to align: plain kernels work on indexes."""
        return 0


def viper_source(text):
    """Source of viper kernels as this word size needs it.

    In kernel sources `x >> _HI` is the upper half of a 32-bit product and `if _WIDE:` guards
    the sign extension of a 32-bit load: nothing to do on 32 bits, two shifts on 64.
    """
    if WIDE:
        text = text.replace("_WIDE = const(0)", "_WIDE = const(1)").replace(
            ">> _HI", "<< 32 >> 48"
        )
    return text


def load_viper(path, package=None):
    """Namespace (dict) of the viper kernels in the file at `path`; raises where they cannot run.

    package: where `path` is viper.py's place but only viper.mpy is there, compiled for this word size
    (see `viper_source`), the module package.viper is imported as it is.
    """
    if not EMITTER:
        raise ImportError("no native code emitter on this port")
    try:
        with open(path) as f:
            text = f.read()
    except OSError:
        if package is None:
            raise
        return __import__(package + ".viper", None, None, ("viper",)).__dict__
    names = {"__name__": "viper"}
    exec(viper_source(text), names)
    return names


class _Names:
    """Stands in for a module in sys.modules."""


def install(name, path):
    """Import module `name` from the file `path` with its native decorators left out."""
    with open(path) as f:
        text = f.read()
    names = {"__name__": name, "__file__": path}
    exec(text.replace("@micropython.native", ""), names)
    module = _Names()
    for key in names:
        setattr(module, key, names[key])
    sys.modules[name] = module
    return module
