"""cache_job.py as a port without native code would run it.

usage: no_emitter.py JOB DATA OUT
mpy_kv.port is loaded with its trial of the emitter made to fail, so that the package takes the path of
such ports: its files with native decorators left out.
"""

import sys

here = sys.argv[0][: sys.argv[0].rfind("/") + 1]
with open(here + "../../mpy_kv/port.py") as f:
    text = f.read()
assert text.count("EMITTER = True") == 1
names = {"__name__": "mpy_kv.port", "__file__": "mpy_kv/port.py"}
exec(text.replace("EMITTER = True", "EMITTER = False"), names)


class Module:
    pass


port = Module()
for key in names:
    setattr(port, key, names[key])
sys.modules["mpy_kv.port"] = port

import cache_job  # noqa: E402
import json  # noqa: E402
from mpy_kv import kernels  # noqa: E402

import budget_job  # noqa: E402
import pool_trace  # noqa: E402

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
