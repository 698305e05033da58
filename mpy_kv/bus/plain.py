"""What the kernels of the DMA queue do, in plain Python. On boards with native code viper.py takes its place.

push(), push_rows() and push_slots() are methods, of Queue and Rows. What they refuse has changed nothing.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

# fields: dma, dma region, descriptor, stride, planes, plane, copying
_ROOM = const(0)
_FILLED = const(1)
_BANK = const(2)
_OTHER = const(3)
_RUN_READ = const(4)
_RUN_WRITE = const(5)
_RUN_BYTES = const(6)
_RUN_FROM = const(7)
_RUN_TO = const(8)
_SPARE = const(9)
_JOINED = const(10)
_REGIONS = const(11)
_REGIONS_END = const(12)
_CONTROL = const(13)
_START = const(0)
_END = const(1)
_BASE = const(2)
_WRITABLE = const(3)
_REGION_WORDS = const(4)
_READ_ADDR = const(0)
_WRITE_ADDR = const(1)
_TRANS_COUNT = const(2)
_CTRL = const(3)
_DESCRIPTOR_WORDS = const(4)
_ROW_BYTES = const(0)
_READ_STEP = const(1)
_WRITE_STEP = const(2)
_ALL_LAYERS = const(0)
_ALL_SINKS = const(1)
_RING = const(2)
_TOKENS = const(3)
_PACKED = const(4)
_BACK = const(5)
_AT_SLOT = const(6)
_PLAN_READ = const(7)
_PLAN_WRITE = const(8)
_GROUPS = const(9)
_PLANE_READ = const(0)
_PLANE_WRITE = const(1)
_SLOT_BYTES = const(2)
_PLANES = const(3)
_READ_GAP = const(4)
_WRITE_GAP = const(5)
_GROUP_WORDS = const(6)
_RECORD = const(0)
_COPIED = const(1)
# end of fields


def base(words, buffer, r):
    """Whether words can tell where the buffer of region r lies. Here addresses are the queue's own."""
    return 1


def region(words, at):
    """Where in words the region of an address is; behind the regions stands one that ends at 2^30."""
    r = words[_REGIONS]
    while at >= words[r + _END]:
        r += _REGION_WORDS
    return r


def place(words, plan, at, back):
    """Where a side of a plan is, by an address of the queue: back: the one that is written."""
    plan[_PLAN_WRITE if back else _PLAN_READ] = at + words[region(words, at) + _BASE]


def _holds(words, r, at, nbytes):
    return words[r + _START] <= at and at + nbytes <= words[r + _END]


def _both(words, r, w):
    """Whether they are regions of the queue, the second one's bytes to be written."""
    return r < words[_REGIONS_END] and words[w + _WRITABLE]


def shift(read, write, nbytes):
    """Bytes of a transfer as a power of two: the most that both sides and the length allow."""
    x = read | write | nbytes
    return 0 if x & 1 else 1 if x & 2 else 2


def _put(words, i, read, write, nbytes, size):
    """Descriptor i of the bank that is filled."""
    p = words[_BANK] + _DESCRIPTOR_WORDS * i
    words[p + _READ_ADDR] = read
    words[p + _WRITE_ADDR] = write
    words[p + _TRANS_COUNT] = nbytes >> size
    words[p + _CTRL] = words[_CONTROL + size]


def _ran(words, end, to_end, nbytes):
    words[_RUN_READ] = end
    words[_RUN_WRITE] = to_end
    words[_RUN_BYTES] = nbytes


def push(self, read, write, nbytes):
    """One run, joined with the one before if it goes on where that ends, or ends where that begins."""
    words = self.words
    if (read | write | nbytes) >> 30:
        self.refuse(read, write, nbytes)
    if nbytes == 0:
        return True
    r, w = region(words, read), region(words, write)
    if not _both(words, r, w):
        self.refuse(read, write, nbytes)
    if words[_RUN_FROM] != r or words[_RUN_TO] != w:
        words[_RUN_FROM], words[_RUN_TO], words[_RUN_BYTES] = r, w, 0
    if not _holds(words, r, read, nbytes) or not _holds(words, w, write, nbytes):
        self.refuse(read, write, nbytes)
    if 0 < write - read < nbytes:
        self.refuse(read, write, nbytes)
    n, end, to_end = words[_RUN_BYTES], read + nbytes, write + nbytes
    filled = words[_FILLED]
    size = shift(read, write, nbytes)
    if n:
        last = words[_BANK] + _DESCRIPTOR_WORDS * (filled - 1)
        separate = words[last + _TRANS_COUNT] + (nbytes >> size)
        n += nbytes
        begin, to = read, write
        if read + n == words[_RUN_READ] and write + n == words[_RUN_WRITE]:
            end, to_end = read + n, write + n
        elif read == words[_RUN_READ] and write == words[_RUN_WRITE]:
            begin, to = words[last + _READ_ADDR], words[last + _WRITE_ADDR]
        else:
            n = 0
        if n and (r != w or abs(write - read) >= n):
            joined = shift(begin, to, n)
            if n >> joined <= separate + words[_SPARE]:
                _put(words, filled - 1, begin, to, n, joined)
                _ran(words, end, to_end, n)
                words[_JOINED] = words[_JOINED] + 1 & 0xFFFFFFFF
                return True
        end, to_end = read + nbytes, write + nbytes
    if filled >= words[_ROOM]:
        return False
    _put(words, filled, read, write, nbytes, size)
    words[_FILLED] = filled + 1
    _ran(words, end, to_end, nbytes)
    return True


