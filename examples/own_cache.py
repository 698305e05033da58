"""A cache of one's own, without a model: what is stored is found again by what it looks like.

    kvlab deploy --board rp2040 --mpy --app none      then paste this, or mpremote run examples/own_cache.py
    kvlab emulate examples/own_cache.py --board rp2040 --compiled

Prints
    30 tokens, 24 visible, 6 evicted
    1260 bytes, all that its tokens take
    what looks like token 25: 250
    what looks like token 1: 10
    what looks like token 4: none, it left the window
"""

from array import array

from mpy_kv import Geometry, KVCache

WIDTH = 16  # one layer, one head

g = Geometry(layers=1, heads=1, kv_heads=1, head_dim=WIDTH, window=20)  # and 4 sinks
buffer = bytearray(g.bytes())
cache = KVCache(g, buffer)


def looks(token, scale=1):
    """A direction for each token: a 1 or -1 for each bit of a number that is the token's alone."""
    bits = (token + 1) * 40503 & 0xFFFF
    return array("f", [scale if bits >> i & 1 else -scale for i in range(WIDTH)])


out = array("f", [0] * WIDTH)
nothing = array("f", [0] * WIDTH)
for token in range(30):
    cache.append(0, looks(token), array("f", [token * 10] * WIDTH))
    cache.attend(0, nothing, out, nothing)  # nothing is asked yet
    cache.commit()

print("%d tokens, %d visible, %d evicted" % (cache.length, len(cache.visible()), cache.evicted_tokens))
print("%d bytes, all that its tokens take" % len(buffer))

for token in (25, 1, 4):
    query = looks(token, 8)
    cache.append(0, nothing, nothing)  # a step to ask in, which is not kept
    cache.attend(0, query, out, query)
    cache.abort()
    found = round(out[0]) if token in cache.visible() else "none, it left the window"
    print("what looks like token %d: %s" % (token, found))
