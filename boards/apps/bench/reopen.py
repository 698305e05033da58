"""A start of the flash log, marked for kvlab's counter of instructions by class (tools/kvlab/cost/count.c).

usage: reopen.py RECORD_BYTES SLOTS BLOCKS SECTORS    the log lies in flash; prints what was found
Runs on the emulated Cortex-M3 alone.
"""

import gc
import sys

from marks import Flash, mark
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.opening import open_log


class Sectors(Flash):
    def ioctl(self, what, argument):
        return {4: int(sys.argv[4]), 5: 4096}.get(what, 0)


def main(record_bytes, slots, blocks):
    log = FlashLog(Sectors(), record_bytes, slots=slots, blocks=blocks)
    gc.collect()
    gc.threshold(-1)
    mark()
    open_log(log)
    mark()
    print(log.count[0], log.doubtful, log.ram_bytes())


if __name__ == "__main__":
    main(*[int(word) for word in sys.argv[1:4]])
