"""A story in a file, to go on with: --save and --resume (kept.py). Transient (mpy_kv/transient.py).

A snapshot (mpy_kv/snapshot) of the cache, in which the last token told is not run yet: who goes on runs it,
and has the logits by which the next is chosen. The program's own section, as little-endian words:
  tale  stories, the last token, whether the story has ended with --stop; then the choice of tokens:
        whether it is greedy, and its parameters from HEAT on
"""

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

import os
import struct
import sys
from array import array

from mpy_kv import snapshot
from mpy_kv.errors import BadArgument, KVError
from mpy_kv.transient import kept, load_module

# fields: pick
_HEAT = const(2)
_STATE = const(7)
# end of fields

TALE = b"tale"
_WORDS = 4  # before the parameters of the choice
_MOST_LAYERS = 1024
# Options of what the file tells.
_TOLD = ("temperature", "top_p", "seed", "greedy", "compress", "prompt")


class Ids:
    """Ids of tokens by position: as many as a ring shows; under a policy, which may show any, `count`."""

    def __init__(self, cache, count):
        g = cache.geometry
        self._sinks = g.sinks
        self._ring = count if hasattr(cache, "policy") else g.window
        self._ids = array("H", bytes(2 * (g.sinks + self._ring)))

    def _at(self, position):
        if position >= self._sinks:
            position = self._sinks + (position - self._sinks) % self._ring
        return position

    def __getitem__(self, position):
        return self._ids[self._at(position)]

    def __setitem__(self, position, token):
        self._ids[self._at(position)] = token


def prepare(chosen, options):
    """Before a model is opened with `chosen`, a dict that gets what the file to go on with says of the cache.
    BadArgument for a file that cannot be had, and for an option of what it says."""
    path = options.get("resume")
    if path is not None:
        for name in _TOLD + ("budget",):
            if options.get(name) or chosen.get(name):
                raise BadArgument("%s is in the file of --resume: leave it out" % name)
        for name, value in settings(path).items():
            mine = chosen.get(name)
            if mine is None:
                chosen[name] = value
            elif name != "group" and isinstance(mine, (int, str)) and not _alike(mine, value):
                values = name, mine, "none" if value is None else value
                raise BadArgument("%s is %s here and %s in the file of --resume: leave it out" % values)
    path = options.get("save")
    if path is not None:
        try:
            open(path + snapshot.BESIDE, "wb").close()
            os.remove(path + snapshot.BESIDE)
        except OSError as error:
            raise BadArgument("--save %s cannot be written: %s" % (path, error))


def _alike(mine, its):
    """Window alone is the policy of a ring, which a snapshot names none."""
    return mine == its or mine == "window" and its is None


def settings(path):
    """What open_model() takes for a cache like the one in the file, a new dict."""
    h, types = _header(path)
    if not h.window:
        raise BadArgument("--resume %s is of a cache with a capacity: a story has a window" % path)
    found = {"window": h.window, "sinks": h.sinks, "policy": h.policy or None}
    found["codec"], found["group"] = types[0]
    if len(set(types)) > 1:
        found["codec"] = [name for name, _ in types]
        found["group"] = [group for _, group in types]
    return found


def _header(path):
    """The Header of a file, and (element type, group) of each layer."""
    H = load_module("mpy_kv.snapshot.header")
    S = load_module("mpy_kv.snapshot.stream")
    try:
        with open(path, "rb") as f:
            r = S.Reader(f.readinto, S.chunk(None), H.BYTES)
            h = H.read(r)
            if not 0 < h.layers <= _MOST_LAYERS:
                raise snapshot.BadSnapshot("damaged: %d layers" % h.layers)
            r.skip(12)
            numbers = [r.number() for _ in range(h.layers)]
            r.end_section("the element types")
            return h, [H.type_of(x) for x in numbers]
    except (OSError, KVError) as error:
        raise BadArgument("--resume %s cannot be read: %s" % (path, error))


def _modules():
    return [name for name in sys.modules if name.startswith("mpy_kv.snapshot.") or name == __name__]


def ids(cache, tokens, resume=None):
    """What keeps the ids of a story of so many tokens, and of those in the file to go on with; what saves
    them stays loaded from now on."""
    _keep(cache)
    return Ids(cache, tokens if resume is None else _header(resume)[0].length + 1 + tokens)


def _keep(cache):
    """Load what saving takes, and have it stay: there may be no room for it once the story is told."""
    snapshot.save(cache, _nowhere)
    load_module("mpy_kv.snapshot.files")
    kept.extend([name for name in _modules() if name not in kept])


def _nowhere(part):
    """Takes all of it."""


def _identity(llama):
    """(model, rope) of its snapshots."""
    return llama.image.model_id, 1 if llama.image.half_split else 0


def save(llama, teller, ids, path):
    """Write the story to the file; returns its bytes."""
    parameters = teller.sampler.parameters
    words = [teller.stories, teller.last, int(teller.ended), int(teller.sampler.greedy)]
    words += [parameters[i] & 0xFFFFFFFF for i in range(_HEAT, _STATE + 1)]
    tale = struct.pack("<%dI" % len(words), *words)
    model, rope = _identity(llama)
    try:
        return snapshot.save_file(llama.cache, path, model, rope, ids, ((TALE, tale),))
    except (OSError, KVError) as error:
        raise BadArgument("--save %s cannot be written: %s" % (path, error))
    finally:
        for name in _modules():
            if name in kept:
                kept.remove(name)


def _drawn(numbers, vocab):
    """Whether that is how tokens are drawn (sampling.py): kernels take it as it is."""
    heat, exponent, bits, _, top_p, state = numbers
    heated = 1 << 14 <= heat < 1 << 15 and -6 <= exponent <= 11
    return heated and 0 <= bits <= 24 and vocab << bits <= 1 << 30 and 0 < top_p <= 1 << 15 and state != 0


def take(llama, teller, ids, path):
    """Take over the story of the file, whose last token is yet to be run; how many that are."""
    model, rope = _identity(llama)
    sampler = teller.sampler
    tale = bytearray(4 * (_WORDS + _STATE + 1 - _HEAT))
    try:
        reused = snapshot.load_file(llama.cache, path, model, rope, ids, {TALE: tale})
    except (OSError, KVError) as error:
        raise BadArgument("--resume %s cannot be read: %s" % (path, error))
    words = struct.unpack("<%dI" % (len(tale) // 4), tale)
    stories, last, ended, greedy = words[:_WORDS]
    numbers = [x - (1 << 32) if x >> 31 else x for x in words[_WORDS:]]
    sound = last < llama.vocab and ended < 2 and greedy < 2 and not stories >> 29
    if not sound or not (greedy or _drawn(numbers, llama.vocab)):
        raise BadArgument("--resume %s: no story of this program" % path)
    teller.stories, teller.last, teller.ended, sampler.greedy = stories, last, bool(ended), bool(greedy)
    for i in range(_HEAT, _STATE + 1):
        sampler.parameters[i] = numbers[i - _HEAT]
    return reused

