"""main.py of a Raspberry Pi Pico 2: tells a story at power-up, then another, and so on.

Needs mpy_kv and stories in /lib and a board image of a model; boards/rp2350/README.md says how each
gets there. On an emulator sys.argv holds options of the app, and the image is in the flash.
"""

import sys

import stories

TOKENS = 1000
FREQ = None  # Hz; None: as the firmware starts, 150 MHz, the most that is certified
LOG = "/kv"  # where `kvlab deploy --kv-flash` has made it, a story goes on after a reset

stories.main(sys.argv[1:], tokens=TOKENS, freq=FREQ, log=LOG)
