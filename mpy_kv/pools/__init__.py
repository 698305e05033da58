"""Pools: who owns which bytes of an arena.

    fixed        equal blocks; nothing is ever fragmented
    slab         size classes, each cut from slabs on demand
    slab_region  the same in regions: quotas of slabs, guaranteed and limited
    buddy        blocks of 2^k units, split and merged by halves
    region       contiguous regions of any size, moved together by compact()

One protocol. Handles are ints below 2^29, with a generation: a stale or foreign one is refused.
    alloc(size, align=4) -> handle, free(handle), grow(handle, size) -> handle
    alloc_many(n, size, out, align=4), free_many(handles, n): all or none
    lock, unlock, is_locked(handle): locked is neither freed nor moved
    set_owner(handle, layer, batch=0), owner(handle) -> (layer, batch)
    offset(handle) -> bytes in the arena's buffer, size(handle) -> usable bytes
    free_bytes(), largest_free_bytes(), overhead_bytes(size), metadata_bytes() of a block
    stats() -> dict, check() -> broken invariants
Errors: BadArgument, BadHandle, Locked, PoolFull; nothing has changed then. What is called per block allocates
nothing; stats() and check() do. State is in arrays made at construction, at most 16 bytes a block.
"""
