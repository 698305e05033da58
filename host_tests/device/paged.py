"""Requests on a board: a script of opens, steps, forks, rollbacks and closes, told as text.

usage: paged.py SEED COUNT [KERNELS [CODEC]]    prints JSON: what each act gave (checksums), counts
The same text comes from every interpreter and kernel set. Results of every request are compared with those of
a KVCache that runs alone. On CPython, where nothing counts allocations, "allocated" is empty.
"""

import gc
import json
import sys
from array import array

try:
    import micropython

    total = micropython.mem_total
except ImportError:
    micropython = None

    def total():
        return 0


from binascii import crc32

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import NoRoom
from mpy_kv.paged import PagedGeometry, Requests

SEED, COUNT = int(sys.argv[1]), int(sys.argv[2])
CODEC = sys.argv[4] if len(sys.argv) > 4 else "int8"
FAMILY = kernels.of(CODEC)
KERNELS = FAMILY.get(sys.argv[3]) if len(sys.argv) > 3 else FAMILY.best()
LAYERS, WINDOW, SINKS = 2, 12, 3
MANY = 3


class Draw:
    """A small generator: the same numbers everywhere."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 5147 + 12347) % 104729
        return self.state % n


k, v = array("f", [0] * 8), array("f", [0] * 8)
q, out = array("f", [0] * 16), array("f", [0] * 16)


def fill(x, seed):
    i = len(x)
    while i:
        i -= 1
        x[i] = (seed * 37 + i * 53) % 201 - 100


def step(sequence, token, ids):
    """A checksum of what every layer saw."""
    crc = 0
    for layer in range(LAYERS):
        at = token * 5 + sequence.length * 11 + layer * 3
        fill(k, at)
        fill(v, at + 1)
        fill(q, at + 2)
        sequence.append(layer, k, v)
        sequence.attend(layer, q, out, q)
        crc = crc32(out, crc)
    if ids:
        sequence.commit(token)
    else:
        sequence.commit()
    return crc


def told(said, tokens, at):
    """Whether the last result is that of the tokens in a cache of their own."""
    alone = KVCache(Geometry(LAYERS, 2, 1, 8, window=WINDOW, sinks=SINKS, codec=CODEC), kernels=KERNELS)
    crc = 0
    for token in tokens:
        crc = step(alone, token, False)
    return crc == said


def acts(requests):
    """Draw what to do; lines of what came of it."""
    draw = Draw(SEED)
    common = [draw.below(2) for _ in range(400)]  # what most requests begin with
    lines, open_ones, wrong = [], [], 0
    for turn in range(COUNT):
        act = draw.below(10)
        if (act < 2 and len(open_ones) < MANY) or not open_ones:
            tokens = common[: 6 + draw.below(8)]
            one = requests.open(task=turn, tokens=tokens, reserve_tokens=4)
            lines.append(("open", one.length))
            open_ones.append((one, tokens[: one.length]))
            continue
        at = draw.below(len(open_ones))
        one, tokens = open_ones[at]
        try:
            if act < 7:
                said = 0
                for _ in range(1 + draw.below(6)):
                    token = common[one.length] if draw.below(8) else 2
                    said = step(one, token, True)
                    tokens.append(token)
                lines.append(("run", one.length, said))
                if turn % 4 == 0:
                    wrong += not told(said, tokens, one.length)
            elif act == 7 and len(open_ones) < MANY:
                open_ones.append((one.fork(), list(tokens)))
                lines.append(("fork", one.length))
            elif act == 8:
                # What the window has lost stays lost, so that results then differ from a run alone.
                back = draw.below(min(one.length, 4) + 1) if one.length <= WINDOW else 0
                one.rollback(back)
                del tokens[len(tokens) - back :]
                lines.append(("rollback", one.length))
            else:
                one.close()
                open_ones.pop(at)
                lines.append(("close", at))
        except NoRoom as refused:
            one.abort()
            one.close()
            open_ones.pop(at)
            lines.append(("refused", refused.needed, refused.free, refused.evictable))
        if requests.check():
            lines.append(("broken", turn))
    for one, _ in open_ones:
        one.close()
    return lines, wrong


def quiet(sequence, token):
    # A frame of few words: a longer one would lie on the heap.
    layer = 0
    while layer < LAYERS:
        sequence.append(layer, k, v)
        sequence.attend(layer, q, out, q)
        layer += 1
    sequence.commit(token)


def allocated(requests):
    """Bytes that each kind of call takes, the first ones over."""
    one, two = requests.open(), requests.open()
    for i in range(40):
        quiet(one, i % 3)
        quiet(two, i % 5)
    three = one.fork()
    quiet(three, 1)
    quiet(three, 1)
    counted = {}
    a = total()
    for i in range(60):
        quiet(one, i % 3)
        quiet(two, i % 5)
    b = total()
    counted["steps"] = b - a
    a = total()
    one.rollback(3)
    b = total()
    counted["rollback"] = b - a
    quiet(one, 1)
    two.close()
    two = one.fork()
    quiet(two, 0)
    two.rollback(1)
    a = total()
    two.abort()
    quiet(two, 1)  # copies the tail
    b = total()
    counted["copy"] = b - a
    a = total()
    two.close()
    b = total()
    counted["close"] = b - a
    gc.collect()
    return counted


g = PagedGeometry(LAYERS, 2, 1, 8, window=WINDOW, sinks=SINKS, codec=CODEC, block_tokens=4)
requests = Requests(g, 13, max_requests=MANY, kernels=KERNELS)
lines, wrong = acts(requests)
stats = requests.stats()
print(
    json.dumps(
        {
            "acts": [list(line) for line in lines],
            "wrong": wrong,
            "stats": [[name, stats[name]] for name in sorted(stats)],
            "order": list(requests._ledger.blocks.nxt),
            "hashes": list(requests._ledger.blocks.hash),
            "allocated": allocated(Requests(g, 30, max_requests=MANY, kernels=KERNELS))
            if micropython
            else {},
        }
    )
)