def push_rows(self, read, write, rows):
    """Rows of one length at steps: a descriptor each, all of them or none."""
    words, how = self.words, self.how
    nbytes, read_step, write_step = how[_ROW_BYTES], how[_READ_STEP], how[_WRITE_STEP]
    if (read | write | rows) >> 30:
        self.refuse(read, write, nbytes)
    if rows == 0:
        return True
    r, w = region(words, read), region(words, write)
    if not _both(words, r, w) or rows > words[_ROOM]:
        self.refuse(read, write, nbytes)
    filled = words[_FILLED]
    if filled + rows > words[_ROOM]:
        return False
    size = shift(read | read_step, write | write_step, nbytes)
    for i in range(rows):
        if not _holds(words, r, read, nbytes) or not _holds(words, w, write, nbytes):
            self.refuse(read, write, nbytes)
        if 0 < write - read < nbytes:
            self.refuse(read, write, nbytes)
        _put(words, filled + i, read, write, nbytes, size)
        read += read_step
        write += write_step
    words[_FILLED] = filled + rows
    words[_RUN_FROM], words[_RUN_TO] = r, w
    _ran(words, read - read_step + nbytes, write - write_step + nbytes, nbytes)
    return True


def push_slots(self, layer, first, n):
    """Slots of each plane of a layer. All of them or none."""
    words, plan = self.words, self.plan
    slot, sinks, ring = plan[_AT_SLOT], plan[_ALL_SINKS], plan[_RING]
    there = sinks + (first - sinks) % ring if ring and first > sinks else first
    rest = there + n - sinks - ring
    if min(layer, first, n, plan[_ALL_LAYERS] - 1 - layer, plan[_TOKENS] - slot - n, sinks + ring - n) < 0:
        self.refuse(layer, first, n)
    if rest > 0 and (first < sinks or n > ring):
        self.refuse(layer, first, n)
    made = words[_FILLED]
    for at, to, n in ((there, slot, n - max(rest, 0)), (sinks, slot + n - rest, rest)):
        if n > 0:
            made = _group_by_group(words, plan, layer, at, to, n, made)
            if made < 0:
                return False
    words[_FILLED] = made
    words[_RUN_BYTES] = 0
    return True


def _group_by_group(words, plan, layer, there, slot, n, made):
    """n slots of each plane from slot `there` of the cache on; how many descriptors there are then, or -1."""
    slots = [there, slot if plan[_PACKED] else there]
    if plan[_BACK]:
        slots.reverse()
    first = _GROUPS + layer
    e = plan[first]
    first += 1
    last = plan[first]
    while e < last:
        size, planes = plan[e + _SLOT_BYTES], plan[e + _PLANES]
        read = plan[_PLAN_READ] + plan[e + _PLANE_READ] + slots[0] * size
        write = plan[_PLAN_WRITE] + plan[e + _PLANE_WRITE] + slots[1] * size
        nbytes = n * size
        read_step, write_step = plan[e + _READ_GAP], plan[e + _WRITE_GAP]
        e += _GROUP_WORDS
        if read_step == write_step == nbytes:
            nbytes *= planes
            planes = 1
        if made + planes > words[_ROOM]:
            return -1
        size = shift(read | read_step, write | write_step, nbytes)
        for i in range(planes):
            _put(words, made + i, read + i * read_step, write + i * write_step, nbytes, size)
        made += planes
    return made


def close(words):
    """End the chain in the bank that is filled, and take the other one; how many descriptors it has."""
    n = words[_FILLED]
    p = words[_BANK] + _DESCRIPTOR_WORDS * n
    for i in range(_DESCRIPTOR_WORDS):
        words[p + i] = 0
    words[_BANK], words[_OTHER] = words[_OTHER], words[_BANK]
    words[_FILLED] = words[_RUN_BYTES] = 0
    return n


def copy(words, at, limit, regions):
    """Go on with a chain for at most `limit` bytes; how many it was, 0 behind its end."""
    done = 0
    while done < limit:
        p = at[_RECORD]
        control = words[p + _CTRL]
        if not control:
            break
        size = control >> 2 & 3
        copied = at[_COPIED]
        n = (words[p + _TRANS_COUNT] << size) - copied
        if n > limit - done:
            n = limit - done >> size << size
            if not n:
                break
            at[_COPIED] = copied + n
        else:
            at[_COPIED] = 0
            at[_RECORD] = p + _DESCRIPTOR_WORDS
        done += n
        source, begin = _place(regions, words[p + _READ_ADDR] + copied)
        to, first = _place(regions, words[p + _WRITE_ADDR] + copied)
        to[first : first + n] = source[begin : begin + n]
    return done


def _place(regions, at):
    """The view of the region of an address, and how far in it that is."""
    i = 0
    while at >= len(regions[i]):
        at -= len(regions[i])
        i += 1
    return regions[i], at
