"""Opens a model: the image where it lies, kernels and cache as they are asked for, the vectors.

Transient (mpy_kv/transient.py): a program opens one model.
"""

import gc

from mpy_kv.errors import BadArgument
from mpy_kv.transient import load_module

from .errors import ImageError
from .image import Image
from .model import Llama, make_cache
from .probe import settle


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
    check=False,
    verdicts=None,
    stream=0,
    make=make_cache,
):
    """A Llama with its cache. model: a path, a buffer, a file open for reading, or an Image; None: the
    board's own.

    A file on a memory-mapped file system (ROMFS) is read where it lies, any other one row by row.
    window, sinks (default 4), group (values that share a scale in the cache; head_dim is finest): Geometry's.
    codec: as make_cache, the element types that the image names unless it is given.
    Without a window it is most_window, or what the model was trained for if that is less. policy, budget:
    which tokens stay, and how many, sinks included (budgets.py). make: what makes the cache, called like
    make_cache. verdicts: the file that remembers which kernels passed their self-check ("": none; without it
    a board has its own), see verdicts.py. check: run it all the same. stream: bytes of RAM through which an
    rp2 chip streams the weights while the core computes (streaming/streamed.py); 0: they are read in place.
    """
    if type(row_buffer_bytes) is not int or not 0 <= row_buffer_bytes <= 1 << 20:
        raise BadArgument("row_buffer_bytes must be 0..1048576, got %r" % (row_buffer_bytes,))
    if model is None:
        storage = load_module("stories.storage")
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
        image = model if isinstance(model, Image) else Image(model, check_crc)
    if codec is None:
        codec = image.codec
    start = load_module("stories.starting")
    if verdicts is None:
        verdicts = load_module("stories.verdicts").usual()
    of_types, families = start.families(codec, policy)
    known = start.take(verdicts, check, families)
    both = start.sets(kernels, codec, of_types)
    more = {}
    if policy is not None or budget is not None:
        window, sinks, policy = load_module("stories.budgets").chosen(
            image, policy, budget, window, most_window, sinks, codec, kernels
        )
        if policy is not None:
            more["policy"] = policy
    elif sinks is None:
        sinks = 4
    load_module("stories.starting").note(verdicts, known, families)
    start = known = families = of_types = None
    settle("kernels")
    gc.collect()  # what makes the cache comes to lie below its buffer
    if window is None and type(sinks) is int:
        window = max(1, min(most_window, image.seq_len - sinks))
    # Before the cache, which leaves small gaps.
    room = load_module("stories.workspace").made(image, row_buffer_bytes)
    if stream:
        # Before the cache as well, whose gaps have no room for it.
        room = (room, load_module("stories.streaming.making").ring(stream))
    cache = make(image, window=window, sinks=sinks, group=group, codec=codec, kernels=both[1], **more)
    settle("KV cache: the buffer and its objects")
    if not stream:
        return Llama(image, cache, kernels=both[0], room=room)
    return load_module("stories.streaming.making").make(image, cache, both[0], room)


def _read_where_it_lies(file, check_crc):
    """The Image of an open file: in place where the file system maps it, else row by row."""
    try:
        return Image(memoryview(file), check_crc)
    except (TypeError, AttributeError, ImageError):
        return Image(file, check_crc)
