"""Instructions that a token policy adds to a token, on the emulated board: stories260K's shape, full budgets.

usage: budget_cost.py BUDGET KERNELS [POLICY ...]    prints JSON {policy: [append of the step's first layer,
attend of a layer, commit, token]}; "ring" is KVCache
"""

import gc
import json
import sys
from array import array

import instructions
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.token_eviction import BudgetCache
from mpy_kv.eviction import tokens

LAYERS = 5
BUDGET = int(sys.argv[1])


def noise(count, seed):
    x = seed * 40503 + 7919 & 0xFFFFFF
    values = array("h", [0] * count)
    for i in range(count):
        x = (x * 1103 + 12347) & 0xFFFFFF
        values[i] = (x >> 8 & 2047) - 1024
    return values


vectors = [(noise(32, t), noise(32, t + 9), noise(64, t + 20)) for t in range(7)]
out = array("h", [0] * 64)


def append(cache, layer, t):
    cache.append(layer, vectors[t % 7][0], vectors[t % 7][1])


def attend(cache, layer, t):
    cache.attend(layer, vectors[t % 7][2], out)


def commit(cache, layer, t):
    cache.commit()


def token(cache, layer, t):
    while layer < LAYERS:
        append(cache, layer, t)
        attend(cache, layer, t)
        layer += 1
    commit(cache, layer, t)


def cost(cache):
    for t in range(BUDGET + 20):
        token(cache, 0, t)
    for t in (0, 1, 2):
        gc.collect()
        found = [
            instructions.count(append, cache, 0, t),
            instructions.count(attend, cache, 0, t),
        ]
        for layer in range(1, LAYERS):
            append(cache, layer, t)
            attend(cache, layer, t)
        found.append(instructions.count(commit, cache, 0, t))
        found.append(instructions.count(token, cache, 0, t))
    return found


g = Geometry(LAYERS, 8, 4, 8, window=BUDGET, sinks=0)
chosen = {"kv_shift": 9, "kernels": kernels.get(sys.argv[2])}
found = {"ring": cost(KVCache(g, **chosen))}
for policy in sys.argv[3:] or sorted(tokens.POLICIES):
    found[policy] = cost(BudgetCache(g, policy=policy, **chosen))
    gc.collect()
print(json.dumps(found))
