"""What lies in flash comes into RAM chunk by chunk while the core computes: by two DMA channels of an rp2
chip and the stream that its flash has beside the cache (dma.py), taken in by steps in Thumb assembler
(thumb.py).

RAM has a few places of one size, which chunks take turns at, in the order in which they are worked on. A
chunk is fetched once the one that had its place before is done with, so some are always ahead. The caller
owns all memory: the records of the chunks, their places, the state. Nothing is allocated once it is prepared.
"""
