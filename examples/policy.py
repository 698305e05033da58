"""A policy: of 64 tokens 16 stay, and among them the one that is looked at, however old it is.

    kvlab deploy --board rp2040 --mpy --app none --policy lru-peak      then paste this, or
    mpremote run examples/policy.py
    kvlab emulate examples/policy.py --board rp2040 --compiled

Prints
    window     16 of 64 tokens, the one that is looked at is gone
    lru-peak   16 of 64 tokens, the one that is looked at is there
    [5, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]
"""

from array import array

from mpy_kv import Geometry, KVCache
from mpy_kv.token_eviction import BudgetCache

WANTED = 5

g = Geometry(layers=1, heads=1, kv_heads=1, head_dim=8, window=16, sinks=0)
plain = array("f", [1, -1] * 4)
wanted = array("f", [3] * 8)
out = array("f", [0] * 8)

for name, cache in (("window", KVCache(g)), ("lru-peak", BudgetCache(g, policy="lru-peak"))):
    for token in range(64):
        k = wanted if token == WANTED else plain
        cache.append(0, k, k)
        cache.attend(0, wanted, out)  # each step looks for what the one token is
        cache.commit()
    kept = sorted(cache.visible())
    there = "there" if WANTED in kept else "gone"
    print("%-10s %d of %d tokens, the one that is looked at is %s" % (name, len(kept), cache.length, there))
print(kept)
