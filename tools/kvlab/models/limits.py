"""What the app on a board takes of a model: `boards/apps/stories/checks.py` refuses more.

A test holds these numbers equal to the app's.
"""

from __future__ import annotations

LIMITS = {
    "dim": 8192,
    "hidden": 8192,
    "layers": 1024,
    "heads": 1024,
    "kv_heads": 1024,
    "head_dim": 1024,
    "vocab": 65535,
    "seq_len": 1 << 20,
}
TOKEN_BYTES_MAX = 1024  # of one token
TEXT_BYTES_MAX = (1 << 24) - 1  # of all tokens together
EXPONENT_MAX = 64  # of a tensor, up and down
SHIFT_MAX = 31  # of keys, values and queries, up and down
EPS_Q32_MAX = (1 << 29) - 1
