"""The files of the program: --dump and --json. Lent (mpy_kv/lend.py): most boards write none."""

import os
from array import array

from mpy_kv.errors import BadArgument, KVError

from .app import now, open_model, since
from .kernels import POINT

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


def run(dumped, json, work, chosen, options):
    """The work of main() where files are read or written: (IDS, OUT) of --dump or None, the file of --json
    or None, what tells, the options of open_model(), those of telling. Returns the figures.

    All files are tried before the model is opened; what a run that fails has made of them is removed.
    """
    made = []
    try:
        if dumped is not None:
            _opened("--dump", dumped[0], "rb").close()
            _claim("--dump", dumped[1], made)
        if json is not None:
            _claim("--json", json, made)
        if dumped is None:
            figures = work(chosen, **options)
        else:
            figures = _dump_files(open_model(**chosen), dumped[0], dumped[1], made)
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
