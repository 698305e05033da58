"""Stores vectors with the board's own int8 encoder and sends the bytes back, over stdin and stdout.

usage: encode.py KV_HEADS HEAD_DIM GROUP. Protocol, little-endian: in, u32 n and n rows of float32
[kv_heads*head_dim]; out, n rows of codes (kv_heads*row_bytes, as stored) and scales (groups float16).
n = 0 ends. Used by `kvlab bench loss`, so that the loss of int8 storage is the device's own.
"""

import sys
from array import array
from uctypes import addressof, bytearray_at

from mpy_kv import Geometry, KVCache


def read_exactly(stream, buf):
    view = memoryview(buf)
    got = 0
    while got < len(buf):
        n = stream.readinto(view[got:])
        if not n:
            raise SystemExit("encode: input ended after %d of %d bytes" % (got, len(buf)))
        got += n


def main(kv_heads, head_dim, group):
    g = Geometry(1, kv_heads, kv_heads, head_dim, window=1, sinks=0, group=group)
    cache = KVCache(g)
    row = array("f", [0.0] * g.width)
    raw = bytearray_at(addressof(row), 4 * g.width)  # the bytes of `row`, filled from the pipe
    count = bytearray(4)
    codes = bytearray(kv_heads * g.row_bytes)
    scales = bytearray(2 * g.groups)
    buf = cache.buffer
    read, write = sys.stdin.buffer, sys.stdout.buffer
    while True:
        read_exactly(read, count)
        n = count[0] | count[1] << 8 | count[2] << 16 | count[3] << 24
        if n == 0:
            return
        for _ in range(n):
            read_exactly(read, raw)
            cache.append(0, row, row)
            at_codes, at_scales = cache.place(0, "k", cache.length)
            for head in range(kv_heads):
                start = at_codes + head * g.head_stride
                codes[head * g.row_bytes : (head + 1) * g.row_bytes] = buf[
                    start : start + g.row_bytes
                ]
            for i in range(g.groups):
                start = at_scales + i * g.scale_stride
                scales[2 * i : 2 * i + 2] = buf[start : start + 2]
            write.write(codes)
            write.write(scales)
            cache.commit()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
