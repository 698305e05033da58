"""Bytes that a story moves over the bus, counted as the kernels run: by stage and kind.

usage: access.py MODEL WINDOW SINKS POSITIONS PROMPT CODEC    prints JSON
MODEL: a file, read as a board reads a mapped one. POSITIONS: with commas between, tokens there when one more
is told; CODEC: "" for what the image names. The prompt's tokens are those of a greedy story.
What is not counted runs with the fastest kernels, and the same tokens must leave the same logits:
RuntimeError if not. Prints "+1" for a token.
"""

import json
import sys
from array import array

from mpy_kv.kernels.counting import Book
from stories import kernels as app_kernels
from stories.sampler import Sampler
from stories.telling import open_model


class Counter:
    """A model that tells greedily, and can be told to count."""

    def __init__(self, model, window, sinks, codec):
        more = {"codec": codec} if codec else {}
        with open(model, "rb") as file:
            self.llama = open_model(file.read(), window=window, sinks=sinks, **more)
        self.fast = self.llama.kernels
        self.sampler = Sampler(self.llama, "0")
        self.book = Book()

    def count(self):
        self.book.clear()
        self.book.count_cache(self.llama.cache)
        self.use(self.book.kernels(app_kernels.FAMILY))

    def stop(self):
        self.book.stop()
        self.use(self.fast)

    def use(self, kernels):
        self.sampler.kernels = kernels
        self.llama.use(kernels)

    def counted(self):
        """{stage: {kind: bytes}} of what was counted."""
        found = {}
        for stage, bytes in self.book.stages.items():
            found[stage] = {
                "kv_read": bytes.kv_read,
                "kv_write": bytes.kv_write,
                "weights": bytes.weights,
                "io_read": bytes.io_read,
                "io_write": bytes.io_write,
                "calls": bytes.calls,
            }
        return found

    def token(self):
        """Tell one."""
        self.llama.step(self.sampler.sample())
        print("+1")

    def prompt(self, tokens):
        """Read so many as a prompt."""
        for i, token in enumerate(tokens):
            self.llama.step(token, i == len(tokens) - 1)
            print("+1")

    def empty(self):
        cache = self.llama.cache
        cache.rollback(cache.length)

    def twice(self, run, back):
        """Counts of run(), which is done once more with the fast kernels after back()."""
        logits = self.llama.logits
        self.count()
        try:
            run()
        finally:
            self.stop()
        after = bytes(logits)
        back()
        run()
        if after != bytes(logits):
            raise RuntimeError("what was counted is not what the %s kernels make" % self.fast.name)
        return self.counted()


def main(model, window, sinks, positions, prompt, codec=""):
    counter = Counter(model, int(window), int(sinks), codec)
    llama = counter.llama
    cache = llama.cache
    positions = sorted(set([int(position) for position in positions.split(",")]))
    found = {"tokens": {}, "model_id": "%08x" % llama.image.model_id, "codec": cache.geometry.codec}
    story = [llama.image.bos]
    llama.step(story[0])
    while len(story) < int(prompt):
        story.append(counter.sampler.sample())
        llama.step(story[-1])
    counter.empty()
    found["prompt"] = counter.twice(lambda: counter.prompt(story), counter.empty)
    counter.empty()
    llama.step(story[0])
    for position in positions:
        while cache.length < position:
            counter.token()
        before = array("i", llama.workspace)

        def back():
            cache.rollback(1)
            llama.workspace[:] = before

        found["tokens"][str(position)] = counter.twice(counter.token, back)
    found["kernels"] = counter.fast.name
    found["prompt_tokens"] = len(story)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
