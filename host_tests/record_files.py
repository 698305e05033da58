"""Files of a file store with any bytes, for fuzz.py: none of them is harmful to what is beside it."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from typing import Any

from kvlab.powercut.files import PoorFiles
from mpy_kv.file_store import FileStore
from mpy_kv.file_store.opening import open_store


def _folder(files: dict[str, bytes]) -> Any:
    fs = PoorFiles()
    for name, data in files.items():
        with fs.open(f"/kv/{name}", "wb") as f:
            f.write(data)
    return fs


def _opened(fs: Any) -> Any:
    return open_store(FileStore("/kv", 64, slots=2, blocks=4, fs=fs))


@cache
def samples() -> tuple[bytes, ...]:
    fs = _folder({})
    store = _opened(fs)
    for identity in (1, 2):
        slot = store.begin(identity)
        for record in (0, 1):
            store.put(slot, record, bytes(range(64)), [0, 24 + 40 * record])
    return tuple(bytes(fs.here[f"/kv/{name}"].data) for name in sorted(fs.names("/kv")))


def read(data: bytes) -> bool:
    """Beside one that is sound, under the name of the last of the samples, and as a temporary."""
    sound = samples()[0]
    fs = _folder({"00000001.kvr": sound, "00000004.kvr": data, "new.kvt": data})
    store = _opened(fs)
    found = {}
    into = bytearray(64)
    for slot in range(store.slots):
        for i in range(store.first[slot], store.first[slot + 1]):
            size = store.read(slot, store.records[i], into)
            assert size >= 0
            found[store.numbers[i]] = (store.identity[slot], size)
    assert store.used_bytes == sum(size + 52 for _, size in found.values())
    assert found.get(1) == (1, 24) or found[4][0] == 1  # replaced, as a sound file may say
    store.put(store.begin(3) if store.find(3) < 0 and len(found) < 2 else store.find(1), 0, sound, [0, 8])
    names = sorted(fs.names("/kv"))
    _opened(fs)
    assert sorted(fs.names("/kv")) == names
    return 4 in found


def mended(data: bytes) -> bytes:
    if len(data) < 52:
        return data
    head = data[:44] + struct.pack("<I", zlib.crc32(data[:44]))
    return head + data[48:-4] + struct.pack("<I", zlib.crc32(head + data[48:-4]))
