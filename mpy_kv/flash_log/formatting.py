"""Makes an empty log of a region."""

from ..errors import BadArgument
from .log import PAGE, SECTOR, SUPERBLOCKS, VERSION

_START = b"MKVS" + bytes((VERSION & 255, VERSION >> 8))
_BLANK = b"\xff" * PAGE


def format_log(log, number=1, force=False, erase=True):
    """Erase what is not blank and write the first superblock; then open_log(log).

    BadArgument where the region holds bytes that are no log's of this version, unless `force`; the marks of
    files that were made for one (files.py) are none. Sectors that read blank are not erased; log.feed is
    called before each that is. number: of the first operation. erase: False where the caller knows that no
    sector holds anything of a log; then only the two superblocks are written.
    """
    if not force and not _is_log(log) and not is_blank(log):
        raise BadArgument(
            "the region is neither blank nor a log of version %d, and nothing was erased: take another one,"
            " or format_log(log, force=True) and lose what it holds" % VERSION
        )
    log.reset()
    for s in range(SUPERBLOCKS, log.sectors):
        if erase and not _blank(log, s):
            log.erase(s)
    for s in range(SUPERBLOCKS):
        log.erase_superblock(s)
    log.number = log.since = number - 1
    log._write_superblock(0)
    log.reset()


def _is_log(log):
    for s in range(SUPERBLOCKS):
        if log._read(s, 0, log._views[1]) and bytes(log._chunk[:6]) == _START:
            return True
    return False


def is_blank(log):
    """Whether every byte of the region reads as erased, but for marks of its device."""
    mark = getattr(log.device, "mark", b"")
    for s in range(log.sectors):
        if not _blank(log, s, mark):
            return False
    return True


def _blank(log, s, mark=b""):
    """Whether a sector reads as erased; with a mark also where it begins with that and 16 bytes more."""
    for at in range(0, SECTOR, PAGE):
        if not log._read(s, at, log._views[PAGE // 8]):
            return False
        chunk = log._chunk
        rest = len(mark) + 16 if mark and not at and bytes(chunk[: len(mark)]) == mark else 0
        if chunk[rest:] != _BLANK[rest:]:
            return False
    return True
