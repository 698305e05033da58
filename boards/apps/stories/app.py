"""The program: tells a story token by token, prints it as it goes, and reports what it cost.

stories.main(model=..., prompt="", tokens=200, ...)      from a board's main.py
stories.main(["--model", "x.mkvm", "--greedy"])          from a command line, see command.py
"""

import sys

from mpy_kv.errors import BadArgument, KVError
from mpy_kv.transient import load_module, unload_all

from .errors import ImageError
from .probe import settle
from .sampler import Sampler
from .telling import Teller, now, open_model, since, stdout, told


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
        ratio = load_module("stories.budgets").ratio(cache, compress)
    sampler = Sampler(llama, "0" if greedy else temperature, top_p, seed)
    teller = Teller(llama, sampler, write or stdout(), stop)
    unload_all()
    start = now()
    fed = load_module("stories.encoding").prompt(llama, prompt) if prompt else [llama.image.bos]
    settle("tokenizer and sampler")
    teller.feed(fed)
    dropped = None if ratio is None else cache.compress(ratio)
    fed = len(fed)
    unload_all()
    return told(teller, tokens, lock, fed, since(start), dropped)


_OF_MODEL = ("model", "window", "most_window", "sinks", "group", "codec", "policy", "budget", "kernels")
_OF_MODEL += ("row_buffer_bytes", "check_crc", "check", "verdicts", "stream")


def _run(dump=None, json=None, report=True, freq=None, **options):
    if freq is not None:
        load_module("stories.clock").set_clock(freq)
        unload_all()
    chosen = {}
    for name in _OF_MODEL:
        if name in options:
            chosen[name] = options.pop(name)
    work = _tell
    if "requests" in options:
        from .many import tell as work

        options.pop("log", None)
    if dump is None and json is None:
        figures = work(chosen, **options)
    else:
        made = load_module("stories.files").claim(dump, json)
        try:
            if dump is not None:
                figures = load_module("stories.files").dump_files(open_model(**chosen), dump, made)
            else:
                figures = work(chosen, **options)
            if json is not None:
                load_module("stories.files").write(json, figures, made)
        except BaseException:
            load_module("stories.files").discard(made)
            raise
    if report and json is None:
        for key in figures:
            print("# %s: %s" % (key, figures[key]))
    return figures


def _tell(chosen, **options):
    work = tell
    if "log" in options and not load_module("stories.storage").readable(options["log"] + "/000"):
        del options["log"]
    if "save" in options or "resume" in options or "log" in options:
        work = load_module("stories.kept").prepare(chosen, options)
        unload_all()
    figures = work(open_model(**chosen), **options)
    print()
    return figures


def main(argv=None, **options):
    """Run with a command line (a list of words), keyword arguments, or both: words win.

    Keywords are those of open_model() and tell(), plus json, dump, report and freq, the clock in Hz (see
    clock.py); save, resume and log (kept.py); with `requests` those of many.tell(). Returns the figures.
    With a command line, an error is one line on stderr and SystemExit(2); else an exception.
    """
    try:
        if argv:
            command = load_module("stories.command")
            words = command.parse(argv)
            if words is None:
                print(command.USAGE)
                return None
            options.update(words)
            command = None
            unload_all()
        return _run(**options)
    except (KVError, ImageError) as error:
        if argv is None:
            raise
        sys.stderr.write("stories: error: %s\n" % load_module("stories.command").as_typed(error))
        sys.exit(2)
