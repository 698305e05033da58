"""main.py of an ESP32-S3: tells a story at power-up, at full clock, then another, and so on.

Needs mpy_kv and stories in /lib and a board image as model.mkvm; boards/esp32s3/README.md says
how each gets there. Under `kvlab emulate` sys.argv holds the image and the number of tokens.
"""

# Garbage collected early and after each stage lets what stays lie together at the bottom of the
# heap, so that the largest object, the cache's buffer, finds one piece at the end.
import gc

gc.threshold(4096)

import mpy_kv.kernels

mpy_kv.kernels.best()
gc.collect()

import stories
import stories.kernels

stories.kernels.best()
gc.collect()

import sys

import machine

TOKENS = 1000
WINDOW = 128  # recent tokens; with 256 the cache and the program do not fit one area of the heap
FILE = "model.mkvm"

arguments = sys.argv[1:]
machine.freq(240_000_000)
stories.main(
    model=arguments[0] if arguments else FILE,
    window=WINDOW,
    tokens=int(arguments[1]) if len(arguments) > 1 else TOKENS,
)
