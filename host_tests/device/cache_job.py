"""Runs a recorded job on a KVCache and writes what it saw; the same file under CPython and MicroPython.

usage: cache_job.py JOB DATA OUT KERNELS
JOB: JSON {"geometry": {...}, "cache": {...}, "ops": [[...], ...]}; a list as codec makes a MixedCache, for
which KERNELS may be "best". DATA: k, v, q, q_sinks rows of every token and layer, token-major. OUT: outputs
of every attended token and layer, then the whole buffer.
ops: ["step", t] one token; ["prefill", t, n]; ["prefill-commit", t, n] (never attended);
["append-only", t] (aborted); ["rollback", n]; ["seek", position].
"""

import json
import sys
from array import array

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.per_layer import MixedCache, MixedGeometry


def cache_of(geometry, kernel_name, **options):
    if isinstance(geometry.get("codec"), list):
        g = MixedGeometry(**geometry)
        sets = None
        if kernel_name != "best":
            sets = {name: kernels.of(name).get(kernel_name) for name in g.types}
        return MixedCache(g, kernels=sets, **options)
    g = Geometry(**geometry)
    return KVCache(g, kernels=kernels.of(g.codec).get(kernel_name), **options)


def run(job, data, out, kernel_name):
    options = job["cache"]
    int16 = options.get("kv_shift") is not None
    code = "h" if int16 else "f"
    size = 2 if int16 else 4
    cache = cache_of(job["geometry"], kernel_name, **options)
    g = cache.geometry
    q_row = g.heads * g.head_dim
    row = 2 * g.width + 2 * q_row

    def rows(t, layer, n, attended=True):
        """k, v, q, q_sinks (the last two only if attended) of tokens t .. t+n-1 of a layer."""
        counts = (g.width, g.width, q_row, q_row) if attended else (g.width, g.width)
        parts = [array(code, bytes(count * n * size)) for count in counts]
        views = [memoryview(part) for part in parts]
        for i in range(n):
            data.seek(((t + i) * g.layers + layer) * row * size)
            for view, count in zip(views, counts):
                data.readinto(view[i * count : (i + 1) * count])
        return parts

    for op in job["ops"]:
        if op[0] in ("step", "append-only"):
            for layer in range(g.layers):
                k, v, q, qs = rows(op[1], layer, 1)
                cache.append(layer, k, v)
                if op[0] == "step":
                    o = array(code, [0] * q_row)
                    cache.attend(layer, q, o, qs)
                    out.write(bytes(o))
            if op[0] == "step":
                cache.commit()
        elif op[0] in ("prefill", "prefill-commit"):
            for layer in range(g.layers):
                k, v, *queries = rows(op[1], layer, op[2], op[0] == "prefill")
                cache.prefill(layer, k, v, op[2])
                if op[0] == "prefill":
                    q, qs = queries
                    o = array(code, [0] * (q_row * op[2]))
                    cache.attend(layer, q, o, qs, op[2])
                    out.write(bytes(o))
            cache.commit()
        else:
            getattr(cache, op[0])(op[1])
    out.write(bytes(cache.buffer))
    if cache.check():
        raise SystemExit("check() found %d broken invariants" % cache.check())
    return cache


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        the_job = json.load(f)
    with open(sys.argv[2], "rb") as the_data, open(sys.argv[3], "wb") as the_out:
        the_cache = run(the_job, the_data, the_out, sys.argv[4])
    print(json.dumps({"visible": the_cache.visible(), "length": the_cache.length}))
