"""What one token of the stories app costs at a position, everything included: sampling, text, cache.

usage: tokens.py MODEL POSITION    MODEL: a file, or "" for the board's own; prints JSON
At position p the token is the first that sees p + 1 tokens; the window is 256, there are no sinks. The unit
is the instruction on the emulated board, elsewhere the nanosecond. Each kernel set runs the very same
token, and must leave the same logits: RuntimeError if not. "prompt_token" is what a token of a prompt costs
there: run and written, and its share of making tokens of 400 characters, the modules for it there. On the
emulated Cortex-M3 the told token of each set is between two marks for kvlab's counter of instructions
(tools/kvlab/cost/count.c), in the order of "code", which tells where each kernel's code lies and how it
begins. Prints "+N" for N tokens told.
One position a run: another before it would leave another story, and another heap.
"""

import gc
import json
import sys
from array import array

from mpy_kv import kernels as kv_kernels
from mpy_kv.transient import load_module, unload_all
from stories import kernels as app_kernels
from stories import storage
from stories.app import Teller, open_model
from stories.sampler import Sampler
from stories.tokenizer import Tokenizer

try:
    import instructions
except ImportError:  # no emulator
    import time

    instructions = None

try:
    from bench import code
except ImportError:  # no emulator, or one of another processor
    code = None

SETS = ("viper", "thumb")
WINDOW = 256
ROUNDS = 5
PROMPT = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
PROMPT_CHARACTERS = 400


def cost(f, x):
    """Of one call f(x): instructions, or nanoseconds."""
    gc.collect()
    if instructions is not None:
        return instructions.count(f, x)
    start = time.ticks_us()
    f(x)
    return time.ticks_diff(time.ticks_us(), start) * 1000


def nowhere(text):
    """Where the story goes."""


class Bench:
    """A model that tells a story, and can tell any token of it again."""

    families = kv_kernels.FAMILY, app_kernels.FAMILY

    def __init__(self, model):
        if model:
            with open(model, "rb") as file:
                model = file.read()
        else:
            model = storage.find()
            if model is None:
                raise RuntimeError("there is no model: kvlab deploy brings one")
        self.llama = open_model(model, window=WINDOW, sinks=0)
        self.workspace = memoryview(self.llama.workspace)
        self.before = array("i", self.workspace)
        self.after = None
        self.last = self.llama.image.bos
        self.llama.step(self.last)

    def use(self, pair):
        for_cache, for_app = pair
        load_module("mpy_kv.kernels.calls").use(self.llama.cache.attention[0], for_cache)
        self.llama.use(for_app)

    def teller(self, seed):
        teller = Teller(self.llama, Sampler(self.llama, seed=seed), nowhere)
        teller.last = self.last
        return teller

    def go_to(self, position):
        """Tell until there are so many tokens; remember the logits of the last."""
        teller = self.teller(1)
        while self.llama.cache.length < position:
            teller.tell(1)
            print("+1")
        self.last = teller.last
        self.before[:] = array("i", self.workspace)
        self.after = None

    def token(self):
        """Cost of the next token, the best of some rounds. Told again and again, it stays the next one.

        The first round finds the interpreter's cache of lookups cold, which no token but the first does.
        """
        seen = []
        for _ in range(2 if instructions is not None else ROUNDS):
            seen.append(self.tell_again(cost))
        return min(seen)

    def tell_again(self, how=lambda f, x: f(x)):
        """Tell the next token by how(f, x), which calls f(x) once, and forget it. What `how` returns."""
        self.workspace[:] = self.before
        found = how(self.teller(2).tell, 1)
        logits = bytes(self.llama.logits)
        self.llama.cache.rollback(1)
        if self.after is None:
            self.after = logits
        elif self.after != logits:
            raise RuntimeError("position %d: the kernel sets differ" % self.llama.cache.length)
        return found

    def prompt_token(self):
        """Cost of the same token in a prompt: as Teller.feed runs one that is not the last, and encoded."""
        seen = []
        for _ in range(2 if instructions is not None else ROUNDS):
            seen.append(cost(self._feed, self.teller(2)))
            self.llama.cache.rollback(1)
        tokenizer = Tokenizer(self.llama.image)
        text = (PROMPT * 5)[:PROMPT_CHARACTERS]
        tokens = len(tokenizer.encode(text))  # of source its modules are compiled here
        made = cost(tokenizer.encode, text)
        unload_all()
        return min(seen) + made // tokens

    def _feed(self, teller):
        self.llama.step(self.last, False)
        teller._print(self.last)


def main(model, position):
    pairs, missing = {}, {}
    for name in SETS:
        try:
            pairs[name] = kv_kernels.get(name), app_kernels.get(name)
        except ValueError as error:
            missing[name] = str(error)
    bench = Bench(model)
    bench.use((kv_kernels.best(), app_kernels.best()))
    bench.go_to(int(position))
    cost, prompt = {}, {}
    for name in pairs:
        bench.use(pairs[name])
        cost[name] = bench.token()
        prompt[name] = bench.prompt_token()
    found = {
        "instructions_per_token" if instructions is not None else "ns_per_token": cost,
        "prompt_token": prompt,
        "window": WINDOW,
        "model_id": "%08x" % bench.llama.image.model_id,
        "missing": missing,
    }
    if code is not None:
        found["code"] = [(name, code.marked(bench, *pairs[name])) for name in pairs]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
