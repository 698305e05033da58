"""Modules that a program needs for a moment only, such as those that construct, check or refuse.

load_module() loads one as `import` does; unload_all() lets go of all of them at once, and the next
load_module() loads them anew. Nothing that was made of them changes. Only modules of functions may be loaded
so, and of classes that nobody asks an object for: loaded anew, a class is another one. Not for the hot path:
load_module() allocates.
"""

import sys

# Built-in modules that a file of the same name may extend are looked for in all folders at each import,
# unless they stand among those that are loaded. Most modules here import one of these.
for _name in ("array", "binascii", "struct"):
    if _name not in sys.modules:
        sys.modules[_name] = __import__(_name)

_loaded = []

# Full names of modules that stay once they are loaded, below one that does not.
kept = []


def load_module(name):
    """The module of that full name; ImportError as `import` raises it."""
    if name not in _loaded:
        _loaded.append(name)
    return __import__(name, None, None, ("x",))


def unload_all():
    """Let go of every module loaded so far, with those below it. Whoever else refers to one keeps it."""
    while _loaded:
        name = _loaded.pop()
        for known in list(sys.modules):
            if (known == name or known.startswith(name + ".")) and known not in kept:
                sys.modules.pop(known)
        package, _, part = name.rpartition(".")
        package = sys.modules.get(package)
        if hasattr(package, part):
            delattr(package, part)
