"""The integer kernels of the model: two sets with the same bits, picked by trial.

`best()` is viper where the port can run it and it passes the start-up check, else plain; `reasons` says
why a set was dropped. The sets and their protocol are made like those of mpy_kv.kernels.
"""

from mpy_kv.kernels import load_viper

from . import plain
from .plain import (  # noqa: F401
    ACT_GROUP,
    ACT_HEADER,
    GROUP,
    LIMIT,
    MASK,
    MAX_GROUPS,
    POINT,
    ROOT_ONE,
)
from .tables import EXP2, SIGMOID, SINE  # noqa: F401

NAMES = (
    "embed",
    "norm",
    "quant",
    "matvec",
    "rope_table",
    "rotate",
    "narrow",
    "widen",
    "swiglu",
    "add",
    "argmax",
    "softmax",
    "pick",
)


class KernelSet:
    """Functions by name; `functions` is a dict or a module. Raises ValueError if one is missing."""

    def __init__(self, name, functions):
        self.name = name
        for key in NAMES:
            try:
                f = functions[key] if isinstance(functions, dict) else getattr(functions, key)
            except (KeyError, AttributeError):
                raise ValueError("function %s is missing" % key)
            setattr(self, key, f)


PLAIN = KernelSet("plain", plain)
reasons = {}  # set name -> why it is not used here
_found = {}


def get(name):
    """The set "plain" or "viper"; raises ValueError with the reason if it cannot be used here."""
    if name == "plain":
        return PLAIN
    if name != "viper":
        raise ValueError("kernels %r are unknown; known: plain, viper" % (name,))
    if name not in _found and name not in reasons:
        # Tried once only: on some ports the memory of native code is never freed.
        why = _try(name)
        if why:
            reasons[name] = why
    if name in reasons:
        raise ValueError("kernels %r cannot be used here: %s" % (name, reasons[name]))
    return _found[name]


def _try(name):
    """Load and check the viper set; "" if it is good, else why not."""
    from .selfcheck import compare

    # No emitter is an ImportError or SyntaxError, a foreign .mpy a ValueError, a missing file an
    # OSError; a refusal of the code generator itself must not pass unseen.
    try:
        path = __file__[: __file__.rfind("/") + 1] + "viper.py"
        found = KernelSet(name, load_viper(path, "stories.kernels"))
    except (ImportError, SyntaxError, ValueError, OSError) as error:
        return str(error)
    wrong = compare(PLAIN, found)
    if wrong:
        return "differs from plain in " + wrong
    _found[name] = found
    return ""


def best():
    """The fastest usable set."""
    try:
        return get("viper")
    except ValueError:
        return PLAIN
