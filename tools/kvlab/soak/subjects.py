"""What `kvlab soak` can soak, by name. Small pools: what is promised of all blocks is checked each time."""

from __future__ import annotations

from collections.abc import Callable

from kvlab.soak.pools import FixedSubject, PoolSubject, QuotaSubject, RegionSubject, SlabSubject
from kvlab.soak.requests import RequestSubject, TenantSubject
from kvlab.soak.subject import Subject
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool


def _fixed(seed: int) -> Subject:
    return FixedSubject(
        lambda arena, tag: FixedPool(arena, 32, 48, tag, align=16), 32 * 48, seed, (1, 48), (4, 1, 8, 16)
    )


def _buddy(seed: int) -> Subject:
    """No power of two: 45 units of 16 bytes are four roots."""
    return PoolSubject(
        lambda arena, tag: BuddyPool(arena, 45 * 16, 16, 16, tag), 1024, seed, (1, 200), (4, 2, 8, 16)
    )


def _region(seed: int) -> Subject:
    return RegionSubject(
        lambda arena, tag: RegionPool(arena, 1500, 24, tag), 1500, seed, (1, 250), (4, 1, 8, 64)
    )


_CLASSES = (16, 48, 112)


def _slab(seed: int) -> Subject:
    return SlabSubject(
        lambda arena, tag: SlabPool(arena, 128, 12, _CLASSES, tag=tag),
        12 * 128,
        seed,
        (1, 112),
        (4, 1, 8, 16),
    )


def _quota(seed: int) -> Subject:
    return QuotaSubject(
        *(lambda arena, tag: SlabRegionPool(arena, 128, 12, _CLASSES, 4, tag=tag), 12 * 128, seed, (1, 112)),
        (4, 1, 8, 16),
    )


def _requests(seed: int) -> Subject:
    return RequestSubject(seed, capacity=26)


def _window(seed: int) -> Subject:
    return RequestSubject(seed, window=9, sinks=2)


def _tenants(seed: int) -> Subject:
    return TenantSubject(seed, capacity=26)


SUBJECTS: dict[str, Callable[[int], Subject]] = {
    "fixed": _fixed,
    "buddy": _buddy,
    "region": _region,
    "slab": _slab,
    "slab+region": _quota,
    "requests": _requests,
    "requests-window": _window,
    "requests-shared-pool": _tenants,
}
