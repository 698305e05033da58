"""A file store beside a dict that is to hold the same, on CPython and MicroPython."""

from mpy_kv.errors import NoRoom
from mpy_kv.file_store import FileStore
from mpy_kv.file_store.opening import open_store

SIZE = 240
HEAD_AND_TAIL = 52


def data_of(n, size):
    return bytes([(n * 37 + i * (n % 11 + 1)) & 255 for i in range(size)])


class Twin:
    """Does operations [name, a, b, c] on both, and compares. The numbers are any: what is there is chosen by
    them."""

    def __init__(self, folder, fs=None):
        self.folder = folder
        self.fs = fs
        self.known = {}  # identity: {record: bytes}
        self.base = {}
        self.count = {}
        self.n = 0
        self.refused = 0
        self.reopen(False)

    def reopen(self, quick):
        self.store = FileStore(self.folder, SIZE, model=5, slots=3, blocks=9, fs=self.fs)
        open_store(self.store, quick)
        for identity in list(self.known):
            records = self.known[identity]
            if records:
                self.base[identity] = min(records)
                self.count[identity] = max(records) + 1
            else:
                self.forget(identity)

    def forget(self, identity):
        for of in (self.known, self.base, self.count):
            of.pop(identity)

    def do(self, name, a, b, c):
        if name == "reopen":
            self.reopen(a & 1 == 0)
        elif name == "begin":
            self.begin(a % 5)
        elif self.known:
            identity = sorted(self.known)[a % len(self.known)]
            getattr(self, name)(identity, b, c)
        self.check()

    def begin(self, identity):
        if identity in self.known:
            return
        if len(self.known) == 3:
            try:
                self.store.begin(identity)
                raise AssertionError("a slot too many")
            except NoRoom:
                return
        self.store.begin(identity)
        self.known[identity] = {}
        self.base[identity] = self.count[identity] = 0

    def put(self, identity, b, c):
        base, count = self.base[identity], self.count[identity]
        record = base + b % (count - base + 2)  # one that is there, the next, or one behind it
        size = 8 + 8 * (c % (SIZE // 8))
        self.n += 1
        data = data_of(self.n, size)
        full = sum([len(records) for records in self.known.values()]) >= 9
        full = full and record not in self.known[identity]
        slot = self.store.find(identity)
        at = size // 16 * 8
        try:
            self.store.put(slot, record, b"12345678" + data, [8, at, 8 + at, size - at])
            assert not full
        except NoRoom as error:
            if not full and error.unit != "bytes":
                raise
            self.refused += 1
            return
        self.known[identity][record] = data
        self.count[identity] = max(count, record + 1)

    def truncate(self, identity, b, c):
        count = self.base[identity] + b % (self.count[identity] - self.base[identity] + 1)
        self.store.truncate(self.store.find(identity), count)
        self.count[identity] = count
        self.known[identity] = {i: data for i, data in self.known[identity].items() if i < count}

    def trim(self, identity, b, c):
        base = self.base[identity] + b % (self.count[identity] - self.base[identity] + 1)
        self.store.trim(self.store.find(identity), base)
        self.base[identity] = base
        self.known[identity] = {i: data for i, data in self.known[identity].items() if i >= base}

    def close(self, identity, b, c):
        self.store.close(self.store.find(identity))
        self.forget(identity)

    def check(self):
        store = self.store
        used = 0
        into = bytearray(SIZE)
        for identity in range(5):
            slot = store.find(identity)
            if identity not in self.known:
                assert slot < 0, identity
                continue
            assert slot >= 0, identity
            assert (store.base[slot], store.count[slot]) == (self.base[identity], self.count[identity])
            for record in range(self.count[identity] + 2):
                want = self.known[identity].get(record)
                assert store.has(slot, record) == (want is not None), (identity, record)
                size = store.read(slot, record, into)
                assert (bytes(into[:size]) if size >= 0 else None) == want, (identity, record)
            used += sum(len(data) + HEAD_AND_TAIL for data in self.known[identity].values())
        assert store.used_bytes == used
        names = sorted(store.fs.names(self.folder))
        files = sum(len(records) for records in self.known.values())
        assert len(names) == files, names
        assert store.left == 0


def run(folder, operations, fs=None):
    twin = Twin(folder, fs)
    for name, a, b, c in operations:
        twin.do(name, a, b, c)
    twin.reopen(False)
    twin.check()
    return twin
