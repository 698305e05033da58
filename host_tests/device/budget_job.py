"""Drives a BudgetCache through a list of operations; the same file under CPython and MicroPython.

usage: budget_job.py JOBS KERNELS    JOBS: a file of JSON, one job a line; prints a line of JSON for each
job: {"geometry": {...}, "cache": {...}, "ops": [[...], ...], "seed": n}. ops: ["step"]; ["prefill", n];
["silent", n], a prefill never attended; ["append-only"], a step begun and left; ["abort"]; ["rollback", n];
["compress", ratio, recent]. Printed: outputs as hex, positions visible after each operation, worth of each
token at the end by position, how many were evicted.
Vectors are drawn by a generator of whole numbers, divided by powers of two: exact in any float.
"""

import json
import sys
from array import array
from binascii import hexlify

from mpy_kv import Geometry, kernels
from mpy_kv.token_eviction import BudgetCache


def noise(count, seed):
    """Whole numbers of at most 10 bits and a sign, small ones more often."""
    x = seed * 40503 + 7919 & 0xFFFFFF
    values = []
    for _ in range(count):
        x = (x * 1103 + 12347) & 0xFFFFFF
        value = (x >> 8 & 2047) - 1024
        values.append(value >> (x >> 20 & 3))
    return values


def vectors(job, token, layer):
    """k, v, q, q for the sinks, of a token and layer: whole numbers, to be divided by 2^SHIFT of each."""
    g = job["geometry"]
    width = g["kv_heads"] * g["head_dim"]
    q_row = g["heads"] * g["head_dim"]
    at = (job["seed"] * 977 + token) * 64 + layer * 4
    return noise(width, at), noise(width, at + 1), noise(q_row, at + 2), noise(q_row, at + 3)


K_SHIFT = 8
V_SHIFT = 9


def filled(int16, values, shift):
    if int16:
        return array("h", values)
    return array("f", [x / (1 << shift) for x in values])


class Driver:
    """A cache and what becomes of it; `token` counts the tokens ever given."""

    def __init__(self, job, kernel_name):
        g = Geometry(**job["geometry"])
        options = dict(job["cache"])
        self.int16 = options.pop("int16", False)
        if self.int16:
            options["kv_shift"] = [(K_SHIFT, V_SHIFT)] * g.layers
        self.cache = BudgetCache(g, kernels=kernels.of(g.codec).get(kernel_name), **options)
        self.job = job
        self.token = 0
        self.outputs = []
        self.visible = []

    def rows(self, layer, n):
        parts = [[], [], [], []]
        for i in range(n):
            for part, values in zip(parts, vectors(self.job, self.token + i, layer)):
                part += values
        shifts = (K_SHIFT, V_SHIFT, K_SHIFT, K_SHIFT)
        return [filled(self.int16, part, shift) for part, shift in zip(parts, shifts)]

    def tokens(self, n, attended=True, layers=None, staged=True):
        cache = self.cache
        for layer in range(cache.geometry.layers if layers is None else layers):
            k, v, q, qs = self.rows(layer, n)
            if staged:
                cache.prefill(layer, k, v, n)
            else:
                cache.append(layer, k, v)
            if attended:
                out = filled(self.int16, [0] * len(q), 0)
                cache.attend(layer, q, out, qs, n)
                self.outputs.append(hexlify(bytes(out)).decode())
        if layers is None:
            cache.commit()
        self.token += n

    def do(self, name, *about):
        if name == "step":
            self.tokens(1, staged=False)
        elif name == "prefill":
            self.tokens(about[0])
        elif name == "silent":
            self.tokens(about[0], attended=False)
        elif name == "append-only":
            self.tokens(1, layers=1, staged=False)
        else:
            getattr(self.cache, name)(*about)
        self.visible.append(self.cache.visible())

    def found(self):
        cache = self.cache
        if cache.check():
            raise SystemExit("check() found %d broken invariants" % cache.check())
        worth = cache.worth[cache.plan[17]]
        kept = [[x - 1, w] for x, w in zip(cache.at, worth) if 0 < x <= cache.length]
        return {
            "outputs": self.outputs,
            "visible": self.visible,
            "worth": sorted(kept),
            "evicted": cache.evicted_tokens,
        }


def run(job, kernel_name):
    driver = Driver(job, kernel_name)
    for op in job["ops"]:
        driver.do(*op)
    return driver.found()


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        for line in f:
            json.dump(run(json.loads(line), sys.argv[2]), sys.stdout)
            print()
