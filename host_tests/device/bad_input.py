"""Wrong arguments of every kind, with what must be said; the same list under CPython and MicroPython.

usage: bad_input.py KERNELS [EVERY]    tries each EVERYth case [1]; prints the complaints as a JSON list, and
the number of cases
"""

import json
import sys
from array import array

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, KVError, NoRoom, OutOfRange, PoolFull, StepError
from mpy_kv.per_layer import MixedGeometry
from mpy_kv.paged import PagedGeometry
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool
from mpy_kv.int4_blocks import SealedGeometry

NAN, INF = float("nan"), float("inf")


def floats(*values):
    return array("f", values)


class Partial:
    """A kernel set of one function."""

    def qk(self, *_):
        """Nothing."""


class Bench:
    """Sound objects to misuse: two layers, width 8, 3 tokens committed, layer 0 of the fourth appended."""

    def __init__(self, kernel_set):
        self.kernels = kernel_set
        self.k, self.q, self.out = floats(*range(8)), floats(*range(16)), floats(*range(16))
        self.k16, self.q16 = array("h", range(8)), array("h", range(16))
        g = Geometry(2, 4, 2, 4, window=6, sinks=2)
        self.f = KVCache(g, kernels=kernel_set)
        self.h = KVCache(g, kv_shift=8, kernels=kernel_set)
        self.full = KVCache(Geometry(1, 4, 2, 4, capacity=3), kernels=kernel_set)
        for _ in range(3):
            for cache, k in ((self.f, self.k), (self.h, self.k16), (self.full, self.k)):
                for layer in range(cache.geometry.layers):
                    cache.append(layer, k, k)
                cache.commit()
        self.f.append(0, self.k, self.k)
        self.h.append(0, self.k16, self.k16)
        self.arena = Arena(256)
        self.pool = FixedPool(self.arena, 2, 32)
        self.block = self.pool.alloc(32)
        # Pools of 512 bytes with one block in use, the largest 128. Marks are given: counted up, they depend
        # on how many pools were made before, and one of another size may know a handle.
        self.pools = {
            "fixed": FixedPool(Arena(512), 4, 128, tag=1),
            "slab": SlabPool(Arena(512), 256, 2, (16, 128), tag=2),
            "slab+region": SlabRegionPool(Arena(512), 256, 2, (16, 128), 2, tag=3),
        }
        self.blocks = {}
        for name in self.pools:
            self.blocks[name] = self.pools[name].alloc(16)

    def state(self):
        found = [self.pool.stats(), self.pool.check(), self.arena.free_bytes()]
        found += [(pool.stats(), pool.check()) for pool in self.pools.values()]
        for cache in (self.f, self.h, self.full):
            found += [cache.length, cache.visible(), cache.check(), cache.stats()]
            for layer in range(cache.geometry.layers):
                found += [cache.read(layer, x, p) for x in "kv" for p in cache.visible()]
        return found


def shape(made=Geometry, **changed):
    options = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 4}
    if "capacity" not in changed:
        options.update({"window": 6, "sinks": 0})
    options.update(changed)
    return made(**options)


