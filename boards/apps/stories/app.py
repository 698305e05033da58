"""The program: tells a story token by token, prints it as it goes, and reports what it cost.

stories.main(model=..., prompt="", tokens=200, ...)      from a board's main.py
stories.main(["--model", "x.mkvm", "--greedy"])          from a command line, see command.py
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

import sys

try:
    import time
except ImportError:  # a port without a clock
    time = None

from mpy_kv.errors import BadArgument, KVError
from mpy_kv.lend import lend, take_back

from . import kernels as kernel_sets
from . import storage
from .errors import ImageError
from .image import Image
from .model import Llama, make_cache
from .probe import mark, sample
from .sampler import Sampler
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


def open_model(
    model=None,
    window=None,
    most_window=256,
    sinks=None,
    group=None,
    codec=None,
    policy=None,
    budget=None,
    kernels=None,
    row_buffer_bytes=4096,
    check_crc=True,
    make=make_cache,
):
    """A Llama with its cache. model: a path, a buffer, or a file open for reading; None: the board's own.

    A file on a memory-mapped file system (ROMFS) is read where it lies, any other one row by row.
    window, sinks (default 4), group (values that share a scale in the cache; head_dim is finest): Geometry's.
    codec: as make_cache, the element types that the image names unless it is given.
    Without a window it is most_window, or what the model was trained for if that is less. policy, budget:
    which tokens stay, and how many, sinks included (budgets.py). make: what makes the cache, called like
    make_cache.
    """
    if type(row_buffer_bytes) is not int or not 0 <= row_buffer_bytes <= 1 << 20:
        raise BadArgument("row_buffer_bytes must be 0..1048576, got %r" % (row_buffer_bytes,))
    if model is None:
        model = storage.find()
    if model is None:
        raise BadArgument(
            "no model: copy a board image to %s, or name one with --model" % storage.FILE
        )
    if isinstance(model, str):
        try:
            image = _read_where_it_lies(open(model, "rb"), check_crc)
        except OSError as error:
            raise BadArgument("--model %s cannot be read: %s" % (model, error))
    else:
        image = Image(model, check_crc)
    if codec is None:
        codec = image.codec
    both = [None, None]
    if kernels is not None or codec != "int8":
        both = _kernel_sets(kernels, codec)
    more = {}
    if policy is not None or budget is not None:
        window, sinks, policy = lend("stories.budgets").chosen(
            image, policy, budget, window, most_window, sinks, codec, kernels
        )
        if policy is not None:
            more["policy"] = policy
    elif sinks is None:
        sinks = 4
    if window is None and type(sinks) is int:
        window = max(1, min(most_window, image.seq_len - sinks))
    cache = make(image, window=window, sinks=sinks, group=group, codec=codec, kernels=both[1], **more)
    settle("KV cache: the buffer and its objects")
    llama = Llama(image, cache, kernels=both[0], row_buffer_bytes=row_buffer_bytes)
    settle("the model's vectors and tables")
    return llama


def _kernel_sets(name, codec):
    """The app's and the cache's of that name, or the fastest; the cache's for that element type, or a dict of
    them for a list of types."""
    from mpy_kv import kernels as kv_kernels

    try:
        families = {each: kv_kernels.of(each) for each in ([codec] if isinstance(codec, str) else codec)}
    except (ImportError, AttributeError, TypeError):
        return None, None  # the cache refuses it
    try:
        app = None if name is None else kernel_sets.get(name)
        found = {}
        for each in families:
            found[each] = families[each].best() if name is None else families[each].get(name)
    except ValueError as error:
        raise BadArgument("--kernels: %s" % error)
    families = None
    kv_kernels.release()
    return app, found[codec] if isinstance(codec, str) else found


def settle(label):
    """What was needed to get here is done with."""
    take_back()
    mark(label)


def _read_where_it_lies(file, check_crc):
    """The Image of an open file: in place where the file system maps it, else row by row."""
    try:
        return Image(memoryview(file), check_crc)
    except (TypeError, AttributeError, ImageError):
        return Image(file, check_crc)


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


def stdout():
    """What writes bytes to stdout; a port without buffers takes them as they are."""
    return getattr(sys.stdout, "buffer", sys.stdout).write


def tell(
    llama,
    prompt="",
    tokens=200,
    temperature="0.8",
    top_p="0.9",
    seed=1,
    greedy=False,
    stop=False,
    lock=False,
    compress=None,
    write=None,
):
    """Tell a story to `write` (default: stdout); returns the figures as a dict.

    compress: what part of the prompt's tokens stays when it has been read, for a cache with a policy."""
    if not isinstance(tokens, int) or tokens < 1:
        raise BadArgument("tokens must be a positive whole number, got %r" % (tokens,))
    cache = llama.cache
    ratio = None
    if compress is not None:
        ratio = lend("stories.budgets").ratio(cache, compress)
    sampler = Sampler(llama, "0" if greedy else temperature, top_p, seed)
    teller = Teller(llama, sampler, write or stdout(), stop)
    start = now()
    prompt_tokens = teller.tokenizer.encode(prompt)
    settle("tokenizer and sampler")
    teller.feed(prompt_tokens)
    dropped = None if ratio is None else cache.compress(ratio)
    take_back()
    prompt_ms = since(start)

    start = now()
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
    return {
        "model_id": "%08x" % llama.image.model_id,
        "kernels": llama.kernels.name,
        "prompt_tokens": len(prompt_tokens),
        "tokens": teller.told,
        "stories": teller.stories,
        "prompt_ms": prompt_ms,
        "ms": ms,
        "alloc_bytes": counted if allocated else None,
        "alloc_bytes_per_token": (counted + teller.told - 1) // teller.told if allocated else None,
        "window": cache.geometry.window,
        "sinks": cache.geometry.sinks,
        "codec": cache.geometry.codec,
        "cache_kernels": cache.kernels.name,
        "policy": getattr(cache, "policy", "window"),  # a ring drops the oldest
        "budget": cache.geometry.max_visible,
        "context": llama.image.seq_len,
        "compressed_tokens": dropped,
        "kv_bytes": cache.kv_bytes,
        "buffer_bytes": cache.buffer_bytes,
        "evicted_tokens": cache.evicted_tokens,
        "app_bytes": llama.ram_bytes(),
        "position": cache.length,
    }


