"""The kernels of a story: found, checked unless that was done before, and let go of all that it took.

Transient (mpy_kv/transient.py): a program starts once.
"""

import gc
import sys

from mpy_kv import kernels as kv_kernels
from mpy_kv.errors import BadArgument
from mpy_kv.transient import load_module

from . import kernels as app_kernels

# Bytes after which garbage is collected: of a start, while a check is loaded, and after one.
_USUAL = 24576
_OFTEN = 4096
_AFTER_CHECK = 8192


def families(codec, policy):
    """Of kernels: the cache's by element type, or None where it will refuse `codec`; and all of them."""
    try:
        of_types = {each: kv_kernels.of(each) for each in ([codec] if isinstance(codec, str) else codec)}
    except (ImportError, AttributeError, TypeError):
        return None, [app_kernels.FAMILY]
    more = []
    if policy is not None:
        from mpy_kv.eviction import tokens

        more.append(tokens.FAMILY)
    return of_types, list(of_types.values()) + [app_kernels.FAMILY] + more


def take(path, check, families):
    """Have families take the verdicts in the file; returns those. check: they take none, and check again what
    is loaded."""
    known = load_module("stories.verdicts").read(path) if path else ()
    if check or not known:
        # A check loads much, of which names and tables stay: not above what it leaves.
        _threshold(_OFTEN)
    trial = load_module("mpy_kv.kernels.trial")
    for family in families:
        trial.take(family, () if check else known)
        if check:
            trial.check_again(family)
    return known


def _threshold(size):
    if hasattr(gc, "mem_free"):
        gc.threshold(size)


def sets(name, codec, of_types):
    """The app's set of that name, or the fastest; the cache's for that element type, or a dict of them for a
    list of types. None and None where the cache will refuse it."""
    if of_types is None:
        return None, None
    found = {}
    try:
        for each in of_types:
            found[each] = _of(of_types[each], name)
        app = _of(app_kernels.FAMILY, name)
    except ValueError as error:
        raise BadArgument("--kernels: %s" % error)
    return app, found[codec] if isinstance(codec, str) else found


def _of(family, name):
    """A set, and nothing left of what it took."""
    found = family.best() if name is None else family.get(name)
    if "mpy_kv.selfcheck" in sys.modules:
        family.release()
        gc.collect()
    return found


def note(path, known, families):
    """Write what has been checked of these families."""
    keys = []
    checked = False
    trial = load_module("mpy_kv.kernels.trial")
    for family in families:
        checked = checked or bool(family.checked)
        keys += trial.verdicts(family) if path else []
        trial.take(family, ())
    if path:
        load_module("stories.verdicts").note(path, known, keys)
    # What a check has left in use cuts the heap into pieces, which must not be made smaller.
    _threshold(_AFTER_CHECK if checked else _USUAL)
