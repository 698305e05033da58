"""What storing costs, and that no step costs more for what has long passed. In instructions.

usage: steps.py    runs on the emulated board alone; prints JSON
The cache has stories260K's shape: 5 layers, 8 query heads on 4 of 8 channels, a window of 256. "append" is
one layer's 2 x 32 values, the mean over 5 layers and 32 tokens, from the hundredth token on and from the
millionth on; "commit" ends such a step. "step_by_window" is append, attend and commit of one layer of int16
in a full window of some sizes, early and at the millionth token. Prints "+1" for each of these sizes.
"""

import gc
import json
from array import array

import micropython
from instructions import instructions, ticks
from mpy_kv import Geometry, KVCache, kernels

LAYERS, HEADS, KV_HEADS, HEAD_DIM, WINDOW = 5, 8, 4, 8, 256
WIDTH = KV_HEADS * HEAD_DIM
SETS = ("viper", "thumb")
KINDS = {"int16": "h", "float32": "f"}
MILLION = 1000000
TOKENS = 32
WINDOWS = (32, 64, 128, 256)


class Steps:
    """A cache of one element type ("h" int16, "f" float32), and the token that goes into it."""

    def __init__(self, kind, layers=LAYERS, window=WINDOW, kernel_set=None):
        g = Geometry(layers, HEADS, KV_HEADS, HEAD_DIM, window=window, sinks=0)
        self.cache = KVCache(g, kv_shift=9 if kind == "h" else None, kernels=kernel_set)
        self.layers = layers
        self.k, self.v = array(kind, [0] * WIDTH), array(kind, [0] * WIDTH)
        self.q, self.out = array(kind, [0] * (HEADS * HEAD_DIM)), array(kind, [0] * (HEADS * HEAD_DIM))
        for i in range(HEADS * HEAD_DIM):
            self.q[i] = i * 5 % 9 - 4

    def token(self, t):
        """The values of token t."""
        for i in range(WIDTH):
            self.k[i] = (t * 37 + i * 91) % 1021 - 510
            self.v[i] = (t * 53 + i * 29) % 509 - 254

    @micropython.native
    def append(self):
        append, k, v, layers = self.cache.append, self.k, self.v, self.layers
        layer = 0
        while layer < layers:
            append(layer, k, v)
            layer += 1

    def go_to(self, position):
        """Jump to a turn of the ring before it, and fill the window from there."""
        turn = self.cache.geometry.ring_slots
        if position > turn:
            self.cache.seek(position - turn)
        for t in range(position - self.cache.length):
            self.token(t)
            self.append()
            self.cache.commit()

    def storing(self, position):
        """(instructions of one layer's append, of the commit) there; the mean of some tokens."""
        self.go_to(position)
        append = commit = 0
        for t in range(TOKENS):
            self.token(t)
            gc.collect()
            start = ticks()
            self.append()
            between = ticks()
            self.cache.commit()
            end = ticks()
            append += instructions(start, between)
            commit += instructions(between, end)
        return append / TOKENS / self.layers, commit / TOKENS

    def step(self, position):
        """Instructions of append, attend and commit there; the mean of one turn of the ring."""
        self.go_to(position)
        total = 0
        for t in range(self.cache.geometry.ring_slots):
            self.token(t)
            gc.collect()
            start = ticks()
            self.cache.append(0, self.k, self.v)
            self.cache.attend(0, self.q, self.out)
            self.cache.commit()
            total += instructions(start, ticks())
        return total / self.cache.geometry.ring_slots


def main():
    append, commit = {}, 0
    for name in SETS:
        append[name] = {}
        for kind in KINDS:
            early, commit = Steps(KINDS[kind], kernel_set=kernels.get(name)).storing(100)
            late, _ = Steps(KINDS[kind], kernel_set=kernels.get(name)).storing(MILLION)
            append[name][kind] = {"hundredth": early, "millionth": late}
    step = {}
    for window in WINDOWS:
        step[window] = {
            "early": Steps("h", 1, window).step(2 * window),
            "millionth": Steps("h", 1, window).step(MILLION),
        }
        print("+1")
    best = kernels.best().name
    print(json.dumps({"kernels": best, "append": append, "commit": commit, "step_by_window": step}))


if __name__ == "__main__":
    main()
