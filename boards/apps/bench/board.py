"""What a story takes on a board: to its first word, a token told, a token of a prompt. Times in microseconds.

usage: board.py TOKENS PROMPT CHECK WINDOW    prints JSON; a WINDOW of 0 is the app's
TOKENS are told to nowhere, the likeliest always; then the first PROMPT of them are read as a prompt's. With
CHECK 1 the kernels' self-check runs, as at a first start; with 0 they are taken as the board remembers them.
The model is the board's own, the start that of the app: its import, the model, kernels and cache. Prints "+N"
for N tokens.
"""

import json
import sys
from array import array
from time import ticks_diff, ticks_us

first = []


def write(text):
    """Where the story goes."""
    if not first:
        first.append(ticks_us())


def clock_hz():
    """None where nothing tells it."""
    try:
        import machine

        return machine.freq()
    except (ImportError, AttributeError):
        return None


def opened(check, window):
    """The board's model; the import counts."""
    import stories  # noqa: F401
    from stories.telling import open_model

    more = {"window": window} if window else {}
    return open_model(check=bool(check), verdicts="kernels.checked", **more)


def main(tokens, prompt, check, window):
    begin = ticks_us()
    llama = opened(int(check), int(window))
    from stories.sampler import Sampler
    from stories.telling import Teller

    teller = Teller(llama, Sampler(llama, "0"), write)
    teller.feed([llama.image.bos])
    ids = array("H", bytes(2 * int(tokens)))
    start = ticks_us()
    for i in range(len(ids)):
        teller.tell(1)
        ids[i] = teller.last
        if i % 16 == 15:
            print("+16")
    told_us = ticks_diff(ticks_us(), start)
    llama.cache.rollback(llama.cache.length)
    llama.step(llama.image.bos, False)
    prompt = min(int(prompt), len(ids))
    start = ticks_us()
    for i in range(prompt):
        llama.step(ids[i], False)
    read_us = ticks_diff(ticks_us(), start)
    image, cache = llama.image, llama.cache
    found = {name: getattr(image, name) for name in ("dim", "hidden", "layers", "heads", "kv_heads", "vocab")}
    print(
        json.dumps(
            {
                "shape": found,
                "codec": cache.geometry.codec,
                "window": cache.geometry.window,
                "sinks": cache.geometry.sinks,
                "kernels": [cache.kernels.name, llama.kernels.name],
                "model_place": "in place" if image.file is None else "file",
                "model_id": "%08x" % image.model_id,
                "clock_hz": clock_hz(),
                "first_word_us": ticks_diff(first[0], begin),
                "tokens": len(ids),
                "told_us": told_us,
                "prompt_tokens": prompt,
                "read_us": read_us,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
