"""stories: a fixed-point tiny Llama that tells stories on a microcontroller, its KV cache in mpy_kv.

    import stories
    stories.main(model="stories260K.mkvm", prompt="Once upon a time", tokens=200, greedy=True)

Shapes come from the board image (`kvlab convert` makes one from a llama2.c checkpoint). No floats, and
nothing is allocated per token.
"""

import gc as _gc

# The program is loaded in steps, garbage collected after each, so that what stays lies together at one end of
# the heap and the largest object, the cache's buffer, finds one piece at the other. In between that is done
# where so much has gathered: less would cost more than the rest of the start, and more would put what is
# loaded in its midst. open_model() ends the start.
if hasattr(_gc, "mem_free"):
    _gc.threshold(24576)

from mpy_kv import port as _port  # noqa: E402

from mpy_kv.transient import load_module as _load_module  # noqa: E402

from .probe import settle as _settle  # noqa: E402

_load_module("mpy_kv.setup")  # with what stays of a cache
_settle("mpy_kv")
_gc.collect()

if _port.MICROPYTHON and not _port.EMITTER:
    # Without an emitter `@micropython.native` does not compile: the same files, decorators left out.
    from mpy_kv.undecorated import install

    _here = __file__[: __file__.rfind("/") + 1]
    for _name in ("image", "model"):
        install("stories." + _name, _here + _name + ".py")

from . import kernels  # noqa: E402, F401
from .app import main, tell  # noqa: E402, F401
from .errors import ImageError  # noqa: E402, F401
from .image import Image  # noqa: E402, F401
from .model import Llama, make_cache  # noqa: E402, F401
from .sampler import Sampler  # noqa: E402, F401
from .tokenizer import Tokenizer  # noqa: E402, F401

_gc.collect()
_settle("stories app")
