"""Modules read without their native decorators, for a port that has no emitter.

Used at import only. A board has an emitter: what runs so is a browser.
"""

import sys


def install_all(package, folder, names):
    """install() of modules of a package whose files lie below `folder` (ends in /), in that order."""
    for name in names:
        install(package + "." + name, folder + name.replace(".", "/") + ".py")


class _Names:
    """Stands in for a module in sys.modules."""


def install(name, path):
    """Import module `name` from the file `path` with its native decorators left out."""
    with open(path) as f:
        text = f.read()
    names = {"__name__": name, "__file__": path, "ptr32": lambda array: array}
    exec(text.replace("@micropython.native", "").replace("@micropython.viper", ""), names)
    module = _Names()
    for key in names:
        setattr(module, key, names[key])
    sys.modules[name] = module
    return module
