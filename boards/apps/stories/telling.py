"""What telling takes: a clock, what was ever allocated, where the text goes, the next token.

What one story and several need alike. Opening a model is transient (mpy_kv/transient.py), as it is done once.
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

import gc
import sys

try:
    import time
except ImportError:  # a port without a clock
    time = None

from mpy_kv.transient import load_module

from .probe import sample, settle
from .tokenizer import Tokenizer

now = getattr(time, "ticks_ms", None)
if now is None:

    def now():
        return time.monotonic_ns() // 1000000 if time else None


def since(start):
    """Milliseconds from an earlier now(); None where there is no clock."""
    end = now()
    if end is None:
        return None
    return time.ticks_diff(end, start) if hasattr(time, "ticks_diff") else end - start


# Bytes ever allocated, to prove that telling allocates nothing; boards do not count it.
allocated = getattr(micropython, "mem_total", None)


def open_model(*words, **options):
    """A Llama with its cache, as opening.open_model. The start ends here: what comes allocates nothing, so
    garbage is collected as the port does by itself."""
    llama = load_module("stories.opening").open_model(*words, **options)
    settle("the model's vectors and tables")
    if hasattr(gc, "mem_free"):
        gc.threshold(-1)
    return llama


class Teller:
    """Tells one endless text: feed() the start, then tell(n). `write(bytes-like)` receives the text."""

    def __init__(self, llama, sampler, write, stop=False):
        self.llama = llama
        self.sampler = sampler
        self.tokenizer = Tokenizer(llama.image)
        self.told = 0  # tokens sampled and run
        self.stories = 1
        self.last = llama.image.bos
        self._write = write
        self._stop = stop
        self.ended = False  # by the end of the story, with stop

    def feed(self, tokens):
        """Run and print the given tokens; the logits of the last one stay."""
        for i, token in enumerate(tokens):
            self.llama.step(token, i == len(tokens) - 1)
            self._print(token)

    def _print(self, token):
        t = self.tokenizer
        if token != t.bos:
            self._write(t.views[t.decode(self.last, token)])
        self.last = token

    def tell(self, n):
        """Sample, print and run up to n tokens; returns how many. Allocates nothing.

        The end of a story (BOS or EOS) starts a new one in the same context, or ends the telling.
        """
        done = 0
        while done < n:
            token = self.sampler.sample()
            done += 1
            if token == self.tokenizer.bos or token == self.tokenizer.eos:
                if self._stop:
                    self.ended = True
                    break
                token = self.tokenizer.bos
                self.stories += 1
                self._write(b"\n\n")
            else:
                self._print(token)
            self.last = token
            self.llama.step(token)
            sample()
        self.told += done
        return done


def told(teller, tokens, lock, prompt_tokens, prompt_ms, dropped):
    """Tell what follows the prompt; the figures as a dict."""
    start = now()
    if not teller.ended:
        teller.tell(1)  # whatever happens only once happens here
    counted = 0
    if tokens > 1 and not teller.ended:
        if lock:
            micropython.heap_lock()
        try:
            before = allocated() if allocated else 0
            teller.tell(tokens - 1)
            after = allocated() if allocated else 0
        finally:
            if lock:
                micropython.heap_unlock()
        counted = after - before
    ms = since(start)
    if not allocated:
        counted = None
    return load_module("stories.report").of_story(teller, prompt_tokens, prompt_ms, ms, counted, dropped)


def stdout():
    """What writes bytes to stdout; a port without buffers takes them as they are."""
    return getattr(sys.stdout, "buffer", sys.stdout).write
