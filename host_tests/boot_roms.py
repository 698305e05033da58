"""What the boot loaders of RP2040 and RP2350 make of a UF2 file dropped on them, as their sources tell:
raspberrypi/pico-bootrom-rp2040@053e0811b2b247ca120ddc13cdbe9c860602fa9a:bootrom/virtual_disk.c and
raspberrypi/pico-bootrom-rp2350@cf56181344fd23a718acf38a6bfccb18dd19c1f0:src/nsboot/usb_virtual_disk.c.
"""

import struct

SECTOR = 4096
PAGE = 256
FLASH = 0x10000000
WINDOW = 16 << 20  # addresses that are flash, whatever the chip has; a smaller chip comes again and again

MAGIC = (0x0A324655, 0x9E5D5157)
END = 0x0AB16F30
NOT_FLASH = 0x1
HAS_FAMILY = 0x2000


class Rom:
    """A board in boot-loader mode, whose flash has some old content."""

    families = ()

    def __init__(self, flash):
        self.flash = flash
        self.count = 0
        self.family = None
        self.written = set()
        self.erased = set()
        self.reboots = 0

    def drop(self, raw, order=None):
        """The blocks of a file, in `order` or as they are."""
        blocks = [raw[at : at + 512] for at in range(0, len(raw), 512)]
        for index in range(len(blocks)) if order is None else order:
            self.block(blocks[index])

    def block(self, block):
        *magic, flags, address, size, index, count, family = struct.unpack_from("<8I", block)
        if tuple(magic) != MAGIC or struct.unpack_from("<I", block, 508)[0] != END:
            return
        if not flags & HAS_FAMILY or family not in self.families or flags & NOT_FLASH or size != PAGE:
            return
        if not count or not FLASH <= address <= FLASH + WINDOW - PAGE or address % PAGE or index >= count:
            self.count = 0
            return
        if self.is_new(count, family):
            self.count, self.family, self.written, self.erased = count, family, set(), set()
        if index in self.written:
            return
        self.written.add(index)
        at = (address - FLASH) % len(self.flash)
        group = self.group(index, address)
        if group not in self.erased:
            self.erased.add(group)
            begin = at // SECTOR * SECTOR
            self.flash[begin : begin + SECTOR] = b"\xff" * SECTOR
        # Programming only clears bits.
        old = int.from_bytes(self.flash[at : at + PAGE], "little")
        new = int.from_bytes(block[32 : 32 + PAGE], "little")
        self.flash[at : at + PAGE] = (old & new).to_bytes(PAGE, "little")
        self.reboots += len(self.written) == count


class Rp2040(Rom):
    """Erases once for 16 blocks, by their numbers: the sector that the first of them to come lies in."""

    families = (0xE48BFF56,)

    def is_new(self, count, family):
        return count != self.count

    def group(self, index, address):
        return index * PAGE // SECTOR


class Rp2350(Rom):
    """Erases each sector before its first block; without a partition table a family has the whole flash."""

    families = (0xE48BFF57, 0xE48BFF58, 0xE48BFF59, 0xE48BFF5A)

    def is_new(self, count, family):
        return (count, family) != (self.count, self.family)

    def group(self, index, address):
        return (address - FLASH) // SECTOR
