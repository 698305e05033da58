"""Counts and broken invariants of a fixed pool. Transient (mpy_kv/transient.py); allocates, changes nothing.

`meta`, `word`: the pool's arrays, see fixed.py. How often a block was freed is in its generation: it starts
at 1, a free adds one, and the last is followed by 2. So a block whose generation is 1 was never freed. As
the stack gives out one that was in use before it gives out a new one, the first block never in use says how
many have been in use at once.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

# fields: fixed
_TOP = const(0)
_MASK = const(1)
_STEP = const(2)
_BLOCKS = const(3)
_WASTE = const(4)
_LOCKS = const(5)
_WRAPS = const(6)
_FIRST = const(7)
# end of fields


def stats(meta, word, block_bytes):
    """As FixedPool.stats."""
    blocks = int(meta[_BLOCKS])
    used = 2 * blocks - int(meta[_TOP])
    frees, high = _history(meta, word)
    return {
        "pool": "fixed",
        "total_bytes": blocks * block_bytes,
        "used_bytes": used * block_bytes,
        "largest_free_bytes": block_bytes if used < blocks else 0,
        "max_block_bytes": block_bytes,
        "blocks": blocks,
        "used_blocks": used,
        "alloc_count": frees + used,
        "free_count": frees,
        "high_water_blocks": high,
        "locked_blocks": int(meta[_LOCKS]),
        "internal_waste_bytes": int(meta[_WASTE]),
        "fragmentation": 0.0,
    }


def _history(meta, word):
    """(frees, most blocks in use at once)"""
    step = int(meta[_STEP])
    frees = int(meta[_WRAPS]) * ((1 << 29) // step - 2)
    high = 0
    for i in range(meta[_BLOCKS]):
        w = int(word[i])
        generation = (w & 0x1FFFFFFF if w >= 0 else -1 - w) // step
        frees += generation - 1
        if w >= 0 or generation > 1:
            high += 1
    return frees, high


def check(meta, word, block_bytes):
    """As FixedPool.check."""
    blocks, mask = meta[_BLOCKS], meta[_MASK]
    n = meta[_TOP] - blocks
    if not 0 <= n <= blocks:
        return 1
    bad = 0
    seen = bytearray(blocks)
    for k in range(n):
        i = word[blocks + k]
        if i < 0 or i >= blocks or seen[i]:
            bad += 1  # foreign or listed twice
        else:
            seen[i] = 1
    locks = waste = new = 0
    tag = (word[0] if word[0] >= 0 else -1 - word[0]) // (mask + 1) & 7
    for i in range(blocks):
        w = word[i]
        if (w < 0) != seen[i]:
            bad += 1  # state and stack disagree
        handle = -1 - w if w < 0 else w & 0x1FFFFFFF
        if handle & mask != i or handle // (mask + 1) & 7 != tag or handle >> 29 or handle < meta[_STEP]:
            bad += 1  # not what this block issues
        if w < 0 and handle < 2 * meta[_STEP]:
            new += 1
        elif new:
            bad += 1  # a block was taken before one that comes first
        if w >> 29 == 1:
            locks += 1
        lost = meta[_FIRST + i]
        waste += lost
        if lost < 0 or lost >= block_bytes or (w < 0 and lost):
            bad += 1  # more lost than there is, or of a free block
    return bad + (locks != meta[_LOCKS]) + (waste != meta[_WASTE]) + (meta[_WRAPS] < 0)
