"""Several stories at once from one arena of blocks. Imported only where they are asked for.

One Llama, weights and vectors, serves all. What belongs to one text is in its Story: a request (its blocks),
a sampler and the tokens. Stories take turns, a token each, and each tells what it would tell alone. What
their prompts begin with is computed by the first one; the others find its blocks.
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

import gc
from array import array

import mpy_kv.paged  # noqa: F401 (what stays is loaded before the arena is made)
from mpy_kv.transient import load_module

from .probe import sample, settle
from .sampler import Sampler
from .telling import allocated, now, open_model, since, stdout
from .tokenizer import Tokenizer


class Story:
    """One text: `prompt` (a list of tokens) and up to `tokens` more. Opens a request, which allocates.

    told: tokens so far. reused: tokens of the prompt that were in memory. ended: nothing more to tell.
    Raises as Requests.open does.
    """

    def __init__(self, llama, requests, prompt, tokens, sampler, stop=False, task=0):
        self._llama = llama
        self._sampler = sampler
        self._bos = llama.image.bos
        self._eos = llama.image.eos
        self._stop = stop
        self._ids = array("i", prompt)
        self._ids.extend(array("i", bytes(4 * tokens)))
        self._n = len(prompt)  # of _ids, those that are known
        self._left = tokens
        self.told = 0
        self.ended = False
        self.request = requests.open(task=task, tokens=prompt)
        self.reused = self.request.length

    def turn(self):
        """Run the next token of the prompt, or the one chosen last. Then choose another, if none is left.

        Not for a story that has ended. Allocates nothing. Raises what the request raises, such as NoRoom: the
        turn may be taken again.
        """
        request = self.request
        at = request.length
        token = self._ids[at]
        newest = at == self._n - 1
        llama = self._llama
        llama.cache = request
        llama.compute(token, newest)
        request.commit(token)
        if newest:
            self._choose()

    def _choose(self):
        """The next token, of the logits that this story's step has just left."""
        token = self._sampler.sample()
        self._left -= 1
        if token == self._eos:
            token = self._bos
        if token == self._bos and self._stop:
            self.ended = True
            return
        self._ids[self._n] = token
        self._n += 1
        self.told += 1
        if self._left == 0:
            self.ended = True

    def tokens(self):
        """Prompt and text so far, as a list."""
        return list(self._ids[: self._n])

    def write(self, tokenizer, write):
        """Prompt and text so far to `write`, as bytes-like pieces; an empty line before a new story."""
        ids = self._ids
        for i in range(self._n):
            token = ids[i]
            if token != self._bos:
                write(tokenizer.views[tokenizer.decode(ids[i - 1] if i else self._bos, token)])
            elif i:
                write(b"\n\n")

    def close(self):
        """Give the blocks back. They stay to be found again until others need them."""
        self.request.close()


def open_arena(texts, tokens, at_once=None, block_tokens=16, **chosen):
    """(llama, requests, prompts): a Llama, an arena with room for `at_once` stories (default: all), and the
    texts as tokens.

    texts: how each story starts; tokens: of each story at most; chosen: options of open_model(). The room
    is for texts of which one has run its prompt before the others open: shared.blocks().
    """
    load_module("stories.shared").check_alone(chosen)
    prompts = []

    def make(image, kernels=None, **geometry):
        shared = load_module("stories.shared")
        shared.check_codec(geometry["codec"])
        prompts.extend(shared.tokens_of(image, texts))
        g = shared.geometry_of(image, block_tokens, geometry)
        n = shared.blocks(g, prompts, tokens, at_once or len(texts))
        # The largest object, while as little else as possible is there.
        shared = None
        settle("prompts as tokens")
        gc.collect()
        try:
            buffer = bytearray(g.bytes(n))
        except MemoryError:
            raise MemoryError(
                "an arena of %d bytes, %d blocks of %d tokens" % (g.bytes(n), n, g.block_tokens)
            )
        return load_module("stories.shared").make(image, g, n, at_once or len(texts), buffer, kernels)

    llama = open_model(make=make, **chosen)
    return llama, llama.cache, prompts


def _rounds(stories, rounds):
    """So many tokens of each story, in turns."""
    while rounds > 0:
        rounds -= 1
        for story in stories:
            if not story.ended:
                story.turn()
                sample()


def tell(
    chosen,
    requests,
    shared_prefix="",
    block_tokens=16,
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
    """Tell `requests` stories in turns, then write them one after the other; returns the figures as a dict.

    chosen: options of open_model(); window and sinks are those of every story. Each starts with shared_prefix
    and its prompt (one text for all, or a list), and is told with a seed of its own: seed, seed + 1, ...
    """
    texts = load_module("stories.shared").check(requests, shared_prefix, prompt, tokens)
    llama, pool, prompts = open_arena(texts, tokens, block_tokens=block_tokens, **chosen)
    heat = "0" if greedy else temperature
    samplers = [Sampler(llama, heat, top_p, seed + i) for i in range(requests)]
    tokenizer = Tokenizer(llama.image)
    settle("tokenizer and samplers")
    start = now()
    stories = []
    for i in range(requests):
        story = Story(llama, pool, prompts[i], tokens, samplers[i], stop)
        stories.append(story)
        while not (story.told or story.ended):
            story.turn()
    prompt_ms = since(start)
    settle("prompts")
    first = pool.stats()

    start = now()
    if lock:
        micropython.heap_lock()
    try:
        before = allocated() if allocated else 0
        _rounds(stories, tokens - 1)
        after = allocated() if allocated else 0
    finally:
        if lock:
            micropython.heap_unlock()
    ms = since(start)
    last = pool.stats()
    told = sum([story.told for story in stories])
    figures = {
        "model_id": "%08x" % llama.image.model_id,
        "kernels": llama.kernels.name,
        "requests": requests,
        "prompt_tokens": [len(ids) for ids in prompts],
        "reused_tokens": [story.reused for story in stories],
        "told_tokens": [story.told for story in stories],
        "tokens": told,
        "prompt_ms": prompt_ms,
        "ms": ms,
        "alloc_bytes": after - before if allocated else None,
        "alloc_bytes_per_token": (after - before + told - 1) // max(told, 1) if allocated else None,
        "window": pool.geometry.window,
        "sinks": pool.geometry.sinks,
        "codec": pool.geometry.codec,
        "block_tokens": pool.geometry.block_tokens,
        "block_bytes": pool.geometry.block_bytes,
        "total_blocks": last["total_blocks"],
        "peak_blocks": last["peak_blocks"],
        "shared_blocks": first["shared_blocks"],
        "kv_bytes": sum([story.request.kv_bytes for story in stories]),
        "buffer_bytes": len(pool.buffer),
        "app_bytes": llama.ram_bytes(),
    }
    write = write or stdout()
    for i in range(requests):
        write(("--- story %d of %d, seed %d ---\n" % (i + 1, requests, seed + i)).encode())
        stories[i].write(tokenizer, write)
        write(b"\n\n")
        stories[i].close()
    figures["ids"] = [story.tokens() for story in stories]
    return figures
