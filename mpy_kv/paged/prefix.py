"""The prefix index: full blocks found again by the tokens they hold and all tokens before them.

An entry is a block, so the index has no nodes of its own. Its key is its parent (the block before it, or
the root of a salt) and its tokens; a hash of the chain picks a bucket, but parent and tokens are always
compared. A parent is named with the serial number it was entered under: a block that was taken out and
entered anew is no parent of its old children. All is O(1) expected, O(tokens of a block) compared.

Arrays, by block: serial (0: not in the index), hash, parent (-1 - root, or a block), pserial, chain (next
block of its bucket), children (entries whose parent it is), ids (block_tokens each); bucket: first of each.
Transitions on them for device and host; they allocate nothing. `n`, the number of blocks, stands for none.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

# fields: blocks
_N = const(0)
_REUSABLE = const(3)
_SERIAL = const(6)
_ENTRIES = const(7)
_BLOCK_TOKENS = const(8)
_ORPHANS = const(9)
# end of fields


@micropython.native
def chain_hash(h, ids, at, count):
    """Hash of a chain whose hash is `h` so far, `count` ids from `at` on added; 0..2^30 - 1.

    Two sums of 15 bits modulo a prime, so that every product is a small int on a 32-bit board.
    ids are below 2^29.
    """
    a = h >> 15
    b = h & 0x7FFF
    end = at + count
    while at < end:
        t = ids[at]
        a = (a * 16381 + t) % 32749
        b = (b * 12289 + t + 1) % 32719
        at += 1
    return a << 15 | b


@micropython.native
def find(meta, hashes, parent, pserial, chain, bucket, ids, under, under_serial, h, tokens, at):
    """Block whose entry has that parent, hash and `tokens` from `at` on; -1 if there is none."""
    n = meta[_N]
    size = meta[_BLOCK_TOKENS]
    i = bucket[h & (len(bucket) - 1)]
    while i != n:
        if hashes[i] == h and parent[i] == under and pserial[i] == under_serial:
            k = 0
            base = i * size
            while k < size and ids[base + k] == tokens[at + k]:
                k += 1
            if k == size:
                return i
        i = chain[i]
    return -1


@micropython.native
def enter(
    meta, ref, nxt, prv, serial, hashes, parent, pserial, chain, bucket, children, under, under_serial, h, i
):
    """Enter block i, which is referenced and whose ids are written, under a parent that is alive."""
    n = meta[_N]
    s = meta[_SERIAL] + 1
    if s >> 30:
        s = 1
    meta[_SERIAL] = s
    hashes[i] = h
    parent[i] = under
    pserial[i] = under_serial
    children[i] = 0
    b = h & (len(bucket) - 1)
    chain[i] = bucket[b]
    bucket[b] = i
    serial[i] = s
    meta[_ENTRIES] += 1
    if under >= 0:
        k = children[under]
        children[under] = k + 1
        if k == 0 and ref[under] == 0:
            # A reusable block with children waits in the inner list until they are gone.
            p = prv[under]
            x = nxt[under]
            nxt[p] = x
            prv[x] = p
            p = prv[n + 1]
            prv[under] = p
            nxt[under] = n + 1
            nxt[p] = under
            prv[n + 1] = under
    return s


@micropython.native
def forget(meta, ref, nxt, prv, serial, hashes, parent, pserial, chain, bucket, children, i):
    """Take block i out of the index. One that was reusable is in no list then, and the caller's to use."""
    n = meta[_N]
    serial[i] = 0
    if children[i]:
        meta[_ORPHANS] = 1
    b = hashes[i] & (len(bucket) - 1)
    j = bucket[b]
    if j == i:
        bucket[b] = chain[i]
    else:
        while chain[j] != i:
            j = chain[j]
        chain[j] = chain[i]
    meta[_ENTRIES] -= 1
    if ref[i] == 0:
        p = prv[i]
        x = nxt[i]
        nxt[p] = x
        prv[x] = p
        meta[_REUSABLE] -= 1
    u = parent[i]
    if u >= 0 and serial[u] == pserial[i]:
        k = children[u] - 1
        children[u] = k
        if k == 0 and ref[u] == 0:
            # The tail of its chain now: the next to go.
            p = prv[u]
            x = nxt[u]
            nxt[p] = x
            prv[x] = p
            x = nxt[n]
            nxt[u] = x
            prv[u] = n
            prv[x] = u
            nxt[n] = u
    return 0
