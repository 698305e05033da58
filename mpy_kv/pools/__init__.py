"""Pools: who owns which bytes of an arena.

Protocol: alloc(size, align=4) -> handle, free(handle), lock/unlock/is_locked(handle),
set_owner/owner(handle), offset(handle), free_bytes(), stats(), check(), metadata_bytes().
"""