def cases():
    """(name, function of a Bench, error, texts that its message has)"""
    found = []

    def case(name, error, texts, call):
        found.append((name, call, error, texts if isinstance(texts, tuple) else (texts,)))

    # Geometry
    for option in ("layers", "heads", "kv_heads", "head_dim", "window", "group", "group_limit"):
        for value in (0, -1, 1.0, "4", True, 1 << 40):
            case(
                "Geometry(%s=%r)" % (option, value),
                BadArgument,
                option,
                lambda b, option=option, value=value: shape(**{option: value}),
            )
    for option in ("layers", "heads", "kv_heads", "head_dim"):
        case(
            "Geometry(%s=None)" % option,
            BadArgument,
            (option, "None"),
            lambda b, option=option: shape(**{option: None}),
        )
    for value in (-1, 1.0, "4", True, 1 << 26):
        case("sinks=%r" % value, BadArgument, "sinks", lambda b, value=value: shape(sinks=value))
    for value in ("", "0", False, 0.0, -1, [], 1 << 40):
        case(
            "sinks=%r and capacity" % (value,),
            BadArgument,
            "sinks must be",
            lambda b, value=value: shape(capacity=8, sinks=value),
        )
    for value in (0, True, "8", None):
        case(
            "group_limit=%r beside group" % (value,),
            BadArgument,
            "group_limit",
            lambda b, value=value: shape(group=4, group_limit=value),
        )
    for value in (4, "", False, [None, 4], [None], [None, "8"], [4, 8]):
        case(
            "group=%r of float32 and float16" % (value,),
            BadArgument,
            "group",
            lambda b, value=value: shape(MixedGeometry, codec=["float32", "float16"], group=value),
        )
    for value in ([8, 4], [8, None], [8, True], [True, True], [8], [8, 8, 8], (8, 8.0)):
        case(
            "group=%r of two layers of int8" % (value,),
            BadArgument,
            "group",
            lambda b, value=value: shape(MixedGeometry, codec=["int8", "int8"], group=value),
        )
    for value in (0, -1, 2.5, "4", False, 1 << 40):
        case("capacity=%r" % value, BadArgument, "capacity", lambda b, value=value: shape(capacity=value))
    case("heads 6 of 4", BadArgument, ("heads 6", "kv_heads 4"), lambda b: Geometry(1, 6, 4, 4))
    case("heads below kv_heads", BadArgument, ("heads 2", "kv_heads 4"), lambda b: Geometry(1, 2, 4, 4))
    case("codec", BadArgument, ("codec", "int7", "int8"), lambda b: shape(codec="int7"))
    case("codec None", BadArgument, ("codec", "int8"), lambda b: shape(codec=None))
    case("group 3", BadArgument, ("group 3", "8"), lambda b: shape(group=3))
    case("group 6 of 3 x 4", BadArgument, "group 6", lambda b: shape(heads=3, kv_heads=3, group=6))
    for made in (Geometry, MixedGeometry, PagedGeometry, SealedGeometry):
        more = {"codec": ["int8", "float16"]} if made is MixedGeometry else {}
        for name in ("sinks", "window"):
            case(
                "%s, %s and capacity" % (made.__name__, name),
                BadArgument,
                ("%s 3" % name, "capacity"),
                lambda b, made=made, more=more, name=name: shape(made, capacity=8, **{name: 3}, **more),
            )
    case(
        "2^30 bytes",
        BadArgument,
        ("lower window", "bytes"),
        lambda b: KVCache(shape(layers=1024, heads=16, kv_heads=16, window=1 << 15)),
    )
    case(
        "2^30 bytes of capacity",
        BadArgument,
        ("lower capacity", "bytes"),
        lambda b: KVCache(shape(layers=1024, heads=16, kv_heads=16, capacity=1 << 15)),
    )
    case(
        "2^16 + 1 tokens at once",
        BadArgument,
        ("65536", "lower window"),
        lambda b: KVCache(shape(layers=1, window=1 << 16, sinks=1)),
    )
    case("a codec there is none of", BadArgument, ("float8", "int8"), lambda b: shape(codec="float8"))
    case("group of float16", BadArgument, ("group 4", "float16"), lambda b: shape(codec="float16", group=4))
    case("group of float32", BadArgument, ("group 4", "float32"), lambda b: shape(codec="float32", group=4))

    # KVCache
    small = lambda: Geometry(2, 4, 2, 4, window=6, sinks=0)  # noqa: E731
    need = small().bytes()
    for value in (None, 5, {"layers": 1}):
        case("KVCache(%r)" % value, BadArgument, "geometry", lambda b, value=value: KVCache(value))
    for name, value in (
        ("bytes", bytes(need)),
        ("str", "x" * need),
        ("list", [0] * need),
        ("int16", array("h", [0] * need)),
        ("float32", array("f", [0] * need)),
        ("memoryview of int16", memoryview(array("h", [0] * need))),
        ("memoryview of bytes", memoryview(bytes(need))),
        ("int", 7),
        ("object", object()),
    ):
        case(
            "buffer of %s" % name,
            BadArgument,
            "buffer must be a writable bytearray or memoryview",
            lambda b, value=value: KVCache(small(), value),
        )
    for size in (0, 1, need - 1):
        case(
            "buffer of %d bytes" % size,
            BadArgument,
            ("buffer has %d bytes" % size, "%d needed" % need),
            lambda b, size=size: KVCache(small(), bytearray(size)),
        )
    for value in (40, -40, 1.5, True, "8", [8], [8, 8, 8], [8, None], [8, (1, 2, 3)], [8, (1,)], [8, 99], {}):
        case(
            "kv_shift=%r" % (value,),
            BadArgument,
            "kv_shift",
            lambda b, value=value: KVCache(small(), kv_shift=value),
        )
    for option in ("q_shift", "out_shift"):
        for value in (32, -32, 1.5, True, "8", [8], [8, None], ((1, 2), 3)):
            case(
                "%s=%r" % (option, value),
                BadArgument,
                option,
                lambda b, option=option, value=value: KVCache(small(), kv_shift=8, **{option: value}),
            )
        case(
            "%s without kv_shift" % option,
            BadArgument,
            "kv_shift",
            lambda b, option=option: KVCache(small(), **{option: 8}),
        )
    for value in ("viper", 5, object()):
        case(
            "kernels=%r" % type(value),
            BadArgument,
            "kernels",
            lambda b, value=value: KVCache(small(), kernels=value),
        )
    case(
        "kernels without most functions",
        BadArgument,
        ("kernels", "has no encode"),
        lambda b: KVCache(small(), kernels=Partial()),
    )
    case(
        "kernels of another codec",
        BadArgument,
        ("codec 'int8'", "int8-int4"),
        lambda b: KVCache(shape(codec="int8-int4"), kernels=b.kernels),
    )
    case("kernels.get", ValueError, ("'fast'", "plain"), lambda b: kernels.get("fast"))

    # append, prefill, attend: layer
    for value in (-1, 2, None, 1.0, "0", True, 1 << 70):
        said = ("layer must be 0..1", repr(value))
        case("append(%r)" % (value,), BadArgument, said, lambda b, v=value: b.f.append(v, b.k, b.k))
        case("prefill(%r)" % (value,), BadArgument, said, lambda b, v=value: b.f.prefill(v, b.k, b.k, 1))
        case("attend(%r)" % (value,), BadArgument, said, lambda b, v=value: b.f.attend(v, b.q, b.out))

    # arrays of another kind, for each role
    wrong_for_f = {
        "int16": array("h", [1] * 16),
        "int32": array("i", [1] * 16),
        "double": array("d", [1] * 16),
        "bytes": bytes(16),
        "bytearray": bytearray(16),
        "list": [1.0] * 16,
        "None": None,
        "number": 5,
        "text": "x" * 16,
        "empty": array("f"),
        "view of int16": memoryview(array("h", [1] * 16)),
    }
    wrong_for_h = {
        "float32": floats(*[1] * 16),
        "uint16": array("H", [1] * 16),
        "view of uint16": memoryview(array("H", [1] * 16)),
        "view of float32": memoryview(floats(*[1] * 16)),
        "int8": array("b", [1] * 16),
        "int32": array("i", [1] * 16),
        "list": [1] * 16,
        "None": None,
        "empty": array("h"),
    }
    for name, bad in wrong_for_f.items():
        for role in ("k", "v"):
            case(
                "append %s: %s" % (role, name),
                BadArgument,
                (role + " must be", "float32 ('f'); give kv_shift"),
                lambda b, x=bad, r=role: b.f.append(1, x if r == "k" else b.k, b.k if r == "k" else x),
            )
        case("prefill k: " + name, BadArgument, "k must be", lambda b, x=bad: b.f.prefill(1, x, b.k, 1))
        case("prefill v: " + name, BadArgument, "v must be", lambda b, x=bad: b.f.prefill(1, b.k, x, 1))
        case("q: " + name, BadArgument, "q must be", lambda b, x=bad: b.f.attend(0, x, b.out))
        case("out: " + name, BadArgument, "out must be", lambda b, x=bad: b.f.attend(0, b.q, x))
        if bad is not None:
            case(
                "q_sinks: " + name,
                BadArgument,
                "q_sinks must be",
                lambda b, x=bad: b.f.attend(0, b.q, b.out, x),
            )
    for name, bad in wrong_for_h.items():
        said = ("must be", "int16 ('h')")
        case("int16 append k: " + name, BadArgument, said, lambda b, x=bad: b.h.append(1, x, b.k16))
        case("int16 append v: " + name, BadArgument, said, lambda b, x=bad: b.h.append(1, b.k16, x))
        case("int16 q: " + name, BadArgument, said, lambda b, x=bad: b.h.attend(0, x, b.q16))
        case("int16 out: " + name, BadArgument, said, lambda b, x=bad: b.h.attend(0, b.q16, x))

    # lengths
    for n in (1, 7, 9, 16):
        said = ("kv_heads*head_dim = 8", str(n))
        case("k of %d" % n, BadArgument, said, lambda b, n=n: b.f.append(1, floats(*[1] * n), b.k))
        case("v of %d" % n, BadArgument, said, lambda b, n=n: b.f.append(1, b.k, floats(*[1] * n)))
    for n in (1, 8, 15):
        said = ("heads*head_dim = 16", str(n))
        short = floats(*[1] * n)
        case("q of %d" % n, BadArgument, said, lambda b, x=short: b.f.attend(0, x, b.out))
        case("out of %d" % n, BadArgument, said, lambda b, x=short: b.f.attend(0, b.q, x))
        case("q_sinks of %d" % n, BadArgument, said, lambda b, x=short: b.f.attend(0, b.q, b.out, x))
    for n in (17, 32):
        said = ("heads*head_dim = 16", str(n))
        long = floats(*[1] * n)
        case("q of %d" % n, BadArgument, said, lambda b, x=long: b.f.attend(0, x, b.out))
        case("q_sinks of %d" % n, BadArgument, said, lambda b, x=long: b.f.attend(0, b.q, b.out, x))
    case("2 rows in 1", BadArgument, ("16 in all", "8"), lambda b: b.f.prefill(1, b.k, b.k, 2))
    case("v too short", BadArgument, "16 in all", lambda b: b.f.prefill(1, b.q, b.k, 2))
    case("a billion rows", BadArgument, "in all", lambda b: b.f.prefill(1, b.k, b.k, 1 << 40))
    for value in (0, -1, 1.5, None, "2", True):
        case(
            "prefill n=%r" % (value,),
            BadArgument,
            ("n must be", repr(value)),
            lambda b, n=value: b.f.prefill(1, b.k, b.k, n),
        )
    for value in (0, 2, -1, None, "1", 1.5):
        case(
            "attend n=%r" % (value,),
            StepError,
            ("n = %r" % (value,), "n = 1"),
            lambda b, n=value: b.f.attend(0, b.q, b.out, None, n),
        )

    # values
    for bad in (NAN, INF, -INF, 127 * 65536.0, -3e38):
        x = floats(1, 2, 3, bad, 5, 6, 7, 8)
        case("k has %r" % bad, OutOfRange, "k of layer 1, token 3", lambda b, x=x: b.f.append(1, x, b.k))
        case("v has %r" % bad, OutOfRange, "v of layer 1, token 3", lambda b, x=x: b.f.append(1, b.k, x))
    for bad in (NAN, INF, -INF):
        x = floats(*[1] * 15 + [bad])
        case("q has %r" % bad, OutOfRange, "q of layer 0, token 3", lambda b, x=x: b.f.attend(0, x, b.out))
        case("q_sinks has %r" % bad, OutOfRange, "q of layer 0", lambda b, x=x: b.f.attend(0, b.q, b.out, x))

    # order of calls
    case("attend before append", StepError, "attend(1) before append", lambda b: b.f.attend(1, b.q, b.out))
    case("commit too early", StepError, ("1 of 2 layers", "layer 1 is missing"), lambda b: b.f.commit())
    case("commit of nothing", StepError, ("0 of 1 layers", "layer 0"), lambda b: b.full.commit())
    case("attend of nothing", StepError, "before append", lambda b: b.full.attend(0, b.q, b.out))
    case("full", NoRoom, ("capacity 3", "needed 1", "free 0"), lambda b: b.full.append(0, b.k, b.k))
    case("full prefill", NoRoom, "needed 2", lambda b: b.full.prefill(0, b.q, b.q, 2))

    # rollback, seek, read
    for value in (-1, 4, 1 << 40, None, 1.0, "1", True):
        case(
            "rollback(%r)" % (value,),
            BadArgument,
            (repr(value), "0..3"),
            lambda b, n=value: b.f.rollback(n),
        )
    for value in (2, -1, 1 << 29, 1 << 70, None, 5.0, "9", True):
        case("seek(%r)" % (value,), BadArgument, ("position", repr(value)), lambda b, n=value: b.f.seek(n))
    case("seek without a window", StepError, "window", lambda b: b.full.seek(9))
    for value in (-1, None, 1.0, "1", True, b"1"):
        case(
            "sink_query_position(%r)" % (value,),
            BadArgument,
            ("i must be", repr(value)),
            lambda b, n=value: b.f.sink_query_position(n),
        )
    for value in (3, -1, None, "0", 99):
        case("read(%r)" % (value,), BadArgument, "position", lambda b, n=value: b.f.read(0, "k", n))
    case("read q", BadArgument, "'q'", lambda b: b.f.read(0, "q", 0))
    case("read(1.0)", BadArgument, "position 1.0", lambda b: b.f.read(0, "k", 1.0))
    for value in (-1, 1.0, True, None, "0"):
        case("place(%r)" % (value,), BadArgument, "position", lambda b, n=value: b.f.place(0, "k", n))
    for value in ("q", None, 0, ["k"]):
        case("place %r" % (value,), BadArgument, "which", lambda b, n=value: b.f.place(0, n, 0))
    for value in (2, -1, None, 0.0):
        case("read layer %r" % (value,), BadArgument, "layer", lambda b, n=value: b.f.read(n, "k", 0))

    # Arena and pool
    for value in (1 << 30, 1 << 70):
        case("Arena(%r)" % value, BadArgument, "below 2^30", lambda b, n=value: Arena(n))
    for value in (-1, None, 1.5, "8", True):
        case("Arena(%r)" % (value,), BadArgument, "size", lambda b, n=value: Arena(n))
        case("take(%r)" % (value,), BadArgument, "size", lambda b, n=value: b.arena.take(n))
    for value in (0, -4, 3, None, 4.0, "4"):
        case("align=%r" % (value,), BadArgument, "align", lambda b, n=value: b.arena.take(8, n))
    case("take too much", NoRoom, ("needed 1000 bytes", "free 192"), lambda b: b.arena.take(1000))
    for value in (None, 5, bytearray(999)):
        case(
            "FixedPool(%s)" % type(value).__name__,
            BadArgument,
            "arena",
            lambda b, n=value: FixedPool(n, 1, 4),
        )
    for value in (0, -1, None, 1.0, "4", True, 1 << 21):
        case("n_blocks=%r" % (value,), BadArgument, "n_blocks", lambda b, n=value: FixedPool(b.arena, n, 4))
    for value in (0, -4, 6, None, 8.0, "8"):
        case(
            "block_bytes=%r" % (value,),
            BadArgument,
            "block_bytes",
            lambda b, n=value: FixedPool(b.arena, 1, n),
        )
    for value in (-1, 8, 1.0, "1", True):
        case("tag=%r" % (value,), BadArgument, "tag", lambda b, n=value: FixedPool(b.arena, 1, 4, n))
    case("a pool beyond the arena", NoRoom, "needed 4096 bytes", lambda b: FixedPool(b.arena, 64, 64))
    for value in (0, -1, None, 1.5, "8", True):
        case("alloc(%r)" % (value,), BadArgument, ("size", "1..32"), lambda b, n=value: b.pool.alloc(n))
    for value in (33, 1 << 30, (1 << 32) - 1, 1 << 70):
        case(
            "alloc(%r)" % value, PoolFull, ("block_bytes 32", str(value)), lambda b, n=value: b.pool.alloc(n)
        )
    for value in (0, -4, 8, 3, None, True, 8.0, "4"):
        case("alloc align=%r" % (value,), BadArgument, "align", lambda b, n=value: b.pool.alloc(8, n))
    for value in (-1, 4, None, "x", 1.5, 1 << 70, True):
        for method in ("free", "lock", "unlock", "is_locked", "owner", "offset"):
            case(
                "%s(%r)" % (method, value),
                BadHandle,
                "handle %r" % (value,),
                lambda b, n=value, method=method: getattr(b.pool, method)(n),
            )
    for name in ("fixed", "slab", "slab+region"):
        for value in (0, -1, None, 1.5, "8", True):
            for method in ("alloc", "overhead_bytes"):
                case(
                    "%s %s(%r)" % (name, method, value),
                    BadArgument,
                    ("size", "1..128", repr(value)),
                    lambda b, k=name, m=method, n=value: getattr(b.pools[k], m)(n),
                )
            said = ("size", repr(value))
            grow, many = "%s grow to %r" % (name, value), "%s alloc_many(2, %r)" % (name, value)
            case(grow, BadArgument, said, lambda b, k=name, n=value: b.pools[k].grow(b.blocks[k], n))
            case(many, BadArgument, said, lambda b, k=name, n=value: b.pools[k].alloc_many(2, n, [0, 0]))
        for value in (129, 513, 1 << 30, 1 << 31, (1 << 32) - 1, 1 << 70):
            said = ("needed %d" % value, "128")
            case(
                "%s alloc(%r)" % (name, value),
                PoolFull,
                said,
                lambda b, k=name, n=value: b.pools[k].alloc(n),
            )
            grow = "%s grow to %r" % (name, value)
            case(grow, PoolFull, said, lambda b, k=name, n=value: b.pools[k].grow(b.blocks[k], n))
        for value in (-1, 5, None, "x", 1.5, 1 << 29, 1 << 70, True):
            for method in ("free", "lock", "unlock", "is_locked", "owner", "offset", "size"):
                case(
                    "%s %s(%r)" % (name, method, value),
                    BadHandle,
                    "handle %r" % (value,),
                    lambda b, k=name, m=method, n=value: getattr(b.pools[k], m)(n),
                )
            grow = "%s grow(%r)" % (name, value)
            case(grow, BadHandle, "handle", lambda b, k=name, n=value: b.pools[k].grow(n, 8))
            case(
                "%s free_many(%r)" % (name, value),
                BadHandle,
                "handle %r" % (value,),
                lambda b, k=name, n=value: b.pools[k].free_many([b.blocks[k], n], 2),
            )
        case(
            name + " the same handle twice",
            BadHandle,
            "twice",
            lambda b, k=name: b.pools[k].free_many([b.blocks[k], b.blocks[k]], 2),
        )
        other = "slab" if name == "fixed" else "fixed"
        free = "%s free of a block of %s" % (name, other)
        case(free, BadHandle, "handle", lambda b, k=name, o=other: b.pools[k].free(b.blocks[o]))
        for value in (0, 8, None, 1.0, True):
            case(
                "%s alloc_many(%r)" % (name, value),
                BadArgument,
                ("n must", repr(value)),
                lambda b, k=name, n=value: b.pools[k].alloc_many(n, 8, array("i", [0, 0])),
            )
    for value in ((0,), (3,), (1, 2), (1, -1), (None,), (1.0,), (True,), (1, None), (1, 0, -1), (1, 0, "x")):
        case(
            "open_region%r" % (value,),
            BadArgument,
            "must be",
            lambda b, v=value: b.pools["slab+region"].open_region(*v),
        )
    case("a guarantee", PoolFull, "slabs", lambda b: b.pools["slab+region"].open_region(2, 2))
    for value in (-1, 1, 1.5, "x", True, 1 << 70):
        said = "region %r" % (value,)
        close, alloc = "close_region(%r)" % (value,), "alloc in region %r" % (value,)
        case(close, BadHandle, said, lambda b, n=value: b.pools["slab+region"].close_region(n))
        case(alloc, BadHandle, said, lambda b, n=value: b.pools["slab+region"].alloc(8, 4, n))
    for value in (-1, 65536, None, 1.0, "1", True):
        case(
            "owner layer %r" % (value,), BadArgument, "layer", lambda b, n=value: b.pool.set_owner(b.block, n)
        )
        case(
            "owner batch %r" % (value,),
            BadArgument,
            "batch",
            lambda b, n=value: b.pool.set_owner(b.block, 1, n),
        )
    return found


def complaint(case, bench):
    """None, or what is wrong with how this case is refused. The bench must stay as it was."""
    name, call, error, texts = case
    before = bench.state()
    try:
        call(bench)
        return "%s: taken" % name
    except Exception as found:
        said = str(found)
        if not isinstance(found, error):
            return "%s: %s: %s" % (name, type(found).__name__, said)
        if error is not ValueError and not isinstance(found, KVError):
            return "%s: %s is no KVError" % (name, type(found).__name__)
        for text in texts:
            if text not in said:
                return "%s: %r is not in %r" % (name, text, said)
    if bench.state() != before:
        return "%s: the state has changed" % name
    return None


if __name__ == "__main__":
    the_bench = Bench(kernels.get(sys.argv[1]))
    the_cases = cases()[:: int(sys.argv[2]) if len(sys.argv) > 2 else 1]
    complaints = [complaint(c, the_bench) for c in the_cases]
    print(json.dumps([[c for c in complaints if c], len(the_cases)]))
