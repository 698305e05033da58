"""cache_job.py as a port without native code would run it.

usage: no_emitter.py JOB DATA OUT
"""

import without_emitter  # isort: skip  # noqa: F401  (before mpy_kv)

import json
import sys

import budget_job
import cache_job
import pool_trace

from mpy_kv import kernels

for name in ("mpy_kv.cache", "mpy_kv.sequence", "mpy_kv.pools.fixed", "mpy_kv.pools.slab_region"):
    assert type(sys.modules[name]).__name__ == "_Names", name
assert kernels.best() is kernels.get("plain")
with open(sys.argv[1]) as f:
    job = json.load(f)
with open(sys.argv[2], "rb") as data, open(sys.argv[3], "wb") as out:
    cache = cache_job.run(job, data, out, "plain")
assert cache.check() == 0
budget = {"layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 4, "window": 5, "sinks": 0}
steps = [["step"]] * 9 + [["rollback", 2], ["step"]]
budget_job.run({"geometry": budget, "cache": {"policy": "lfu"}, "ops": steps, "seed": 1}, "plain")
for name in ("mpy_kv.token_eviction.cache", "mpy_kv.token_eviction.table"):
    assert type(sys.modules[name]).__name__ == "_Names", name
for name in pool_trace.MAKERS:
    pool_trace.run(name, 1, [300])
print(kernels.reasons)
