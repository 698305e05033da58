"""Stand-in for `esp32`: the partition of the file system. Stock firmware maps none: it copies."""

from emu import flash
from emu.board import PARTITION


class Partition(flash.BlockDevice):
    """`esp32.Partition(label)` and `Partition.find(...)`, for the one data partition there is."""

    BOOT = 0
    RUNNING = 1
    TYPE_APP = 0
    TYPE_DATA = 1

    def __init__(self, id, block_size=4096):
        if id != PARTITION["label"]:
            raise OSError(2)  # ENOENT
        if block_size != flash.erase_bytes:
            raise ValueError("block_size %d: only %d here" % (block_size, flash.erase_bytes))
        super().__init__(0, flash.size)

    @staticmethod
    def find(type=0, subtype=255, label=None, block_size=4096):
        fits = (
            type == Partition.TYPE_DATA
            and subtype in (255, PARTITION["subtype"])
            and label in (None, PARTITION["label"])
        )
        return [Partition(PARTITION["label"], block_size)] if fits else []

    def info(self):
        """(type, subtype, address, size, label, encrypted)"""
        return (
            Partition.TYPE_DATA,
            PARTITION["subtype"],
            PARTITION["address"],
            flash.size,
            PARTITION["label"],
            False,
        )
