"""Telling a story that is kept: in a file (saved.py), or in a flash log as it is told (logged.py).

Transient (mpy_kv/transient.py): what tells a story that is not kept takes nothing of it.
"""

import gc
import sys

from mpy_kv.errors import BadArgument
from mpy_kv.transient import load_module, unload_all

from .keeping import Kept
from .probe import settle
from .sampler import Sampler
from .telling import Teller, now, since, stdout, told


def prepare(chosen, options):
    """tell(), once the files that are asked for can be had: before a model is opened with `chosen`, see
    saved.prepare."""
    if options.get("log") is not None:
        for name in ("save", "resume"):
            if options.get(name) is not None:
                raise BadArgument("%s goes without log: leave one of them out" % name)
    load_module("stories.saved").prepare(chosen, options)
    return tell


WITHOUT = "stories: told without a log: "


def tell(llama, log=None, **options):
    """As _tell(). Where the heap has no room for a log, the story is told without, and stderr says so."""
    if log is not None:
        try:
            return _tell(llama, log=log, **options)
        except MemoryError as error:
            sys.stderr.write("%s%s\n" % (WITHOUT, error))
        _forget_log()
        llama.cache.abort()
        llama.cache.rollback(llama.cache.length)
        gc.collect()
    return _tell(llama, **options)


def _forget_log():
    """Let go of what a log takes, for good."""
    unload_all()
    for name in list(sys.modules):
        log = name.startswith("mpy_kv.flash_log") or name.startswith("mpy_kv.resume")
        if log or name == "stories.noting":
            sys.modules.pop(name)
            package, _, part = name.rpartition(".")
            if hasattr(sys.modules.get(package), part):
                delattr(sys.modules[package], part)


def _tell(
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
    save=None,
    resume=None,
    log=None,
):
    """As app.tell(). save: a file that a later call goes on from, by `resume`, with the choice of tokens that
    was asked for here. log: a folder of blocks of flash (mpy_kv/flash_log/files.py) in which the story is
    kept as it is told: after a reset the same call goes on with it, and tokens are those of all calls."""
    if not isinstance(tokens, int) or tokens < 1:
        raise BadArgument("tokens must be a positive whole number, got %r" % (tokens,))
    ratio = dropped = None
    if compress is not None:
        ratio = load_module("stories.budgets").ratio(llama.cache, compress)
    kept = Kept(llama)
    sampler = Sampler(llama, "0" if greedy else temperature, top_p, seed)
    teller = Teller(kept, sampler, write or stdout(), stop)
    unload_all()
    start = now()
    reused = 0
    prompt_tokens = 1
    fed = []
    if log is not None:
        asked = (prompt, temperature, top_p, seed, greedy)
        kept.log, reused = load_module("stories.logged").begin(llama, teller, log, asked, tokens, WITHOUT)
    if resume is not None:
        if save is not None:
            kept.ids = load_module("stories.saved").ids(llama.cache, tokens, resume)
        reused = load_module("stories.saved").take(llama, teller, kept.ids, resume)
    elif reused and reused >= kept.log.prompt_tokens:
        prompt_tokens = kept.log.prompt_tokens
        tokens -= reused + 1 - prompt_tokens
    else:
        fed = load_module("stories.encoding").prompt(llama, prompt) if prompt else [llama.image.bos]
        prompt_tokens = len(fed)
        if kept.log is not None:
            kept.log.prompt_tokens = prompt_tokens
        if reused:
            teller.last = fed[reused - 1]
        if save is not None:
            kept.ids = load_module("stories.saved").ids(llama.cache, prompt_tokens + tokens)
    if save is not None:
        kept.left = prompt_tokens + tokens - 1
    settle("tokenizer and sampler")
    if fed:
        teller.feed(fed[reused:])
        if ratio is not None:
            dropped = llama.cache.compress(ratio)
    elif not teller.ended:
        kept.step(teller.last)
    fed = None
    unload_all()
    figures = told(teller, tokens, lock, prompt_tokens, since(start), dropped)
    figures["reused_tokens"] = reused
    if kept.log is not None:
        figures["log"] = load_module("stories.logged").end(kept.log)
    if save is not None:
        figures["saved_bytes"] = load_module("stories.saved").save(llama, teller, kept.ids, save)
    return figures
