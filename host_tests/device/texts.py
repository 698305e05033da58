"""Encode texts by vocabularies, each a tokenizer section as a board image has it.

usage: texts.py CASES [WAYS]    a file with a JSON line a case: [section, [text, ...]] in hex

Prints a JSON line a case: of the section where it lies, as a file, and as one with no room for its tables
(the first WAYS of these three), for each text the ids, or what is wrong with it.
"""

import json
import struct
import sys

from mpy_kv.errors import BadArgument
from stories import encoding


class Section:
    """What encode() takes for an image."""

    bos = 1
    tokenizer_at = 0

    def __init__(self, data, mapped, room):
        self._data = data
        self.buffer = memoryview(data) if mapped else None
        self.total_bytes = len(data)
        self.tokenizer_bytes = len(data) if room else 1 << 30
        self.vocab, self.max_token_bytes = struct.unpack_from("<2I", data)
        padded = 2 * self.vocab + -2 * self.vocab % 4
        self.token_offsets_at = 16
        self.token_ranks_at = 20 + 4 * self.vocab
        self.token_order_at = self.token_ranks_at + padded
        self.token_blob_at = self.token_order_at + padded

    def read(self, at, buf, size):
        data = self._data[at : at + len(buf)]
        assert len(data) >= size
        buf[: len(data)] = data


WAYS = ((True, True), (False, True), (False, False))


def encoded(section, text):
    try:
        return encoding.encode(section, text, False)
    except BadArgument as error:
        return str(error)


def run(section, texts, ways=3):
    data = bytes.fromhex(section)
    texts = [bytes.fromhex(text) for text in texts]
    return [[encoded(Section(data, *how), text) for text in texts] for how in WAYS[:ways]]


def main(file, ways=3):
    with open(file) as lines:
        for line in lines:
            print(json.dumps(run(*json.loads(line), int(ways))))


if __name__ == "__main__":
    main(*sys.argv[1:])
