"""What an element type or a token policy costs a token, in instructions.

usage: choices.py KERNELS CHOICE    runs on the emulated board alone; prints JSON
The cache has stories260K's shape: 5 layers, 8 query heads on 4 of 8 channels, int16 numbers, no sinks.
Of an element type: "append" of a layer's 2 x 32 values, the step being begun; "qk" and "av", those kernels
alone, of each token in view in one layer, as the slope from FEW to MANY tokens; "attend" of a layer with MANY
in view; "token": append, attend and commit of all layers, the mean of PERIOD tokens, in which a block is
sealed where there are blocks. Of a policy: "token" with a budget of MANY full, so that each token evicts one;
"ring" is a cache without a policy. All weights are of like size, so that none is skipped. "in_view": MANY.
One choice a run: what ran before it would lie in the heap, and its names in the interpreter's tables.
"""

import gc
import json
import sys
from array import array

from instructions import count
from mpy_kv import Geometry, cache_for, geometry_for, kernels
from mpy_kv.geometry import CODECS
from mpy_kv.token_eviction import BudgetCache

LAYERS, SHAPE = 5, (8, 4, 8)
FEW, MANY = 64, 128
PERIOD = 16
SHIFT = 9


class Without:
    """A kernel set with one of its functions, and its like for sealed blocks, replaced by nothing."""

    def __init__(self, full, missing):
        for key in dir(full):
            if not key.startswith("_"):
                setattr(self, key, getattr(full, key))
        for key in (missing, missing + "4"):
            if hasattr(full, key):
                setattr(self, key, self.nothing)

    @staticmethod
    def nothing(a, b, c, d):
        return 0


class Run:
    """A cache, and the tokens that go into it."""

    def __init__(self, cache):
        self.cache = cache
        self.k, self.v = array("h", bytes(64)), array("h", bytes(64))
        self.q, self.out = array("h", bytes(128)), array("h", bytes(128))
        self.state = 1
        for i in range(64):
            self.q[i] = i * 5 % 9 - 4

    def next(self):
        """Values of another token."""
        x = self.state
        for values in (self.k, self.v):
            for i in range(32):
                x = (x * 1103 + 12347) & 0xFFFFFF
                values[i] = (x >> 8 & 2047) - 1024
        self.state = x

    def append(self, layer):
        self.cache.append(layer, self.k, self.v)

    def attend(self, layer):
        self.cache.attend(layer, self.q, self.out)

    def token(self):
        for layer in range(LAYERS):
            self.append(layer)
            self.attend(layer)
        self.cache.commit()

    def fill(self, n):
        """Go on to n tokens and a little more, in steps as they will be counted."""
        while self.cache.length < n:
            self.next()
            self.token()

    def mean_append(self):
        """Of the layers behind the first one, whose append begins the step."""
        total = 0
        for _ in range(PERIOD):
            self.next()
            gc.collect()
            self.append(0)
            for layer in range(1, LAYERS):
                total += count(self.append, layer)
            self.cache.commit()
        return total / (PERIOD * (LAYERS - 1))

    def mean_token(self):
        total = 0
        for _ in range(PERIOD):
            self.next()
            gc.collect()
            total += count(self.token)
        return total / PERIOD


def attends(codec, kernel_set, window):
    """(append, attend, qk, av) of a layer with `window` tokens in view, and of a token."""
    g = geometry_for(codec, LAYERS, *SHAPE, window=window, sinks=0)
    run = Run(cache_for(g, kv_shift=SHIFT, kernels=kernel_set))
    run.fill(2 * window)
    token = run.mean_token()
    append = run.mean_append()
    run.next()
    run.append(0)
    gc.collect()
    whole = count(run.attend, 0)
    parts = []
    for missing in ("qk", "av"):
        run.cache.attention[0].kernels = Without(kernel_set, missing)
        run.cache.attention[0].call_by_name()  # these, not kernels that call one another
        gc.collect()
        parts.append(whole - count(run.attend, 0))
    return append, whole, parts[0], parts[1], token


def of_codec(codec, name):
    kernel_set = kernels.of(codec).get(name)
    kernels.release()
    few = attends(codec, kernel_set, FEW)
    many = attends(codec, kernel_set, MANY)
    return {
        "append": many[0],
        "attend": many[1],
        "qk": (many[2] - few[2]) / (MANY - FEW),
        "av": (many[3] - few[3]) / (MANY - FEW),
        "token": many[4],
    }


def of_policy(policy, name):
    g = Geometry(LAYERS, *SHAPE, window=MANY, sinks=0)
    options = {"kv_shift": SHIFT, "kernels": kernels.get(name)}
    cache = cache_for(g, **options) if policy == "ring" else BudgetCache(g, policy=policy, **options)
    kernels.release()
    run = Run(cache)
    run.fill(MANY + PERIOD)
    return {"token": run.mean_token()}


def main(name, choice):
    of_choice = of_codec if choice in CODECS else of_policy
    found = of_choice(choice, name)
    found["in_view"] = MANY
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
