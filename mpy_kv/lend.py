"""Modules that a program needs for a moment only, such as those that construct, check or refuse.

lend() loads one as `import` does; take_back() lets go of all of them at once, and the next lend() loads
them anew. Nothing that was made of them changes. Only modules of functions may be lent: a class loaded anew
is another class. Not for the hot path: lend() allocates.
"""

import sys

_lent = []


def lend(name):
    """The module of that full name; ImportError as `import` raises it."""
    if name not in _lent:
        _lent.append(name)
    return __import__(name, None, None, ("x",))


def take_back():
    """Let go of every module lent so far, with those below it. Whoever else refers to one keeps it."""
    while _lent:
        name = _lent.pop()
        for known in list(sys.modules):
            if known == name or known.startswith(name + "."):
                sys.modules.pop(known)
        package, _, part = name.rpartition(".")
        package = sys.modules.get(package)
        if hasattr(package, part):
            delattr(package, part)
