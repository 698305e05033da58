"""A start: find what there is in the folder. Transient (mpy_kv/transient.py)."""

from .store import (
    BASE_AT,
    BORN_AT,
    COPY,
    COUNT_AT,
    DAMAGED,
    HEAD,
    IDENTITY_AT,
    MASK,
    NUMBER_AT,
    RECORD_AT,
    STRANGE,
    TAIL,
    TEMPORARY,
    newer,
)


def open_store(store, quick=False):
    """Find its sequences, and remove what no program will use: temporaries, files of its own that are damaged
    or replaced. All else is left alone. quick: only headers and lengths are looked at; a damaged file is then
    found when it is read. OSError where the folder cannot be listed, and for no content of it.
    """
    store.reset()
    numbers, temporary = _listed(store)
    for name, other in ((TEMPORARY, COPY), (COPY, TEMPORARY)):
        if name in temporary:
            _doubled(store, numbers, name, other)
    gone = []
    own = []
    for number in numbers:
        found = _look(store, number, quick)
        if found >= 0:
            own.append(number)
        elif found == DAMAGED:
            gone.append(number)
        else:
            store.left += 1
    if own:
        newest = own[0]
        for number in own:
            if newer(number, newest):
                newest = number
        store.number = newest
        own.sort(key=lambda number: (newest - number) & MASK)
    for number in own:
        _take(store, number, gone)
    for number in gone:
        store._remove(number)
    if temporary:
        for name in (TEMPORARY, COPY):
            try:
                store.fs.remove(store.folder + "/" + name)
            except OSError:
                pass
    _bounds(store)
    store.opened = True
    return store


def _listed(store):
    """Numbers of the names that are as the store's, and the temporaries that are there."""
    try:
        store.fs.mkdir(store.folder)
    except OSError:
        pass  # it is there, or listing it tells
    numbers = []
    temporary = []
    for name in store.fs.names(store.folder):
        name = name.lower()  # FAT may keep its own
        if name in (TEMPORARY, COPY):
            temporary.append(name)
        elif len(name) == 12 and name.endswith(".kvr"):
            try:
                number = int(name[:8], 16)
            except ValueError:
                continue
            if 0 <= number <= MASK and "%08x" % number == name[:8]:
                numbers.append(number)
    return numbers, temporary


def _doubled(store, numbers, name, other):
    """FAT renames by a second name for the same bytes, of which the first is then removed. A cut in between
    leaves both, and to remove one frees the bytes of the other: so there is a copy before both go. Where it
    cannot be made, what the version had replaced counts: put() had not returned."""
    beside = store.folder + "/" + name
    copy = store.folder + "/" + other
    size = store.scan(beside, None, 0)
    number = store.told(NUMBER_AT)
    if size < 0 or number not in numbers:
        return
    target = store.path(number)
    told = bytes(store._head), bytes(store._view[:TAIL])
    if store.scan(target, None, 0) != size or (bytes(store._head), bytes(store._view[:TAIL])) != told:
        return  # not the same bytes
    try:
        _copy(store, beside, copy)
        good = store.scan(copy, None, 0) == size
    except OSError:
        good = False
    for path in (target, beside):
        try:
            store.fs.remove(path)
        except OSError:
            pass
    try:
        if good and store.fs.size(target) < 0:
            store.fs.rename(copy, target)
            store.fs.sync(store.folder)
            return
    except OSError:
        pass
    numbers.remove(number)


def _copy(store, source, to):
    f = store.fs.open(source, "rb")
    try:
        g = store.fs.open(to, "wb")
        try:
            n = len(store._chunk)
            while n == len(store._chunk):
                n = store._fill(f, store._view)
                store._emit(g, store._view[:n])
            store.fs.flush(g)
        finally:
            g.close()
    finally:
        f.close()


def _look(store, number, quick):
    """Bytes of the record in a file, or why it is not taken. Damage is looked at twice: storage may read as
    something else once."""
    path = store.path(number)
    found = DAMAGED
    for _ in range(2):
        if quick:
            found = _head(store, path)
        else:
            found = store.scan(path, None, 0)
        if found != DAMAGED:
            break
    if found >= 0 and store.told(NUMBER_AT) != number:
        return STRANGE  # a copy that somebody made
    return found


def _head(store, path):
    try:
        f = store.fs.open(path, "rb")
        try:
            size = store.scan_head(f)
        finally:
            f.close()
    except OSError:
        return -1
    return size if size < 0 or store.fs.size(path) == HEAD + size + TAIL else DAMAGED


def _take(store, number, gone):
    """A file of the store's own, newer ones before it: the newest of a sequence tells what it has."""
    size = _head(store, store.path(number))
    if size < 0:
        store.left += 1
        return
    identity, born, record = store.told(IDENTITY_AT), store.told(BORN_AT), store.told(RECORD_AT)
    slot = store.find(identity)
    if slot >= 0:
        inside = store.base[slot] <= record < store.count[slot]
        if born != store.born[slot] or not inside or store.has(slot, record):
            gone.append(number)
            return
    else:
        slot = _free(store)
    if slot < 0 or store.first[store.slots] >= store.blocks:
        store.left += 1  # another start may have more slots or entries
        return
    if not store.used[slot]:
        store.used[slot] = 1
        store.identity[slot] = identity
        store.born[slot] = born
        store.base[slot] = store.told(BASE_AT)
        store.count[slot] = store.told(COUNT_AT)
    store._enter(slot, record, number, size)


def _free(store):
    for slot in range(store.slots):
        if not store.used[slot]:
            return slot
    return -1


def _bounds(store):
    """No records are told of, at either end, that are not there."""
    for slot in range(store.slots):
        if store.used[slot]:
            store.base[slot] = store.records[store.first[slot]]
            store.count[slot] = store.records[store.first[slot + 1] - 1] + 1
