"""The hot path: one protocol, several sets of kernels, picked by trial.

A set is anything with the functions of plain.py (encode, query, scales, qk, score, weights, share, av,
emit) and a `name`. `best()` returns the fastest set that this port can load and that gives the plain
twin's bits on the check vectors; a set that does not is dropped and the reason kept in `reasons`.
The check runs once, at the first cache; it takes a few thousand plain operations.
"""

from ..port import EMITTER, load_viper, viper_source  # noqa: F401  (apps load their kernels the same way)
from . import plain
from .tables import EXP2  # noqa: F401

NAMES = ("encode", "query", "scales", "qk", "score", "weights", "share", "av", "emit")


class KernelSet:
    """Functions by name; `functions` is a dict or a module."""

    def __init__(self, name, functions):
        self.name = name
        for key in NAMES:
            setattr(self, key, functions[key] if isinstance(functions, dict) else getattr(functions, key))


PLAIN = KernelSet("plain", plain)
reasons = {}  # set name -> why it is not used here
_found = {}
_extra = []  # (name, loader) registered by a host, tried first


def register(name, loader):
    """Offer a set: `loader()` returns its functions or raises. The self-check decides."""
    _extra.insert(0, (name, loader))
    _found.clear()


def _viper():
    here = __file__[: __file__.rfind("/") + 1]
    return load_viper(here + "viper.py")


def _candidates():
    return _extra + [("viper", _viper)]


def get(name):
    """The set of that name, checked; raises ValueError with the reason if it cannot be used here."""
    if name == "plain":
        return PLAIN
    if name not in _found:
        for known, loader in _candidates():
            if known == name:
                from .selfcheck import compare

                # A port without an emitter raises SyntaxError, a foreign .mpy ValueError, a missing
                # file OSError; a refusal of the code generator itself must not pass unseen.
                try:
                    found = KernelSet(name, loader())
                except (ImportError, SyntaxError, ValueError, OSError) as error:
                    reasons[name] = str(error)
                    break
                wrong = compare(PLAIN, found)
                if wrong:
                    reasons[name] = "differs from plain in " + wrong
                    break
                _found[name] = found
                break
        else:
            reasons[name] = "unknown; known: plain, " + ", ".join([k for k, _ in _candidates()])
    if name not in _found:
        raise ValueError("kernels %r cannot be used here: %s" % (name, reasons[name]))
    return _found[name]


def best():
    """The first usable set of host sets, viper, plain."""
    for name, _ in _candidates():
        try:
            return get(name)
        except ValueError:
            continue
    return PLAIN
