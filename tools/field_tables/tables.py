"""All tables, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from field_tables import bus, dma, kernels, schedule, state, stories, stream
from field_tables.table import Table

_TABLES = (
    *(*kernels.TABLES, *schedule.TABLES, *state.TABLES, *stories.TABLES),
    *(*bus.TABLES, *dma.TABLES, *stream.TABLES),
)
ALL: Mapping[str, Table] = {table.name: table for table in _TABLES}
if len(ALL) < len(_TABLES):
    raise ValueError("two tables have one name")


def of(*names: str) -> SimpleNamespace:
    """The indexes of these tables by the names of their fields, for tests and tools."""
    return SimpleNamespace(**{name: index for table in names for name, index, _ in ALL[table].indexes()})
