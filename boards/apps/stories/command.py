"""The command line and the files of the program: a board that has neither does not load this module."""

import os
from array import array

from mpy_kv.errors import BadArgument, KVError

from .app import now, open_model, since, tell
from .errors import ImageError
from .kernels import POINT

USAGE = """\
usage: stories [options]
  --model IMAGE      board image (kvlab convert makes one) [default: the board's own]
  --prompt TEXT      how the story starts; --prompt=TEXT does too
  --tokens N         tokens to tell (200); goes on past the context for ever
  --window N         recent tokens kept (up to 256)      --sinks N  first tokens kept (4)
  --temperature X    0.8; 0 is greedy                    --top-p X  0.9
  --seed N           1                                   --greedy   always the likeliest token
  --stop             end with the first story instead of starting another
  --group N          values of the cache that share a scale (32)
  --kernels NAME     thumb, viper or plain (the fastest that works)
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


def parse(argv):
    """Options of a command line as keyword arguments of main(), None where it asks for help.

    `--name value` or `--name=value`; the word after an option that takes one is its value, whatever it
    begins with. BadArgument names what is wrong.
    """
    options = {}
    i = 0
    while i < len(argv):
        word, equals, value = argv[i].partition("=")
        if argv[i] in ("--help", "-h"):
            return None
        name = word[2:].replace("-", "_") if word.startswith("--") else None
        if name not in _FLAGS + _NUMBERS + _TEXTS + ("dump",):
            raise BadArgument("unknown option %s; stories --help lists all" % word)
        count = 0 if name in _FLAGS else 2 if name == "dump" else 1
        values = [value] if equals else []
        i += 1
        while len(values) < count and i < len(argv):
            values.append(argv[i])
            i += 1
        if len(values) != count:
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
    return options


def as_typed(error):
    """What an error says, the option it is about named as on a command line."""
    text = str(error)
    if isinstance(error, ImageError):
        return "--model: " + text
    name = text.split(" ", 1)[0]
    if name in _NUMBERS + _TEXTS:
        text = "--" + name.replace("_", "-") + text[len(name) :]
    return text


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
    while True:
        got = source.readinto(word)
        if got == 0:
            return ran
        if got != 4:
            raise BadArgument("the ids end inside an id, after %d" % ran)
        token = word[0]
        if token == RESET:
            llama.cache.rollback(llama.cache.length)
        elif token == SEEK:
            if source.readinto(word) != 4:
                raise BadArgument("the ids end after SEEK, a position must follow")
            llama.cache.seek(word[0])
        else:
            llama.step(token)
            sink.write(llama.logits)
            ran += 1


def run(dumped, json, chosen, options):
    """The work of main() where files are read or written: (IDS, OUT) of --dump or None, the file of --json
    or None, the options of open_model(), those of tell(). Returns the figures.

    All files are tried before the model is opened; what a run that fails has made of them is removed.
    """
    made = []
    try:
        if dumped is not None:
            _opened("--dump", dumped[0], "rb").close()
            _claim("--dump", dumped[1], made)
        if json is not None:
            _claim("--json", json, made)
        llama = open_model(**chosen)
        if dumped is None:
            figures = tell(llama, **options)
            print()
        else:
            figures = _dump_files(llama, dumped[0], dumped[1], made)
        if json is not None:
            _write(json, figures, made)
    except BaseException:
        for path in made:
            _discard(path)
        raise
    return figures


def _opened(option, path, mode):
    try:
        return open(path, mode)
    except OSError as error:
        raise BadArgument(
            "%s %s cannot be %s: %s" % (option, path, "read" if mode == "rb" else "written", error)
        )


def _claim(option, path, made):
    """Refuse a file that cannot be written, before anything is put into it."""
    try:
        os.stat(path)
    except OSError:
        made.append(path)
    _opened(option, path, "ab").close()


def _discard(path):
    """Remove a file; a device stays."""
    try:
        if os.stat(path)[0] & 0xF000 == 0x8000:
            os.remove(path)
    except OSError:
        pass


def _dump_files(llama, ids, out, made):
    start = now()
    try:
        with open(ids, "rb") as source:
            made.append(out)
            with open(out, "wb") as sink:
                ran = dump(llama, source, sink)
    except (OSError, KVError) as error:
        raise BadArgument("--dump %s %s: %s" % (ids, out, error))
    return {"kernels": llama.kernels.name, "tokens": ran, "ms": since(start)}


def _write(path, figures, made):
    import json

    made.append(path)
    try:
        with open(path, "w") as f:
            f.write(json.dumps(figures))
    except OSError as error:
        raise BadArgument("--json %s cannot be written: %s" % (path, error))
