"""A start: find what there is in the folder. Transient (mpy_kv/transient.py)."""

from .store import (
    BASE_AT,
    BORN_AT,
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
    gone = []
    if temporary:
        _doubled(store, numbers, gone)
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
        try:
            store.fs.remove(store.folder + "/" + TEMPORARY)
        except OSError:
            pass
    _bounds(store)
    store.opened = True
    return store


def _listed(store):
    """Numbers of the names that are as the store's, and whether there is a temporary."""
    try:
        store.fs.mkdir(store.folder)
    except OSError:
        pass  # it is there, or listing it tells
    numbers = []
    temporary = False
    for name in store.fs.names(store.folder):
        name = name.lower()  # FAT may keep its own
        if name == TEMPORARY:
            temporary = True
        elif len(name) == 12 and name.endswith(".kvr"):
            try:
                number = int(name[:8], 16)
            except ValueError:
                continue
            if 0 <= number <= MASK and "%08x" % number == name[:8]:
                numbers.append(number)
    return numbers, temporary


def _doubled(store, numbers, gone):
    """FAT renames by a second name for the same bytes, of which the first is then removed. A cut in between
    leaves both, and to remove one frees the bytes of the other: so both go. put() had not returned."""
    try:
        f = store.fs.open(store.folder + "/" + TEMPORARY, "rb")
        try:
            found = store.scan_head(f)
        finally:
            f.close()
    except OSError:
        return
    if found >= 0 and store.told(NUMBER_AT) in numbers:
        numbers.remove(store.told(NUMBER_AT))
        gone.append(store.told(NUMBER_AT))


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
    if slot < 0:
        slot = _free(store)
        if slot < 0:
            store.left += 1  # more sequences than slots: another start may have more
            return
        store.used[slot] = 1
        store.identity[slot] = identity
        store.born[slot] = born
        store.base[slot] = store.told(BASE_AT)
        store.count[slot] = store.told(COUNT_AT)
    elif born != store.born[slot] or not store.base[slot] <= record < store.count[slot]:
        gone.append(number)
        return
    if store.has(slot, record):
        gone.append(number)
    elif store.first[store.slots] >= store.blocks:
        store.left += 1
    else:
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
