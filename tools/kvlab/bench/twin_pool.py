"""What pools are measured against: blocks as objects, the free ones in a doubly linked queue.

That is how servers on big machines keep their blocks (arXiv 2309.06180): a block carries a count of its users
and the links of the queue; the queue has a fake block at either end, so that no link is ever missing; blocks
come from its head and go back to its tail. Nothing is checked: not the count, not the block, not that there
is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Block:
    """A block, free while `users` is 0; `before` and `after` are its neighbours in the queue then."""

    __slots__ = ("after", "before", "number", "users")

    def __init__(self, number: int) -> None:
        self.number = number
        self.users = 0
        self.before: Any = None
        self.after: Any = None


class FreeQueue:
    """The free blocks, longest free first."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.count = len(blocks)
        self.head, self.tail = Block(-1), Block(-1)
        line = [self.head, *blocks, self.tail]
        for one, other in zip(line, line[1:]):
            one.after, other.before = other, one

    def popleft(self) -> Block:
        block: Block = self.head.after
        after = block.after
        self.head.after = after
        after.before = self.head
        block.before = block.after = None
        self.count -= 1
        return block

    def append(self, block: Block) -> None:
        last = self.tail.before
        last.after = block
        block.before = last
        block.after = self.tail
        self.tail.before = block
        self.count += 1

    def popleft_many(self, count: int) -> list[Block]:
        blocks = []
        block = self.head.after
        for _ in range(count):
            blocks.append(block)
            after = block.after
            block.before = block.after = None
            block = after
        self.head.after = block
        block.before = self.head
        self.count -= count
        return blocks

    def append_many(self, blocks: Sequence[Block]) -> None:
        last = self.tail.before
        for block in blocks:
            last.after = block
            block.before = last
            last = block
        last.after = self.tail
        self.tail.before = last
        self.count += len(blocks)


class TwinPool:
    """Blocks handed out and taken back, one at a time or many."""

    def __init__(self, blocks: int) -> None:
        self.blocks = [Block(number) for number in range(blocks)]
        self.queue = FreeQueue(self.blocks)

    def get_new_block(self) -> Block:
        block = self.queue.popleft()
        block.users += 1
        return block

    def free_block(self, block: Block) -> None:
        block.users -= 1
        if block.users == 0:
            self.queue.append(block)

    def get_new_blocks(self, count: int) -> list[Block]:
        blocks = self.queue.popleft_many(count)
        for block in blocks:
            block.users += 1
        return blocks

    def free_blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            block.users -= 1
        self.queue.append_many([block for block in blocks if block.users == 0])
