"""The hot path: one protocol, several sets of kernels, picked by trial.

A set is anything with the functions of plain.py (encode, query, scales, qk, score, weights, av, emit) and
a `name`: thumb, viper, plain, or a host's own. `best()` returns the fastest set that this port can load and
that gives the plain twin's bits on the check vectors; a set that does not is dropped and the reason kept in
`reasons`.
The check runs once, at the first cache; it takes a few thousand plain operations.
Those here are for the element type int8. Another one has a package of the kernels that it changes, and the
same functions here, asked with its name, find its sets: best("int8-int4").
"""

from .family import Family

FAMILY = Family(
    __name__,
    __file__[: __file__.rfind("/") + 1],
    ("encode", "query", "scales", "qk", "score", "weights", "av", "emit"),
)

NAMES = FAMILY.names
register = FAMILY.register
reasons = FAMILY.reasons
_families = {"int8": FAMILY}


def of(codec="int8"):
    """The sets for an element type that a cache can have; ValueError for another."""
    if codec not in _families:
        package = __name__ + "." + codec.replace("-", "_")
        try:
            _families[codec] = __import__(package, None, None, ("x",)).FAMILY
        except ImportError:
            raise ValueError("there are no kernels for codec %r" % codec)
    return _families[codec]


def best(codec="int8"):
    return of(codec).best()


def get(name, codec="int8"):
    return of(codec).get(name)


def release():
    """As Family.release, for all element types."""
    for codec in _families:
        _families[codec].release()
