"""What several texts in one arena are made of: their prompts as tokens, and the arena.

Transient (mpy_kv/transient.py), for it is made once.
"""

from mpy_kv.errors import BadArgument
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.transient import load_module

from . import plan

MOST = 64  # requests


def check(requests, shared_prefix, prompt, tokens):
    """The prompts as a list, one for each request; BadArgument names the option that is wrong."""
    for name, value, most in (("requests", requests, MOST), ("tokens", tokens, 1 << 20)):
        if type(value) is not int or not 1 <= value <= most:
            raise BadArgument("%s must be 1..%d, got %r" % (name, most, value))
    prompts = list(prompt) if isinstance(prompt, (list, tuple)) else [prompt]
    if len(prompts) == 1:
        prompts = prompts * requests
    for name, texts in (("shared_prefix", [shared_prefix]), ("prompt", prompts)):
        if not all([isinstance(text, str) for text in texts]):
            raise BadArgument("%s must be text" % name)
    if len(prompts) != requests:
        raise BadArgument(
            "prompt given %d times for %d requests: once, or once for each" % (len(prompts), requests)
        )
    return [shared_prefix + text for text in prompts]


def check_codec(codec):
    """BadArgument where layers differ in element type: a block of the arena holds all layers alike."""
    if not isinstance(codec, str):
        raise BadArgument(
            "codec must be one for all layers, the model's image names one for each: choose with --codec"
        )


def check_alone(options):
    """BadArgument where something is asked for that only a single text has."""
    for name in ("policy", "budget"):
        if options.get(name) is not None:
            raise BadArgument(
                "%s is not for several stories: requests share blocks of tokens, of which none leaves alone; "
                "take --window" % name
            )


def tokens_of(image, texts):
    """The tokens of each text. Equal texts are encoded once."""
    encode = load_module("stories.encoding").encode
    known = {}
    for text in texts:
        if text not in known:
            known[text] = encode(image, text, True)
    return [known[text] for text in texts]


def geometry_of(image, block_tokens, options):
    """The PagedGeometry of a model; options: those of Geometry."""
    g = PagedGeometry(*plan.shape(image), block_tokens=block_tokens, **options)
    plan.check_context(image, g)
    return g


def make(image, g, blocks, at_once, buffer, kernels):
    """Requests of a model, of so many blocks and for so many texts at once, in `buffer`."""
    return Requests(
        g,
        blocks,
        max_requests=at_once,
        buffer=buffer,
        kernels=kernels,
        identity=image.crc32.to_bytes(4, "little"),  # weights, shapes and style of RoPE
        wide_ids=image.vocab > 1 << 16,
        max_pins=0,
        **plan.shifts(image),
    )


def blocks(g, prompts, tokens, at_once):
    """Blocks that so many of the texts hold at most, when they are told in turns.

    What all prompts begin with is held once, unless windows move past it: the first one must have run its
    prompt when the others open.
    """
    longest = max([len(prompt) for prompt in prompts]) + tokens - 1  # the last token is told, but not run
    each = g.blocks_of(longest)
    shared = 0
    if each * g.block_tokens >= longest:
        shared = common(prompts) // g.block_tokens
    return shared + at_once * (each - shared)


def common(prompts):
    """Tokens that all prompts begin with, short of the last of any: that one is computed in any case."""
    most = min([len(prompt) for prompt in prompts]) - 1
    n = 0
    while n < most and all([prompt[n] == prompts[0][n] for prompt in prompts]):
        n += 1
    return n