_OF_MODEL = ("model", "window", "most_window", "sinks", "group", "codec", "policy", "budget", "kernels")
_OF_MODEL += ("row_buffer_bytes", "check_crc")


def _run(dump=None, json=None, report=True, **options):
    chosen = {}
    for name in _OF_MODEL:
        if name in options:
            chosen[name] = options.pop(name)
    work = _tell
    if "requests" in options:
        from .many import tell as work
    if dump is None and json is None:
        figures = work(chosen, **options)
    else:
        figures = lend("stories.files").run(dump, json, work, chosen, options)
    if report and json is None:
        for key in figures:
            print("# %s: %s" % (key, figures[key]))
    return figures


def _tell(chosen, **options):
    figures = tell(open_model(**chosen), **options)
    print()
    return figures


def main(argv=None, **options):
    """Run with a command line (a list of words), keyword arguments, or both: words win.

    Keywords are those of open_model() and tell(), plus json, dump and report; with `requests` those of
    many.tell(). Returns the figures.
    With a command line, an error is one line on stderr and SystemExit(2); else an exception.
    """
    try:
        if argv:
            command = lend("stories.command")
            words = command.parse(argv)
            if words is None:
                print(command.USAGE)
                return None
            options.update(words)
            command = None
            take_back()
        return _run(**options)
    except (KVError, ImageError) as error:
        if argv is None:
            raise
        sys.stderr.write("stories: error: %s\n" % lend("stories.command").as_typed(error))
        sys.exit(2)
