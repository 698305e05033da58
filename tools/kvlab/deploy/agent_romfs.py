"""More of the board's half: a ROMFS partition. Sent after agent.py, whose names it uses.

By port the partition is a memory that rom_ioctl writes (rp2), or a block device (esp32).
"""

import os
import vfs

NUMBER = 0  # the first partition

# Requests of vfs.rom_ioctl and of a block device.
COUNT, SEGMENT, PREPARE, WRITE, COMPLETE, BLOCK_BYTES = 1, 2, 3, 4, 5, 6
DEV_COUNT, DEV_BLOCK_BYTES, DEV_ERASE = 4, 5, 6


def rom_find():
    """Open the partition; prints its size, 0 if there is none, and the names of the files in it."""
    global rom, device, unit
    rom = -1
    if hasattr(vfs, "rom_ioctl") and vfs.rom_ioctl(COUNT) > NUMBER:
        rom = vfs.rom_ioctl(SEGMENT, NUMBER)
    device = hasattr(rom, "ioctl")
    if isinstance(rom, int):
        print(0)
        return
    print(rom.ioctl(DEV_COUNT, 0) * rom.ioctl(DEV_BLOCK_BYTES, 0) if device else len(rom))
    try:
        for name in os.listdir("/rom"):
            print(name)
    except OSError:  # none is mounted there
        pass


def rom_erase(size):
    """Make the first `size` bytes writable; prints the least that can be written at a time."""
    global unit
    try:
        vfs.umount("/rom")
    except OSError:
        pass
    if device:
        unit = rom.ioctl(DEV_BLOCK_BYTES, 0)
        for block in range((size + unit - 1) // unit):
            rom.ioctl(DEV_ERASE, block)
    else:
        unit = 1
        block = vfs.rom_ioctl(BLOCK_BYTES, NUMBER)
        if block <= 0 or block >= len(rom):
            unit = check(vfs.rom_ioctl(PREPARE, NUMBER, size))
        else:
            step = (32768 + block - 1) // block * block
            for at in range(0, size, step):
                count = (min(step, size - at) + block - 1) // block * block
                unit = max(unit, check(vfs.rom_ioctl(PREPARE, NUMBER, at, count)))
    print(unit)


def rom_more(at, text):
    """Write a piece at byte `at`."""
    piece = unpacked(text)
    if device:
        rom.writeblocks(at // unit, piece, at % unit)
    else:
        check(vfs.rom_ioctl(WRITE, NUMBER, at, piece))


def rom_close():
    if not device:
        vfs.rom_ioctl(COMPLETE, NUMBER)


def rom_digest(start, end):
    """Hash of the bytes from `start` to `end`."""
    view = memoryview(rom)

    def read(piece):
        nonlocal start
        n = min(len(piece), end - start)
        piece[:n] = view[start : start + n]
        start += n
        return n

    print(digest(read))


def check(status):
    """What an ioctl returned, unless that is a negative error number."""
    if status is not None and status < 0:
        raise OSError(-status)
    return status
