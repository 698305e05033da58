"""What comes from flash chunk by chunk (mpy_kv/bus/stream): 32-bit words."""

from __future__ import annotations

from field_tables.table import Table, rows

MAKING = "boards/apps/stories/streaming/making.py"
DMA = "bus/stream/dma.py"
COPYING = "boards/apps/bench/stream/copying.py"
MARKS = "boards/apps/bench/stream/marks.py"

CHUNK = Table(
    "chunk",
    "A chunk, in front of the parameters of what works on it.",
    {MAKING: ("chunk",), DMA: ("chunk",), COPYING: ("chunks",), MARKS: ("chunk",)},
    rows("""
    CHUNK_READY | 0 or 1 | whoever fetches, chunk() | it lies in RAM
    CHUNK_PLACE | address | making | where it lies then
    CHUNK_FROM | address | making | of it in flash
    CHUNK_WORDS | words | making | of it
    CHUNK_NEXT | address | making | of the chunk behind it; of the last, the first
    CHUNK_FILLS | address | making | of the one that has the same place next
    CHUNK_GATE | address | dma | of the control word with which its fetching begins
    CHUNK_OPEN | control | dma | that word where it may be fetched; else it is 0
    """),
    names_end="CHUNK_FIELDS",
)

STREAM = Table(
    "stream",
    "What all chunks share. An address is one of RAM, of code or of a channel's registers.",
    {MAKING: ("state",), DMA: ("state",), COPYING: ("state",), MARKS: ("*.state",)},
    rows("""
    STREAM_NEXT | address | chunk() | of the chunk that is worked on next
    STREAM_FIRST | address | making | of the first in a round
    STREAM_PLACES | places | making | there are: so many chunks are fetched ahead
    STREAM_FETCH | address | making | of what has a chunk fetched
    STREAM_WORK | address | making | of what works on one: gets its place, two words and its parameters
    STREAM_ONE_WORD | word | making | the second that it gets
    STREAM_OTHER_WORD | word | making | the third
    STREAM_ONE | 1 | dma | written to CHUNK_READY
    STREAM_LIST | address | dma | of all control blocks
    STREAM_CONTROL | address | dma | of the channel that loads them
    STREAM_DATA | address | dma | of the channel that moves what they say
    STREAM_BUSY | bit | dma | of a channel's control word: it is at work
    """),
    names_end="STREAM_FIELDS",
)

TABLES = (CHUNK, STREAM)
