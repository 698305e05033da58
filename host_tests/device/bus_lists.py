"""Random lists of copies for a queue of the bus, and what copies one by one make of them. For all ports."""


class Random:
    def __init__(self, seed):
        self.state = seed * 2654435761 & 0x3FFFFFFF | 1

    def below(self, n):
        self.state = (self.state * 1103515245 + 12345) & 0x3FFFFFFF
        return (self.state >> 8) % n


SENTINEL = 0xEE
SIZES = (160, 96, 256)  # of the regions; the first may only be read


def buffers():
    """Three regions with guards of 8 bytes on either side: (whole, region) each."""
    found = []
    for i, size in enumerate(SIZES):
        whole = bytearray([SENTINEL] * (size + 16))
        if i == 0:
            for k in range(size):
                whole[8 + k] = (k * 7 + 3) & 255
        found.append(whole)
    return found


def regions(wholes, unaligned=0):
    return [memoryview(wholes[i])[8 + unaligned : 8 + unaligned + SIZES[i]] for i in range(3)]


def lists(seed, n=24):
    """(read, write, bytes) of n copies, many of which go on where the last ends, or end where it begins."""
    random = Random(seed)
    starts = (0, SIZES[0], SIZES[0] + SIZES[1])
    unit = (1, 2, 4, 16)[random.below(4)]
    read = write = size = 0
    found = []
    while len(found) < n:
        how = random.below(4)
        new = unit * (1 + random.below(3)) if random.below(8) else 1 + random.below(9)
        if how == 0 and size:
            read, write = read + size, write + size
        elif how == 1 and size:
            read, write = read - new, write - new
        elif how == 2 and found and not random.below(3):
            read, write, new = found[-1]
        else:
            i, j = random.below(3), 1 + random.below(2)
            read = starts[i] + random.below(SIZES[i] // unit) * unit
            write = starts[j] + random.below(SIZES[j] // unit) * unit
        size = new
        if _fits(read, size) and _fits(write, size) and write >= SIZES[0] and not 0 < write - read < size:
            found.append((read, write, size))
        else:
            size = 0
    return found


def _fits(at, size):
    for region in SIZES:
        if at < region:
            return at >= 0 and at + size <= region
        at -= region
    return False


def one_by_one(views, copies):
    for read, write, size in copies:
        source, at = place(views, read)
        part = bytes(source[at : at + size])
        to, at = place(views, write)
        to[at : at + size] = part


def place(views, at):
    i = 0
    while at >= len(views[i]):
        at -= len(views[i])
        i += 1
    return views[i], at


def queued(queue, backend, copies):
    """Push them all, in chains as full as the queue lets them be; how many descriptors and chains it was."""
    descriptors = chains = 0
    for read, write, size in copies:
        while not queue.push(read, write, size):
            descriptors += queue.waiting()
            chains += 1
            while not queue.start(backend):
                pass
    if queue.waiting():
        descriptors += queue.waiting()
        chains += 1
        while not queue.start(backend):
            pass
    while not queue.done():
        pass
    return descriptors, chains
