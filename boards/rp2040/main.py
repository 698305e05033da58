"""main.py of a Raspberry Pi Pico: tells a story at power-up, then another, and so on.

Needs mpy_kv and stories in /lib and a board image of a model; boards/rp2040/README.md says how each
gets there. On an emulator sys.argv holds options of the app, and the image is in the flash.
"""

import sys

import stories

TOKENS = 1000
FREQ = None  # Hz; None: as the firmware starts, 125 MHz. Certified: up to 133_000_000, and 200_000_000, for
# which the core gets 1.15 V first
LOG = "/kv"  # where `kvlab deploy --kv-flash` has made it, a story goes on after a reset

stories.main(sys.argv[1:], tokens=TOKENS, freq=FREQ, log=LOG)
