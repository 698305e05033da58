"""Small board images for the tests of the stories app, and ways to run it."""

from __future__ import annotations

import io
import struct
import tempfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import files, kernels
from stories.image import Image
from stories.model import Llama, make_cache
from tiny_model import write_tiny

from kvlab.models.image import HALF_SPLIT, convert, with_codecs
from kvlab.models.image import Image as HostImage
from kvlab.models.llama2c import Checkpoint, read_checkpoint
from kvlab.models.tokenizer import Tokenizer, read_tokenizer
from mpy_kv import kernels as kv_kernels
from unix_port import port

SHAPES = {
    "usual": {},
    "no multiple of 32": {"dim": 48, "hidden": 100, "heads": 6, "kv_heads": 3},
    "own classifier": {"shared": False, "heads": 2, "kv_heads": 2, "vocab": 300},
    "one layer, one kv head": {"layers": 1, "dim": 32, "heads": 8, "kv_heads": 1, "hidden": 33},
    "wide heads": {"dim": 96, "heads": 2, "kv_heads": 1, "seq_len": 40},
}


@cache
def tiny(shape: str = "usual") -> tuple[Checkpoint, Tokenizer, bytes]:
    """(checkpoint, tokenizer, image) of a random model."""
    with tempfile.TemporaryDirectory() as folder:
        model, words = write_tiny(folder, **SHAPES[shape])
        checkpoint = read_checkpoint(model)
        tokenizer = read_tokenizer(words, checkpoint.config.vocab)
    return checkpoint, tokenizer, convert(checkpoint, tokenizer)


def typed(*codecs: str) -> bytes:
    """The image of tiny() with these element types of the cache, in turns."""
    image = Image(tiny()[2])
    return with_codecs(HostImage.parse(tiny()[2]), [codecs[n % len(codecs)] for n in range(image.layers)])


def sealed(image: bytes | bytearray) -> bytes:
    """The image with its checksum made right again."""
    return image[:12] + struct.pack("<I", zlib.crc32(image[16:])) + image[16:]


def patched(image: bytes, at: int, form: str, *values: int) -> bytes:
    """The image with some bytes replaced, resealed."""
    out = bytearray(image)
    struct.pack_into("<" + form, out, at, *values)
    return sealed(out)


def half_split(image: bytes) -> bytes:
    flags = struct.unpack_from("<H", image, 42)[0]
    return patched(image, 42, "H", flags | HALF_SPLIT)


def llama(image: bytes, mapped: bool = True, row_buffer_bytes: int = 4096, **context) -> Llama:
    """The model in this process, plain kernels; a window has no sinks unless they are named."""
    if "window" in context:
        context.setdefault("sinks", 0)
    opened = Image(image if mapped else io.BytesIO(image))
    codec = context.get("codec", opened.codec)
    if isinstance(codec, str):
        plain = kv_kernels.of(codec).get("plain")
    else:
        plain = {name: kv_kernels.of(name).get("plain") for name in codec}
    cache = make_cache(opened, kernels=plain, **context)
    return Llama(opened, cache, kernels.get("plain"), row_buffer_bytes)


def parse_logits(raw: bytes) -> np.ndarray:
    """What dump() wrote, as floats (positions, vocab)."""
    magic, vocab, point, rest = struct.unpack_from("<4s3I", raw)
    assert (magic, rest) == (b"MKVL", 0)
    return np.frombuffer(raw, "<i4", offset=16).reshape(-1, vocab) / 2.0**point


def dump(image: bytes, ids: list[int], **options) -> bytes:
    """dump() in this process, plain kernels."""
    out = io.BytesIO()
    files.dump(llama(image, **options), io.BytesIO(np.array(ids, "<i4").tobytes()), out)
    return out.getvalue()


READ_WHOLE = """
import sys, stories
from stories.command import parse
words = sys.argv[1:]
if words[0] == "mapped":
    # A flash that is memory-mapped: the image as a buffer.
    options = parse(words[1:])
    with open(options.pop("model"), "rb") as f:
        options["model"] = f.read()
    stories.main(**options)
else:
    stories.main(words[1:])
"""


def unix_app(
    image: bytes, words: list[object], mapped: bool = False
) -> tuple[port.Finished, dict[str, bytes]]:
    """Run the app on the unix port. Words "{name}" are files in a folder; those left behind are returned.

    A pair ("{name}", bytes) among the words gives that file's content beforehand.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "model").write_bytes(image)
        line = ["mapped" if mapped else "file", "--model", str(place / "model")]
        for word in words:
            if isinstance(word, tuple):
                name, content = word
                (place / name.strip("{}")).write_bytes(content)
                word = name
            line.append(str(word).format_map(_Places(place)) if str(word).startswith("{") else str(word))
        done = port.run(["-c", READ_WHOLE, *line], heap_bytes=32 << 20, timeout_s=120)
        return done, {p.name: p.read_bytes() for p in place.iterdir()}


class _Places(dict):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> str:
        return str(self.folder / name)


def unix_dump(image: bytes, ids: list[int], mapped: bool = False, **options) -> bytes:
    """dump() on the unix port."""
    words: list[object] = ["--dump", ("{ids}", np.array(ids, "<i4").tobytes()), "{out}"]
    for name, value in options.items():
        words += ["--" + name.replace("_", "-"), value]
    done, files = unix_app(image, words, mapped)
    assert done.status == 0, done.stderr
    return files["out"]
