"""Naive models of the eviction policies: lists and dicts, each rule as its text says it.

held: entries in the order of insertion. A victim is looked for, never remembered.
"""

from __future__ import annotations

from collections import deque


class Model:
    """protected entries are no victims; those of `USED` count as used when they are protected no more."""

    USED = True

    def __init__(self, n: int, **options: int) -> None:
        self.n = n
        self.options = options
        self.held: list[int] = []
        self.protected: set[int] = set()
        self.used: dict[int, int] = {}  # entry -> when last
        self.now = 0

    def stamp(self, i: int) -> None:
        self.now += 1
        self.used[i] = self.now

    def insert(self, i: int, key: int = -1) -> None:
        self.held.append(i)
        self.stamp(i)

    def touch(self, i: int) -> None:
        self.stamp(i)

    def forget(self, i: int) -> None:
        self.held.remove(i)
        del self.used[i]

    def protect(self, i: int) -> None:
        self.protected.add(i)

    def unprotect(self, i: int) -> None:
        if i in self.protected:
            self.protected.remove(i)
            if self.USED:
                self.stamp(i)

    def candidates(self) -> list[int]:
        return [i for i in self.held if i not in self.protected]

    def victim(self) -> int:
        raise NotImplementedError

    def evict(self) -> int:
        i = self.victim()
        if i >= 0:
            self.forget(i)
        return i


class LRU(Model):
    def victim(self) -> int:
        return min(self.candidates(), key=lambda i: self.used[i], default=-1)


class FIFO(Model):
    USED = False

    def victim(self) -> int:
        return next(iter(self.candidates()), -1)


class LFU(Model):
    def __init__(self, n: int, **options: int) -> None:
        super().__init__(n, **options)
        self.counts: dict[int, int] = {}
        self.most = options.get("most_count", 255)

    def insert(self, i: int, key: int = -1) -> None:
        super().insert(i)
        self.counts[i] = 1

    def touch(self, i: int) -> None:
        super().touch(i)
        self.counts[i] = min(self.most, self.counts[i] + 1)

    def victim(self) -> int:
        return min(self.candidates(), key=lambda i: (self.counts[i], self.used[i]), default=-1)


class Hybrid(LFU):
    def candidates(self) -> list[int]:
        window = self.options.get("window", self.n // 8)
        fresh = self.held[-window:] if window else []
        return [i for i in super().candidates() if i not in fresh]


class Sieve(Model):
    USED = False

    def __init__(self, n: int, **options: int) -> None:
        super().__init__(n, **options)
        self.marked: set[int] = set()
        self.hand: int | None = None

    def touch(self, i: int) -> None:
        self.marked.add(i)

    def after(self, i: int) -> int | None:
        at = self.held.index(i) + 1
        return self.held[at] if at < len(self.held) else None

    def forget(self, i: int) -> None:
        if self.hand == i:
            self.hand = self.after(i)
        self.marked.discard(i)
        super().forget(i)

    def victim(self) -> int:
        if not self.candidates():
            return -1
        while True:
            i = self.held[0] if self.hand is None else self.hand
            if i not in self.protected:
                if i not in self.marked:
                    self.hand = i  # forget moves it on
                    return i
                self.marked.remove(i)
            self.hand = self.after(i)


class S3FIFO(Model):
    USED = False

    def __init__(self, n: int, **options: int) -> None:
        super().__init__(n, **options)
        self.share = options.get("small", max(1, n // 10))
        self.ghosts: deque[int | None] = deque(maxlen=options.get("ghosts", max(1, n * 9 // 10)))
        self.small: list[int] = []
        self.main: list[int] = []
        self.uses: dict[int, int] = {}
        self.key: dict[int, int] = {}

    def insert(self, i: int, key: int = -1) -> None:
        super().insert(i)
        self.key[i], self.uses[i] = key, 0
        if key in self.ghosts:
            # Of equal ones the last that came.
            at = max(at for at, each in enumerate(self.ghosts) if each == key)
            self.ghosts[at] = None
            self.main.append(i)
        else:
            self.small.append(i)

    def touch(self, i: int) -> None:
        self.uses[i] = min(3, self.uses[i] + 1)

    def forget(self, i: int) -> None:
        (self.small if i in self.small else self.main).remove(i)
        super().forget(i)

    def victim(self) -> int:
        if not self.candidates():
            return -1
        queue = self.small if len(self.small) >= self.share else self.main
        while True:
            i = next((i for i in queue if i not in self.protected), None)
            if i is None:
                queue = self.main if queue is self.small else self.small
            elif queue is self.small:
                if self.uses[i] < 2:
                    if self.key[i] >= 0:
                        self.ghosts.append(self.key[i])
                    return i
                self.small.remove(i)
                self.main.append(i)
                self.uses[i] = 0
            else:
                if self.uses[i] == 0:
                    return i
                self.uses[i] -= 1
                self.main.remove(i)
                self.main.append(i)


MODELS = {"fifo": FIFO, "lru": LRU, "lfu": LFU, "hybrid": Hybrid, "sieve": Sieve, "s3fifo": S3FIFO}
