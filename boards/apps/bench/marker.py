"""The blocks of a flash log's files found, then each checked, marked for kvlab's counter of instructions by
class (tools/kvlab/cost/count.c).

usage: marker.py make FILES    makes such files on a Pico's new littlefs, in the unix port
       marker.py BLOCKS        finds and checks them, in flash; prints how many there are
The second runs on the emulated Cortex-M3 alone, on firmware with littlefs.
"""

import gc
import os
import sys

from mpy_kv.flash_log.files import FileBlocks, make_files


def make(count):
    import rp2

    storage = rp2.Flash()
    os.VfsLfs2.mkfs(storage, progsize=256)
    os.mount(os.VfsLfs2(storage, progsize=256), "/flash")
    make_files("/flash/kv", count, 1)


def check(blocks):
    import vfs
    from marks import Flash, mark

    class Sectors(Flash):
        def ioctl(self, what, argument):
            return {4: blocks, 5: 4096}.get(what, 0)

    storage = Sectors()
    vfs.mount(vfs.VfsLfs2(storage, progsize=256, mtime=False), "/flash")
    FileBlocks(storage, "/flash/kv")  # its modules are loaded
    gc.collect()
    gc.threshold(-1)
    mark()
    device = FileBlocks(storage, "/flash/kv")
    mark()
    for i in range(len(device.blocks)):
        device._check(i)
    mark()
    print(len(device.blocks))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(int(sys.argv[2]))
    else:
        check(int(sys.argv[1]))
