"""More of the board's half: board images in an RP2's flash, before its storage. Sent after agent.py.

Looks where the stories app looks (boards/apps/stories/storage.py).
"""

import binascii

BLOCK = 4096
HEAD = 20  # bytes: magic, version, size of the header, size, checksum of what follows, model id


def flash_images():
    """Of each that begins like one, nearest the storage first: address, head, and 1 if it is whole."""
    try:
        import rp2
        from uctypes import addressof, bytearray_at

        end = addressof(memoryview(rp2.Flash()))
    except (ImportError, TypeError):
        return
    at = end
    while at & 0xFFFFFF:
        at -= BLOCK
        if bytearray_at(at, 4) == b"MKVM":
            head = bytearray_at(at, HEAD)
            size = int.from_bytes(head[8:12], "little")
            whole = HEAD <= size <= end - at
            if whole:
                checksum = binascii.crc32(bytearray_at(at + 16, size - 16)) & 0xFFFFFFFF
                whole = checksum == int.from_bytes(head[12:16], "little")
            print(at, binascii.hexlify(head).decode(), int(whole))
