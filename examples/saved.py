"""A sequence in a file, and gone on with: what comes after is to the bit what it would have been.

    kvlab deploy --board rp2040 --mpy --app none      then paste this, or mpremote run examples/saved.py
    kvlab emulate examples/saved.py --board rp2040 --compiled

Prints
    50 tokens, 24 visible: a file of 1006 bytes
    another model's is refused: model is 00000008 here and 00000007 in the snapshot
    24 tokens were there, 10 more give the same
    10 tokens of the program's own: 40 .. 49
"""

import os
from array import array

from mpy_kv import Geometry, KVCache, snapshot

WIDTH = 16  # one layer, one head
FILE = "saved.mkvs"
g = Geometry(layers=1, heads=1, kv_heads=1, head_dim=WIDTH, window=20)  # and 4 sinks


def step(cache, token):
    """One token of a model that is none; what it attends to."""
    k = array("f", [(token * 7 + i * 5) % 23 / 8 - 1 for i in range(WIDTH)])
    out = array("f", [0] * WIDTH)
    cache.append(0, k, k)
    cache.attend(0, k, out, k)
    cache.commit()
    return bytes(out)


cache = KVCache(g)
for token in range(50):
    step(cache, token)

# The newest ids, beside what the format has; of a tag the first letter is small.
ids = bytes(range(40, 50))
size = snapshot.save_file(cache, FILE, model=7, sections=[(b"last", ids)])
print("%d tokens, %d visible: a file of %d bytes" % (cache.length, len(cache.visible()), size))

other = KVCache(g)
try:
    snapshot.load_file(other, FILE, model=8)
except snapshot.BadSnapshot as error:
    print("another model's is refused:", error)

last = bytearray(10)
there = snapshot.load_file(other, FILE, model=7, sections={b"last": last})
same = [step(other, token) == step(cache, token) for token in range(50, 60)]
print("%d tokens were there, 10 more give %s" % (there, "the same" if all(same) else "others"))
print("%d tokens of the program's own: %d .. %d" % (len(last), last[0], last[9]))
os.remove(FILE)
