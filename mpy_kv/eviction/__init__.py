"""Eviction: which of the things kept is forgotten first.

    from mpy_kv import eviction
    order = eviction.make("lfu", 64)         # of entries 0..63
    order.insert(i); order.touch(i)          # i came; i was used again
    i = order.evict()                        # -1: nothing that may go

Orders live in link arrays of whole numbers, made at construction; no call moves memory, allocates or looks at
a clock. What all policies share is in policy.py; `linked_list` alone, without a policy around it, is what
mpy_kv/paged builds on. A policy's module is imported when it is first asked for.
All those order blocks between requests; which token of one sequence leaves, by its attention, is in tokens/.
"""

from .. import port as _port

# Name -> (module, class).
POLICIES = {
    "fifo": ("fifo", "FIFO"),
    "lru": ("lru", "LRU"),
    "lfu": ("lfu", "LFU"),
    "hybrid": ("hybrid", "Hybrid"),
    "sieve": ("sieve", "Sieve"),
    "s3fifo": ("s3fifo", "S3FIFO"),
}


def module(name):
    """The module of a policy, by its name."""
    file = POLICIES[name][0]
    full = "mpy_kv.eviction." + file
    if _port.MICROPYTHON and not _port.EMITTER:
        import sys

        from ..undecorated import install

        # As mpy_kv/__init__.py does; after those that a module takes transitions from.
        for each in ("fifo", "lfu", file):
            if "mpy_kv.eviction." + each not in sys.modules:
                here = __file__[: __file__.rfind("/") + 1]
                install("mpy_kv.eviction." + each, here + each + ".py")
        return sys.modules[full]
    return __import__(full, None, None, ("x",))


def make(name, n, **options):
    """A policy over entries 0..n-1, none of them held. Options: `window` of hybrid, `most_count` of lfu and
    hybrid, `small` and `ghosts` of s3fifo. BadArgument names what is wrong."""
    if name not in POLICIES:
        from ..errors import BadArgument

        raise BadArgument("no policy %r; there are %s" % (name, ", ".join(sorted(POLICIES))))
    return getattr(module(name), POLICIES[name][1])(n, **options)
