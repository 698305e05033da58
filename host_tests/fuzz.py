"""Bytes that nobody should have written, given to every reader of bytes: refused by its own errors, or sound.

    python host_tests/fuzz.py --seconds 600        make fuzz
    python host_tests/fuzz.py --only snapshot --seed 7 --count 1000

A reader of READERS is (samples, what reads one): the samples are changed, some of them with checksums made
right again, as a hostile writer makes them. What a reader does wrong it raises; the seed repeats it.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT), str(ROOT / "tools"), str(ROOT / "boards" / "apps")]

import log_regions  # noqa: E402
import record_files  # noqa: E402
import snapshot_cases  # noqa: E402
from snapshot_cases import budget, grown, load, plain, request, saved, step  # noqa: E402
from stories import app  # noqa: E402
from stories.errors import ImageError  # noqa: E402
from stories.image import Image  # noqa: E402
from stories.tokenizer import Tokenizer  # noqa: E402
from tiny_model import write_tiny  # noqa: E402

from kvlab.models.image import convert  # noqa: E402
from kvlab.models.llama2c import read_checkpoint  # noqa: E402
from kvlab.models.tokenizer import read_tokenizer  # noqa: E402
from mpy_kv import snapshot  # noqa: E402
from mpy_kv.errors import BadArgument, KVError  # noqa: E402

WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000)
WORDS += (0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
MOST_BYTES = 2 << 20  # that a reader may make of a small sample; modules that are loaded anew take half
Mend = Callable[[bytes], bytes]


def changed(data: bytes, others: Sequence[bytes], dice: random.Random) -> bytes:
    """One to four changes: bits, words, cuts, repeats, pieces of another one."""
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        at = dice.randrange(len(made) + 1)
        n = dice.choice((1, 2, 4, 12, 16, 80, 200))
        kind = dice.randrange(7)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << dice.randrange(8)
        elif kind == 1 and at < len(made):
            made[at] = dice.randrange(256)
        elif kind == 2 and at + 4 <= len(made):
            struct.pack_into("<I", made, at, dice.choice(WORDS))
        elif kind == 3:
            del made[at : at + n]
        elif kind == 4:
            made[at:at] = made[at : at + n]
        elif kind == 5:
            other = dice.choice(others)
            made[at : at + n] = other[at : at + n]
        else:
            made = made[:at]
    return bytes(made)


# Snapshots

KINDS = {
    "ring": plain("int8", window=3, sinks=1),
    "types": plain(["int8-int4", "sparse"], window=2, sinks=0),
    "float16": plain("float16", capacity=40),
    "sealed": plain("int4", window=18, sinks=1),
    "chosen": budget("heavy-hitters"),
    "paged": request(2, window=3, sinks=1),
}


@cache
def _snapshots(kind: str) -> tuple[bytes, ...]:
    more = {"ids": range(99), "sections": [(b"note", b"abc")]}
    return tuple(saved(grown(KINDS[kind], tokens), **more) for tokens in (0, 5, 36))


def _into(kind: str) -> Callable[[bytes], bool]:
    def read(data: bytes) -> bool:
        """Whether it was taken."""
        cache = KINDS[kind]()
        taken = True
        try:
            load(cache, data)
        except KVError:
            taken = False
            assert cache.length == 0
        assert cache.check() == 0
        try:
            assert snapshot.check(snapshot_cases.Stream(data).readinto).tokens >= 0
        except KVError:
            assert not taken
        if cache.geometry.capacity is None or cache.length < cache.geometry.capacity:
            step(cache, 1)
        assert cache.check() == 0
        return taken

    return read


READERS: dict[str, tuple[Callable[[], Sequence[bytes]], Callable[[bytes], bool], Mend]] = {
    f"snapshot: {kind}": (
        lambda kind=kind: _snapshots(kind),  # type: ignore[misc]
        _into(kind),
        lambda data: snapshot_cases.mended(data) if len(data) >= 80 else data,
    )
    for kind in KINDS
}


# Board images


@cache
def _images() -> tuple[bytes, ...]:
    made = []
    for vocab, seed in ((5, 1), (40, 2)):
        with tempfile.TemporaryDirectory() as folder:
            model, words = write_tiny(
                folder, dim=4, hidden=6, layers=1, heads=2, kv_heads=1, vocab=vocab, seq_len=8, seed=seed
            )
            checkpoint = read_checkpoint(model)
            made.append(convert(checkpoint, read_tokenizer(words, checkpoint.config.vocab)))
    return tuple(made)


def _image(data: bytes) -> bool:
    """And its words, one after the other."""
    try:
        image = Image(bytearray(data))
    except ImageError:
        return False
    words = Tokenizer(image)
    for token in range(image.vocab):
        assert 0 <= words.decode(image.bos, token) <= max(image.max_token_bytes, 6)
    return True


def _image_mended(data: bytes) -> bytes:
    if len(data) < 16:
        return data
    sized = data[:8] + struct.pack("<I", len(data)) + data[12:]
    return sized[:12] + struct.pack("<I", zlib.crc32(sized[16:])) + sized[16:]


READERS["board image"] = (_images, _image, _image_mended)


# Stories to go on with


@cache
def _stories() -> tuple[bytes, ...]:
    made = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "a")
        for options in ({"seed": 3}, {"greedy": True}, {"codec": "float16"}):
            _run(_images()[1], 5, window=3, save=path, **options)
            made.append(Path(path).read_bytes())
    return tuple(made)


def _run(image: bytes, tokens: int, **options: object) -> None:
    options |= {"check_crc": False, "kernels": "plain", "report": False, "write": lambda part: None}
    with redirect_stdout(None):
        app._run(model=bytearray(image), tokens=tokens, **options)


def _story(data: bytes) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(data)
        try:
            _run(_images()[1], 3, resume=str(path))
        except BadArgument:
            return False
    return True


READERS["story"] = (
    _stories,
    _story,
    lambda data: snapshot_cases.mended(data) if len(data) >= 80 else data,
)

READERS["flash log"] = (log_regions.samples, log_regions.read, log_regions.as_is)
READERS["flash log: its checksums right"] = (
    log_regions.samples,
    log_regions.read_hostile,
    log_regions.mended,
)


READERS["record file"] = (record_files.samples, record_files.read, record_files.mended)


def one(name: str, seed: int) -> bool:
    """Read one changed sample; whether it was taken."""
    samples, read, mend = READERS[name]
    dice = random.Random(f"{name} {seed}")
    data = changed(dice.choice(samples()), samples(), dice)
    if dice.random() < 0.7:
        data = mend(data)
    return read(data)


def bounded(name: str, seed: int) -> bool:
    """The same, with no more memory than it may take."""
    samples, read, _ = READERS[name]
    read(samples()[0])  # all that is made and loaded once
    tracemalloc.start()
    try:
        taken = one(name, seed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES, f"{peak} bytes"
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--count", type=int, default=1 << 30, help="of each reader at most")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--only", default="", help="readers whose name has this in it")
    asked = parser.parse_args()
    names = [name for name in READERS if asked.only in name]
    end = time.monotonic() + asked.seconds
    seed, taken = asked.seed, 0
    while time.monotonic() < end and seed < asked.seed + asked.count:
        for name in names:
            try:
                taken += bounded(name, seed) if seed % 50 == 0 else one(name, seed)
            except BaseException:
                print(f"--only {name!r} --seed {seed} --count 1", file=sys.stderr)
                raise
        seed += 1
    many = (seed - asked.seed) * len(names)
    print(f"{many:,} samples of {len(names)} readers, {taken:,} taken, none that was wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
