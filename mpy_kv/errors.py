"""Every exception mpy_kv raises. Raising allocates; nothing here is raised on a path that succeeds."""


class KVError(Exception):
    """Base of all errors of mpy_kv."""


class BadArgument(KVError):
    """An argument is wrong (length, type, range, geometry). Raised before anything changes."""


class OutOfRange(KVError):
    """A value cannot be stored: not finite, or its group needs a scale beyond float16 (65504)."""


class StepError(KVError):
    """Calls came in an order that has no meaning (attend before append, commit with a layer missing)."""


class NoRoom(KVError):
    """Nothing fits. Carries needed, free, largest, evictable and pinned, in the unit named by `unit`."""

    def __init__(self, message, needed, free, largest=None, evictable=0, pinned=0, unit="tokens"):
        super().__init__(
            "%s: needed %d %s, free %d, largest %d, evictable %d, pinned %d"
            % (message, needed, unit, free, free if largest is None else largest, evictable, pinned)
        )
        self.needed = needed
        self.free = free
        self.largest = free if largest is None else largest
        self.evictable = evictable
        self.pinned = pinned
        self.unit = unit


class CacheFull(NoRoom):
    """A cache without a window holds `capacity` tokens and got one more."""


class PoolFull(NoRoom):
    """A pool has no block for this request."""


class NeverFits(NoRoom):
    """A request needs more than there is in all, or than one may have: waiting would not help."""


class QueueFull(NoRoom):
    """A queue has no place for another request now."""


class BadHandle(KVError):
    """A handle that this pool did not issue, or issued and took back since (double free, stale)."""


class Locked(KVError):
    """The block is locked: it cannot be freed or evicted."""
