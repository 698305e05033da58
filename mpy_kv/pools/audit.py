"""Counts and broken invariants of a fixed pool. Lent (mpy_kv/lend.py); allocates, changes nothing.

`meta`, `stack`, `bitmap`, `locked`: the pool's arrays, see fixed.py.
"""

from .fixed import ALLOCS, BLOCKS, FREE, FREES, HIGH, LOCKS


def stats(meta, block_bytes):
    """As FixedPool.stats."""
    used = meta[BLOCKS] - meta[FREE]
    return {
        "total_bytes": meta[BLOCKS] * block_bytes,
        "used_bytes": used * block_bytes,
        "largest_free_bytes": block_bytes if meta[FREE] else 0,
        "max_block_bytes": block_bytes,
        "blocks": meta[BLOCKS],
        "used_blocks": used,
        "alloc_count": meta[ALLOCS],
        "free_count": meta[FREES],
        "high_water_blocks": meta[HIGH],
        "locked_blocks": meta[LOCKS],
        "fragmentation": 0,
    }


def check(meta, stack, bitmap, locked):
    """As FixedPool.check."""
    bad = 0
    blocks = meta[BLOCKS]
    seen = bytearray(blocks)
    n = meta[FREE]
    if not 0 <= n <= blocks:
        return 1
    for k in range(n):
        i = stack[k]
        if i >= blocks or seen[i]:
            bad += 1  # foreign or listed twice
        else:
            seen[i] = 1
    locks = 0
    for i in range(blocks):
        if bitmap[i >> 3] >> (i & 7) & 1 != seen[i]:
            bad += 1  # bitmap and stack disagree
        if locked[i]:
            locks += 1
            if seen[i]:
                bad += 1  # locked yet free
    if locks != meta[LOCKS]:
        bad += 1
    if (meta[ALLOCS] - meta[FREES]) & 0x3FFFFFFF != blocks - n:
        bad += 1
    if meta[HIGH] < blocks - n:
        bad += 1
    return bad
