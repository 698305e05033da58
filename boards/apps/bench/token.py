"""Where the time of a token goes: microseconds in each part, and what is left for the interpreter.

usage: token.py IMAGE TOKENS WINDOW SINKS. Prints one line of JSON. A part's time is what a token takes
less when its kernels are replaced by an empty function: the text is rubbish then, the work of all
others the same, and no clock runs within a token. Medians over the tokens, so that a slow spell of the
machine does not count. Times are those of the machine it runs on: shares mean something, the sum does not
speak for a board.
"""

import json
import sys
import time

from mpy_kv import kernels as kv_kernels
from stories import kernels as app_kernels
from stories.app import open_model


# Part -> kernels. What depends on each other's results goes together.
OF_CACHE = {
    "QK": ("qk",),
    "softmax": ("score", "weights", "emit"),
    "AV": ("av",),
    "query and scales": ("query", "scales"),
    "store K, V": ("encode",),
}
OF_APP = {
    "matrices": ("matvec",),
    "norms, quantising": ("norm", "quant", "widen"),
    "RoPE, SwiGLU, add": ("rope_table", "rotate", "narrow", "swiglu", "add", "embed"),
}


class Without:
    """A kernel set with some functions replaced by nothing."""

    def __init__(self, kernels, names, missing):
        self.name = kernels.name
        for key in names:
            setattr(self, key, self.nothing if key in missing else getattr(kernels, key))

    @staticmethod
    def nothing(a, b, c=0, d=0):  # with *args every call would allocate
        return 0


def median_us(llama, tokens):
    """Of a token; the same ones whatever the kernels compute."""
    seen = []
    for i in range(tokens):
        start = time.ticks_us()
        llama.step(3 + i % 200)
        seen.append(time.ticks_diff(time.ticks_us(), start))
    return sorted(seen)[tokens // 2]


def main(image, tokens, window, sinks):
    llama = open_model(image, window=window, sinks=sinks)
    median_us(llama, window + sinks + 1)  # from here on every token sees a full window
    full_kv, full_app = llama.cache.kernels, llama.kernels
    total = median_us(llama, tokens)
    parts = {}
    for owner, full, names, groups in (
        (llama.cache, full_kv, kv_kernels.NAMES, OF_CACHE),
        (llama, full_app, app_kernels.NAMES, OF_APP),
    ):
        for part in groups:
            owner.kernels = Without(full, names, groups[part])
            without = median_us(llama, tokens)
            owner.kernels = full
            # The whole again beside each part: a machine's speed drifts.
            parts[part] = max(0, median_us(llama, tokens) - without)
    print(
        json.dumps(
            {
                "tokens": tokens,
                "window": window,
                "sinks": sinks,
                "total_us": total,
                "parts_us": parts,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
