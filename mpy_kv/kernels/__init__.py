"""The hot path: one protocol, several sets of kernels, picked by trial.

A set is anything with the functions of plain.py (encode, query, scales, qk, score, weights, av, emit) and
a `name`: thumb, viper, plain, or a host's own. `best()` returns the fastest set that this port can load and
that gives the plain twin's bits on the check vectors; a set that does not is dropped and the reason kept in
`reasons`.
The check runs once, at the first cache, by checksums of what the plain twin is known to make; that runs only
where one is another. It is mpy_kv/selfcheck's, which makes caches: mpy_kv/__init__.py says so.
All this is of the element type int8. Another one has a package here with the kernels that differ, and a
family of its own: of("int8-int4").best().
"""

from .kernel_registry import Family

FAMILY = Family(
    __name__,
    __file__[: __file__.rfind("/") + 1],
    ("encode", "query", "scales", "qk", "score", "weights", "av", "emit"),
    "heads",
)

NAMES = FAMILY.names
best = FAMILY.best
get = FAMILY.get
register = FAMILY.register
release = FAMILY.release
reasons = FAMILY.reasons


def of(codec):
    """The Family of sets for caches of that element type; ImportError if there is none."""
    if codec == "int8":
        return FAMILY
    return __import__(__name__ + "." + codec.replace("-", "_"), None, None, ("x",)).FAMILY
