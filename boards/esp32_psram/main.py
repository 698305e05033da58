"""main.py of an ESP32 with PSRAM: tells a story at power-up, at full clock, then another, and so on.

Needs mpy_kv and stories in /lib and a board image as model.mkvm; boards/esp32_psram/README.md says how
each gets there. On an emulator sys.argv holds options of the app.
"""

import sys

import stories

TOKENS = 1000
FREQ = 240_000_000  # Hz; or 160_000_000, 80_000_000
LOG = "/kv"  # where `kvlab deploy --kv-flash` has made it, a story goes on after a reset

stories.main(sys.argv[1:], tokens=TOKENS, freq=FREQ, log=LOG)
