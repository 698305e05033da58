"""What a table is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One place of an array, or `size` places one after another.

    `unit`: of what it counts. `by`: who writes it, and so when.
    """

    name: str
    unit: str
    by: str
    means: str
    size: int = 1


@dataclass(frozen=True)
class Table:
    """The fields of a kind of array, in order, from `first` on.

    `arrays`: the expressions that are such an array, by the files (globs below mpy_kv) in which they are.
    `names_end`: a name for the number of all places, where there is one.
    """

    name: str
    means: str
    arrays: Mapping[str, Sequence[str]]
    fields: tuple[Field, ...]
    first: int = 0
    names_end: str = ""

    def indexes(self) -> Iterator[tuple[str, int, Field | None]]:
        """Name, index and field of each place that has a name."""
        at = self.first
        for field in self.fields:
            yield field.name, at, field
            at += field.size
        if self.names_end:
            yield self.names_end, at, None


def rows(text: str) -> tuple[Field, ...]:
    """Fields from lines `NAME | unit | who writes it | meaning`; `NAME*3` has three places."""
    found = []
    for line in text.strip().splitlines():
        name, unit, by, means = (part.strip() for part in line.split("|", 3))
        name, _, size = name.partition("*")
        found.append(Field(name, unit, by, means, int(size or 1)))
    return tuple(found)
