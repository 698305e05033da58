"""Logits of a model by one or more kernel sets, on any port.

usage: stories_logits.py IMAGE IDS OUT WINDOW SINKS SET:ROW_BUFFER_BYTES ...
IDS: little-endian int32 token ids. OUT gets, for each set, vocab int32 logits per id. ROW_BUFFER_BYTES 0:
the image is a buffer, as in memory-mapped flash; else rows are read from the file.
"""

import sys
from array import array

from mpy_kv import kernels as kv_kernels
from stories import kernels
from stories.image import Image
from stories.model import Llama, make_cache


def run(image, row_buffer_bytes, tokens, sink, kernel_set, **context):
    opened = Image(image if row_buffer_bytes else image.read())
    llama = Llama(
        opened,
        make_cache(opened, kernels=kv_kernels.best(), **context),
        kernels.get(kernel_set),
        row_buffer_bytes,
    )
    for token in tokens:
        llama.step(token)
        sink.write(llama.logits)


if __name__ == "__main__":
    path, ids, out = sys.argv[1:4]
    context = {"window": int(sys.argv[4]), "sinks": int(sys.argv[5])}
    with open(ids, "rb") as f:
        tokens = array("i", f.read())
    with open(out, "wb") as sink:
        for word in sys.argv[6:]:
            kernel_set, row_buffer_bytes = word.split(":")
            with open(path, "rb") as image:
                run(image, int(row_buffer_bytes), tokens, sink, kernel_set, **context)
