"""NOR flash that fails as real chips do: a block device in plain Python, for CPython and MicroPython.

Programming only clears bits, erasing sets those of a sector, both can be cut. What a cut leaves, by chance:
a program that is not there, there in part, or there, with *weak* bits; a weak bit reads by chance, or as one
of its two values for as long as the power is on. Bytes programmed before in the same sector may have been
disturbed. An erase may have done nothing, half of it, or read as done and not be: what is programmed then
has weak bits. Erasing and programming anew make bits firm.
"""


class PowerCut(BaseException):
    """The power went away in the middle of an operation. No `except Exception` sees it."""


# What weak bits read as, while the power is on.
ONES, ZEROS, CHANCE = range(3)


class Nor:
    """`sectors` of `sector_bytes`. The block protocol: readblocks, writeblocks, ioctl.

    before: called with (kind, sector, offset, data) before each operation, kind "erase" or "program".
    cut_after: that operation is cut, counted from 0; -1: none is.
    """

    def __init__(self, sectors, seed=1, sector_bytes=4096, page_bytes=256):
        self.sectors = sectors
        self.sector_bytes = sector_bytes
        self.page_bytes = page_bytes
        self.cells = bytearray(b"\xff" * (sectors * sector_bytes))
        self.weak = {}  # sector: {offset: mask}
        self.unerased = {}  # sector that reads erased and is not: what it held
        self.wear = [0] * sectors  # erases of each
        self.pages = bytearray(sectors * sector_bytes // page_bytes)  # 1: programmed since it was erased
        self.erases = 0
        self.programs = 0
        self.fresh_pages = 0  # programmed first after an erase
        self.lost_bits = 0  # asked to rise by a program
        self.longest_program = 0  # bytes in one call
        self.before = None
        self.cut_after = -1
        self.mood = CHANCE
        self._state = seed & 0x3FFFFFFF or 1

    def chance(self, n):
        """A number below n."""
        self._state = (self._state * 1103515245 + 12345) & 0x3FFFFFFF
        return (self._state >> 12) % n

    def copy(self, seed):
        """The same flash, with counts and chances of its own."""
        other = Nor(0, seed, self.sector_bytes, self.page_bytes)
        other.sectors = self.sectors
        other.cells = bytearray(self.cells)
        other.weak = {sector: dict(bits) for sector, bits in self.weak.items()}
        other.unerased = dict(self.unerased)
        other.wear = list(self.wear)
        other.pages = bytearray(self.pages)
        return other

    def power_on(self):
        """A start: what weak bits read as may be another from now on."""
        self.mood = self.chance(3)
        self.cut_after = -1

    # The block protocol

    def ioctl(self, op, arg):
        if op == 4:
            return self.sectors
        if op == 5:
            return self.sector_bytes
        if op == 6:
            self._erase(arg)
        return 0 if op in (1, 2, 3, 6) else None

    def readblocks(self, block, buf, offset=0):
        start = block * self.sector_bytes + offset
        view = memoryview(buf)
        n = len(view)
        if offset < 0 or start < 0 or start + n > len(self.cells):
            raise OSError(5)
        view[:] = memoryview(self.cells)[start : start + n]
        if self.weak:
            self.read_weak(view, start)

    def read_weak(self, view, start):
        """Let the weak bits of what was read from `start` on read as they do."""
        mood = self.mood
        for sector, bits in self.weak.items():
            at = start - sector * self.sector_bytes
            if -len(view) < at < self.sector_bytes:
                for offset, mask in bits.items():
                    i = offset - at
                    if 0 <= i < len(view):
                        seen = 0 if mood == ZEROS else 0xFF if mood == ONES else self.chance(256)
                        view[i] = view[i] & (mask ^ 0xFF) | seen & mask

    def writeblocks(self, block, buf, offset=None):
        """Without an offset the blocks are erased first; with one they must have been."""
        data = memoryview(buf)
        if offset is None:
            for i in range(0, len(data), self.sector_bytes):
                self._erase(block + i // self.sector_bytes)
            offset = 0
        at = block * self.sector_bytes + offset
        if at % self.page_bytes or len(data) % self.page_bytes or at + len(data) > len(self.cells):
            raise ValueError("program %d+%d: not whole pages" % (at, len(data)))
        self.longest_program = max(self.longest_program, len(data))
        for i in range(0, len(data), self.page_bytes):
            sector, here = divmod(at + i, self.sector_bytes)
            self._program(sector, here, bytes(data[i : i + self.page_bytes]))

    # Operations

    def _spend(self, kind, sector, offset, data):
        """True where this one is cut."""
        if not 0 <= sector < self.sectors:
            raise OSError(5)
        if self.before is not None:
            self.before(kind, sector, offset, data)
        if self.cut_after < 0:
            return False
        self.cut_after -= 1
        return self.cut_after < 0

    def _erase(self, sector):
        if self._spend("erase", sector, 0, b""):
            self.cut_erase(sector)
            raise PowerCut()
        n = self.sector_bytes
        self.cells[sector * n : (sector + 1) * n] = b"\xff" * n
        self.erased(sector)
        self._forget_pages(sector)
        self.wear[sector] += 1
        self.erases += 1

    def erased(self, sector):
        """All its bits are firm."""
        self.weak.pop(sector, None)
        self.unerased.pop(sector, None)

    def _forget_pages(self, sector):
        k = self.sector_bytes // self.page_bytes
        self.pages[sector * k : (sector + 1) * k] = bytes(k)

    def _program(self, sector, offset, data):
        if self._spend("program", sector, offset, data):
            self.cut_program(sector, offset, data)
            raise PowerCut()
        start = sector * self.sector_bytes + offset
        had = int.from_bytes(self.cells[start : start + len(data)], "little")
        new = int.from_bytes(data, "little")
        self.lost_bits += bin(new & ~had).count("1") if new & ~had & self._not_fill(data) else 0
        self.cells[start : start + len(data)] = (had & new).to_bytes(len(data), "little")
        self.programmed(sector, offset, data)
        page = start // self.page_bytes
        if not self.pages[page]:
            self.pages[page] = 1
            self.fresh_pages += 1
        self.programs += 1

    @staticmethod
    def _not_fill(data):
        """Bits of bytes that are no fill: fill over what was programmed before is how a page is completed."""
        return int.from_bytes(bytes(0 if byte == 0xFF else 0xFF for byte in data), "little")

    def plain(self, sector):
        """Whether no cut has left anything in the sector that no byte shows."""
        return sector not in self.weak and sector not in self.unerased

    def programmed(self, sector, offset, data):
        """Bits that are programmed are no longer weak; others are where the sector was not really erased."""
        self._firm(sector, offset, data)
        held = self.unerased.get(sector)
        if held is not None:
            for i, byte in enumerate(data):
                mask = (held[offset + i] ^ 0xFF) & byte
                if mask and byte != 0xFF:
                    self._weaken(sector, offset + i, mask)

    def _firm(self, sector, offset, data):
        bits = self.weak.get(sector)
        if bits:
            for i, byte in enumerate(data):
                mask = bits.get(offset + i)
                if mask and mask & ~byte:
                    bits[offset + i] = mask & byte
                    if not bits[offset + i]:
                        del bits[offset + i]

    def _weaken(self, sector, offset, mask):
        bits = self.weak.setdefault(sector, {})
        bits[offset] = bits.get(offset, 0) | mask

    # Cuts

    def cut_program(self, sector, offset, data):
        """The power goes while `data` is programmed there."""
        start = sector * self.sector_bytes + offset
        how = self.chance(4)
        done = self.chance(len(data)) if how == 1 else 0 if how == 0 else len(data)
        for i in range(len(data)):
            falling = self.cells[start + i] & ~data[i] & 0xFF
            if not falling:
                continue
            weak = falling & (self.chance(256) if how == 2 else 0 if self.chance(16) else self.chance(256))
            if how == 2:
                falling &= self.chance(256) | weak
            if i < done:
                self.cells[start + i] &= ~falling
                if weak:
                    self._weaken(sector, offset + i, weak)
            elif weak:
                self._weaken(sector, offset + i, weak)
        if how and not self.chance(2):
            self._disturb(sector, offset)

    def _disturb(self, sector, offset):
        """Bytes programmed before in the sector lose bits, or have weak ones."""
        for _ in range(1 + self.chance(3) if offset else 0):
            at = self.chance(offset)
            if self.cells[sector * self.sector_bytes + at] != 0xFF:
                mask = 1 << self.chance(8)
                if self.chance(2):
                    self.cells[sector * self.sector_bytes + at] &= ~mask
                elif self.cells[sector * self.sector_bytes + at] & mask:
                    self._weaken(sector, at, mask)

    def cut_erase(self, sector):
        """The power goes while the sector is erased."""
        n = self.sector_bytes
        start = sector * n
        how = self.chance(4)
        if how == 0:
            return
        held = bytes(self.cells[start : start + n])
        if how == 1:  # every byte reads as erased
            self.cells[start : start + n] = b"\xff" * n
            self.unerased[sector] = held
            self.weak.pop(sector, None)
        elif how == 2:
            self.cells[start : start + n // 2] = b"\xff" * (n // 2)
        else:
            for _ in range(64):
                i = self.chance(n)
                if held[i] != 0xFF:
                    self._weaken(sector, i, ~held[i] & 0xFF)
                    self.cells[start + i] = 0xFF & ~(~held[i] & 0xFF)
