"""The files of the program: --dump and --json. Transient (mpy_kv/transient.py): most boards write none."""

import os
from array import array

from mpy_kv.errors import BadArgument, KVError
from mpy_kv.transient import load_module

from .telling import now, since

POINT = load_module("stories.kernels.layout").POINT

RESET = -1  # in the ids of dump(): forget everything
SEEK = -2  # keep the sinks and go on at the position that follows


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


def claim(dumped, json):
    """Try all files before the model is opened: (IDS, OUT) of --dump or None, the file of --json or None.
    Returns a list of those that were not there, which dump_files() and write() add to; see discard()."""
    made = []
    try:
        if dumped is not None:
            _opened("--dump", dumped[0], "rb").close()
            _claim("--dump", dumped[1], made)
        if json is not None:
            _claim("--json", json, made)
    except BaseException:
        discard(made)
        raise
    return made


def discard(made):
    """Remove what a run that failed has made; a device stays."""
    for path in made:
        try:
            if os.stat(path)[0] & 0xF000 == 0x8000:
                os.remove(path)
        except OSError:
            pass


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


def dump_files(llama, dumped, made):
    """dump() from the file of ids to the other one; returns the figures."""
    ids, out = dumped
    start = now()
    try:
        with open(ids, "rb") as source:
            made.append(out)
            with open(out, "wb") as sink:
                ran = dump(llama, source, sink)
    except (OSError, KVError) as error:
        raise BadArgument("--dump %s %s: %s" % (ids, out, error))
    return {"kernels": llama.kernels.name, "tokens": ran, "ms": since(start)}


def write(path, figures, made):
    """The figures as JSON."""
    import json

    made.append(path)
    try:
        with open(path, "w") as f:
            f.write(json.dumps(figures))
    except OSError as error:
        raise BadArgument("--json %s cannot be written: %s" % (path, error))
