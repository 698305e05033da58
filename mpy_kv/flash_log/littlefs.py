"""Where littlefs keeps the files of a folder: read off its own entries, on the device that it lies on.

What of the format (littlefs's SPEC.md, version 2) names a file and its block: a folder is a chain of pairs of
blocks; of each pair the block with the later revision counts, if it has a whole commit. A block is a log
of commits: tags of 32 bits, each XORed with the one before, each followed by its bytes, the last one with the
CRC of all of it. Functions only, as the module is needed once a start.
"""

import binascii

try:
    from micropython import const
except ImportError:
    from ..cpython import const

# Types of tags.
_FILE = const(0x001)
_FOLDER = const(0x002)
_SUPERBLOCK = const(0x0FF)
_TO_FOLDER = const(0x200)
_INLINE = const(0x201)
_TO_BLOCKS = const(0x202)
_CREATE = const(0x401)
_DELETE = const(0x4FF)
_CRC = const(0x500)  # and those up to 0x57f
_TAIL = const(0x600)
_HARD_TAIL = const(0x601)

_MAGIC = b"littlefs"
_MOST_PAIRS = 4096  # of a folder; a longer chain leads in a circle


def folder_of(storage, parts):
    """The pair of blocks in which a folder begins, by the names that lead to it; None: there is none such.
    ValueError: no littlefs of version 2 with blocks as the storage's lies there, or it cannot be read."""
    block = bytearray(storage.ioctl(5, 0))
    head = _entries(storage, block, (0, 1), _SUPERBLOCK, _MAGIC).get(_MAGIC)
    if head is None or head[0] != _INLINE or head[1] >> 16 != 2 or head[2] != len(block):
        raise ValueError
    pair = (0, 1)
    for part in parts:
        name = part.encode()
        there = _entries(storage, block, pair, _FOLDER, name).get(name)
        if there is None or there[0] != _TO_FOLDER:
            return None
        pair = there[1:]
    return pair


def blocks_of(storage, pair, size):
    """Blocks of the files 000, 001, ... of a folder, up to the first that is missing or has not that size.
    ValueError as above."""
    found = _entries(storage, bytearray(storage.ioctl(5, 0)), pair, _FILE, None)
    blocks = []
    there = found.get(0)
    while there is not None and there[0] == _TO_BLOCKS and there[2] == size:
        blocks.append(there[1])
        there = found.get(len(blocks))
    return blocks


def _entries(storage, block, pair, kind, name):
    """Entries of that kind in a folder; name: only that one, None: those of three digits, by their number. Of
    each: type of what it leads to, and the first two words of that."""
    found = {}
    pairs = 0
    while pair is not None:
        if pairs == _MOST_PAIRS:
            raise ValueError
        first, second = pair
        if (_revision(storage, second) - _revision(storage, first)) & 0xFFFFFFFF < 0x80000000:
            first, second = second, first
        end = 0
        for each in (first, second):
            storage.readblocks(each, block, 0)
            end = _end(block)
            if end:
                break
        if not end:
            raise ValueError
        keys = []  # by id
        leads = []
        tail = _replay(block, end, kind, name, keys, leads)
        for i in range(len(keys)):
            if keys[i] is not None and leads[i] is not None:
                found[keys[i]] = leads[i]
        pair = tail
        pairs += 1
    return found


def _revision(storage, block):
    word = bytearray(4)
    storage.readblocks(block, word, 0)
    return _word(word, 0)


def _word(block, at):
    return int.from_bytes(block[at : at + 4], "little")


def _end(block):
    """Where the last whole commit ends, 0: there is none."""
    end = 0
    start = 0  # of the commit
    at = 4
    high = low = 0xFFFF  # of the tag before
    crc = 0
    size = len(block)
    while at + 4 <= size:
        high ^= block[at] << 8 | block[at + 1]
        if high & 0x8000:
            break
        low ^= block[at + 2] << 8 | block[at + 3]
        length = low & 0x3FF
        if length == 0x3FF:
            length = 0
        at += 4
        if at + length > size:
            break
        if high >> 4 & 0x780 == _CRC:
            crc = binascii.crc32(memoryview(block)[start:at])
            if length < 4 or crc ^ 0xFFFFFFFF != _word(block, at):
                break
            high ^= (high >> 4 & 1) << 15  # as the next tag reads where nothing is
            end = start = at + length
        at += length
    return end


def _replay(block, end, kind, name, keys, leads):
    """Apply what the commits up to `end` tell; the pair that the folder goes on in, None: it ends."""
    tail = None
    at = 4
    high = low = 0xFFFF
    while at < end:
        high ^= block[at] << 8 | block[at + 1]
        low ^= block[at + 2] << 8 | block[at + 3]
        what = high >> 4 & 0x7FF
        length = low & 0x3FF
        if length == 0x3FF:
            length = 0
        at += 4
        if what < 0x300 or what == _CREATE or what == _DELETE:
            i = (high & 15) << 6 | low >> 10
            if what == _DELETE:
                if i < len(keys):
                    keys.pop(i)
                    leads.pop(i)
            elif what == _CREATE:
                keys.insert(i, None)
                leads.insert(i, None)
            else:
                while len(keys) <= i:
                    keys.append(None)
                    leads.append(None)
                if what < 0x100:
                    keys[i] = _key(block, at, length, name) if what == kind else None
                elif what >= 0x200 and length >= 8 and keys[i] is not None:
                    leads[i] = (what, _word(block, at), _word(block, at + 4))
        elif what == _TAIL:
            tail = None
        elif what == _HARD_TAIL:
            tail = (_word(block, at), _word(block, at + 4))
        elif what & 0x780 == _CRC:
            high ^= (what & 1) << 15
        at += length
    return tail


def _key(block, at, length, name):
    """Of an entry that is looked for, else None."""
    if name is not None:
        return name if block[at : at + length] == name else None
    if length != 3:
        return None
    n = 0
    for i in range(at, at + 3):
        digit = block[i] - 48
        if digit < 0 or digit > 9:
            return None
        n = 10 * n + digit
    return n
