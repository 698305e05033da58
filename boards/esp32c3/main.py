"""main.py of an ESP32-C3: tells a story at power-up, then another, and so on.

Needs mpy_kv and stories in /lib and a board image as model.mkvm; boards/esp32c3/README.md says how
each gets there. On an emulator sys.argv holds options of the app.
"""

import sys

import stories

TOKENS = 1000
FREQ = None  # Hz; None: as the firmware starts, 160 MHz. Or 80_000_000
WINDOW = 128  # recent tokens; with 256 the cache and the program do not fit the heap
LOG = "/kv"  # where `kvlab deploy --kv-flash` has made it, a story goes on after a reset

stories.main(sys.argv[1:], most_window=WINDOW, tokens=TOKENS, freq=FREQ, log=LOG)
