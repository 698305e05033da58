"""The program: tells a story token by token, prints it as it goes, and reports what it cost.

stories.main(model=..., prompt="", tokens=200, ...)      from a board's main.py
stories.main(["--model", "x.mkvm", "--greedy"])          from a command line, see USAGE
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

import sys
import time
from array import array

from mpy_kv.errors import BadArgument, KVError

from . import kernels as kernel_sets
from . import storage
from .errors import ImageError
from .image import Image
from .kernels import POINT
from .model import Llama, make_cache
from .probe import mark, sample
from .sampler import Sampler
from .tokenizer import Tokenizer

USAGE = """\
usage: stories [options]
  --model IMAGE      board image (kvlab convert makes one) [default: the board's own]
  --prompt TEXT      how the story starts
  --tokens N         tokens to tell (200); goes on past the context for ever
  --window N         recent tokens kept (up to 256)      --sinks N  first tokens kept (4)
  --temperature X    0.8; 0 is greedy                    --top-p X  0.9
  --seed N           1                                   --greedy   always the likeliest token
  --stop             end with the first story instead of starting another
  --group N          values of the cache that share a scale (32)
  --kernels NAME     plain or viper (the fastest that works)
  --row-buffer-bytes N   read at a time where flash is not memory-mapped (4096)
  --lock             hold the heap lock while telling
  --json FILE        write the figures there
  --dump IDS OUT     no story: read int32 token ids, write the logits of each position (see dump())
"""

_NUMBERS = ("tokens", "window", "sinks", "group", "seed", "row_buffer_bytes")
_FLAGS = ("greedy", "stop", "lock")
_TEXTS = ("model", "prompt", "temperature", "top_p", "kernels", "json")

RESET = -1  # in the ids of dump(): forget everything
SEEK = -2  # keep the sinks and go on at the position that follows

_now = getattr(time, "ticks_ms", None)
if _now is None:

    def _now():
        return time.monotonic_ns() // 1000000


def _since(start):
    now = _now()
    return time.ticks_diff(now, start) if hasattr(time, "ticks_diff") else now - start


# Bytes ever allocated, to prove that telling allocates nothing; boards do not count it.
_allocated = getattr(micropython, "mem_total", None)


def open_model(
    model=None,
    window=None,
    most_window=256,
    sinks=4,
    group=None,
    kernels=None,
    row_buffer_bytes=4096,
    check_crc=True,
):
    """A Llama with its cache. model: a path, a buffer, or a file open for reading; None: the board's own.

    A file on a memory-mapped file system (ROMFS) is read where it lies, any other one row by row.
    window, sinks, group (values that share a scale in the cache; head_dim is finest): Geometry's. Without
    a window it is most_window, or what the model was trained for if that is less.
    """
    if model is None:
        model = storage.find()
    if model is None:
        raise BadArgument(
            "no model: copy a board image to %s, or name one with --model" % storage.FILE
        )
    if isinstance(model, str):
        try:
            model = open(model, "rb")
        except OSError as error:
            raise BadArgument("--model %s cannot be read: %s" % (model, error))
        try:
            image = Image(memoryview(model), check_crc)
        except (TypeError, AttributeError, ImageError):
            image = Image(model, check_crc)
    else:
        image = Image(model, check_crc)
    both = [None, None]
    if kernels is not None:
        from mpy_kv import kernels as kv_kernels

        try:
            both = [kernel_sets.get(kernels), kv_kernels.get(kernels)]
        except ValueError as error:
            raise BadArgument("--kernels: %s" % error)
    if window is None:
        window = max(1, min(most_window, image.seq_len - sinks))
    cache = make_cache(image, window=window, sinks=sinks, group=group, kernels=both[1])
    mark("KV cache: the buffer and its objects")
    llama = Llama(image, cache, kernels=both[0], row_buffer_bytes=row_buffer_bytes)
    mark("the model's vectors and tables")
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

    @micropython.native
    def _print(self, token):
        t = self.tokenizer
        if token != t.bos:
            self._write(t.views[t.decode(self.last, token)])
        self.last = token

    @micropython.native
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
    write=None,
):
    """Tell a story to `write` (default: stdout); returns the figures as a dict."""
    if not isinstance(tokens, int) or tokens < 1:
        raise BadArgument("tokens must be a positive whole number, got %r" % (tokens,))
    sampler = Sampler(llama, "0" if greedy else temperature, top_p, seed)
    teller = Teller(llama, sampler, write or sys.stdout.buffer.write, stop)
    mark("tokenizer and sampler")
    start = _now()
    prompt_tokens = teller.tokenizer.encode(prompt)
    teller.feed(prompt_tokens)
    prompt_ms = _since(start)

    start = _now()
    teller.tell(1)  # whatever happens only once happens here
    counted = 0
    if tokens > 1 and not teller.ended:
        if lock:
            micropython.heap_lock()
        try:
            before = _allocated() if _allocated else 0
            teller.tell(tokens - 1)
            after = _allocated() if _allocated else 0
        finally:
            if lock:
                micropython.heap_unlock()
        counted = after - before
    ms = _since(start)
    cache = llama.cache
    return {
        "model_id": "%08x" % llama.image.model_id,
        "kernels": llama.kernels.name,
        "prompt_tokens": len(prompt_tokens),
        "tokens": teller.told,
        "stories": teller.stories,
        "prompt_ms": prompt_ms,
        "ms": ms,
        "alloc_bytes": counted if _allocated else None,
        "alloc_bytes_per_token": (counted + teller.told - 1) // teller.told if _allocated else None,
        "window": cache.geometry.window,
        "sinks": cache.geometry.sinks,
        "kv_bytes": cache.kv_bytes,
        "buffer_bytes": cache.buffer_bytes,
        "evicted_tokens": cache.evicted_tokens,
        "app_bytes": llama.ram_bytes(),
        "position": cache.length,
    }


def dump(llama, source, sink):
    """Logits of every position, for a host to judge: teacher-forced, no sampling.

    source: readable; little-endian int32 token ids, RESET (forget everything), or SEEK and a position
    (drop the window, keep the sinks, go on there). sink: writable; gets 4 little-endian uint32 (the
    bytes "MKVL", vocab, binary point, 0), then after each id vocab int32 logits of point POINT: what
    the model expects next. Returns the number of ids run.
    """
    sink.write(b"MKVL")
    sink.write(array("i", [llama.vocab, POINT, 0]))
    word = array("i", [0])
    ran = 0
    while source.readinto(word) == 4:
        token = word[0]
        if token == RESET:
            llama.cache.rollback(llama.cache.length)
        elif token == SEEK:
            if source.readinto(word) != 4:
                raise BadArgument("--dump: the ids end after SEEK, a position must follow")
            llama.cache.seek(word[0])
        else:
            llama.step(token)
            sink.write(llama.logits)
            ran += 1
    return ran


def parse(argv):
    """Options of a command line as keyword arguments of main(); BadArgument names what is wrong."""
    options = {}
    i = 0
    while i < len(argv):
        word = argv[i]
        name = word[2:].replace("-", "_") if word.startswith("--") else None
        count = 0 if name in _FLAGS else 2 if name == "dump" else 1
        if name not in _FLAGS + _NUMBERS + _TEXTS + ("dump",):
            raise BadArgument("unknown option %s; stories --help lists all" % word)
        values = argv[i + 1 : i + 1 + count]
        if len(values) < count:
            raise BadArgument("%s needs %d values" % (word, count))
        if count == 0:
            options[name] = True
        elif name in _NUMBERS:
            try:
                options[name] = int(values[0])
            except ValueError:
                raise BadArgument("%s needs a whole number, got %r" % (word, values[0]))
        else:
            options[name] = values[0] if count == 1 else tuple(values)
        i += 1 + count
    return options


_OF_MODEL = ("model", "window", "most_window", "sinks", "group", "kernels", "row_buffer_bytes", "check_crc")


def _run(dump=None, json=None, report=True, **options):
    chosen = {}
    for name in _OF_MODEL:
        if name in options:
            chosen[name] = options.pop(name)
    llama = open_model(**chosen)
    if dump is not None:
        start = _now()
        with open(dump[0], "rb") as source, open(dump[1], "wb") as sink:
            figures = {"kernels": llama.kernels.name, "tokens": _dump(llama, source, sink)}
        figures["ms"] = _since(start)
    else:
        figures = tell(llama, **options)
        print()
    if json is not None:
        import json as codec

        with open(json, "w") as f:
            f.write(codec.dumps(figures))
    elif report:
        for key in figures:
            print("# %s: %s" % (key, figures[key]))
    return figures


_dump = dump


def main(argv=None, **options):
    """Run with a command line (a list of words), keyword arguments, or both: words win.

    Keywords are those of open_model() and tell(), plus json, dump and report. Returns the figures.
    With a command line, an error is one line on stderr and SystemExit(2); else an exception.
    """
    if argv is None:
        return _run(**options)
    if "--help" in argv or "-h" in argv:
        print(USAGE)
        return None
    try:
        options.update(parse(argv))
        return _run(**options)
    except (KVError, ImageError) as error:
        sys.stderr.write("stories: error: %s\n" % error)
        sys.exit(2)
