"""The kernels of the DMA queue, native: see plain.py for what each does. Loaded by port.load_native.

A run's two sides never lie over each other, so that it may be copied in any order, and read ahead.
Methods are told where their arrays are, which never move: asking an array takes as long as a third of a push.
"""

import micropython
from micropython import const

_WIDE = const(0)

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


@micropython.viper
def base(words: ptr32, buffer: ptr8, r: int) -> int:
    r = int(words) + (r << 2)
    away = int(buffer) - int(words)
    if _WIDE:
        if (away << 32) >> 32 != away:
            return 0
    ptr32(r)[_BASE] = int(buffer) - ptr32(r)[_START]
    return 1


@micropython.viper
def place(words: ptr32, plan: ptr32, at: int, back: int):
    r = int(words) + (words[_REGIONS] << 2)
    while at >= ptr32(r)[_END]:
        r += 4 * _REGION_WORDS
    if back:
        plan[_PLAN_WRITE] = ptr32(r)[_BASE] + at
    else:
        plan[_PLAN_READ] = ptr32(r)[_BASE] + at


@micropython.viper
def push(self, read: int, write: int, nbytes: int) -> bool:
    words = ptr32(int(self.words_at))
    if (read | write | (nbytes - 1)) >> 30:
        if nbytes != 0:
            self.refuse(read, write, nbytes)
        return True
    # Mostly it is where the last one was: no difference is below 0.
    r = int(words) + (words[_RUN_FROM] << 2)
    w = int(words) + (words[_RUN_TO] << 2)
    end = read + nbytes
    to_end = write + nbytes
    x = (read - ptr32(r)[_START]) | (ptr32(r)[_END] - end)
    if (x | (write - ptr32(w)[_START]) | (ptr32(w)[_END] - to_end)) < 0:
        # Behind the regions stands one that ends at 2^30.
        r = int(words) + (words[_REGIONS] << 2)
        w = r
        while read >= ptr32(r)[_END]:
            r += 4 * _REGION_WORDS
        while write >= ptr32(w)[_END]:
            w += 4 * _REGION_WORDS
        if r == int(words) + (words[_REGIONS_END] << 2) or ptr32(w)[_WRITABLE] == 0:
            self.refuse(read, write, nbytes)
        if end > ptr32(r)[_END] or to_end > ptr32(w)[_END]:
            self.refuse(read, write, nbytes)
        words[_RUN_BYTES] = 0
        words[_RUN_FROM] = (r - int(words)) >> 2
        words[_RUN_TO] = (w - int(words)) >> 2
    n = words[_RUN_BYTES]
    if r == w:
        d = write - read
        if d > 0 and d < nbytes:
            self.refuse(read, write, nbytes)
        if d < 0:
            d = 0 - d
        if d < n + nbytes:
            n = 0
    r = ptr32(r)[_BASE] + read
    w = ptr32(w)[_BASE] + write
    x = r | w | nbytes
    shift = 2
    if x & 3:
        shift = 1
        if x & 1:
            shift = 0
    p = int(words) + (words[_BANK] << 2)
    p += words[_FILLED] * (4 * _DESCRIPTOR_WORDS)
    if n > 0:
        n += nbytes
        if read == words[_RUN_READ]:
            if write == words[_RUN_WRITE]:
                read = ptr32(p - 16)[_READ_ADDR]
                write = ptr32(p - 16)[_WRITE_ADDR]
            else:
                n = 0
        elif read + n == words[_RUN_READ] and write + n == words[_RUN_WRITE]:
            read = r
            write = w
        else:
            n = 0
        if n > 0:
            x = read | write | n
            d = 2
            if x & 3:
                d = 1
                if x & 1:
                    d = 0
                if n >> d > ptr32(p - 16)[_TRANS_COUNT] + (nbytes >> shift) + words[_SPARE]:
                    n = 0
            if n > 0:
                ptr32(p - 16)[_READ_ADDR] = read
                ptr32(p - 16)[_WRITE_ADDR] = write
                ptr32(p - 16)[_TRANS_COUNT] = n >> d
                ptr32(p - 16)[_CTRL] = ptr32(int(words) + (d << 2))[_CONTROL]
                if read != r:
                    words[_RUN_READ] = end
                    words[_RUN_WRITE] = to_end
                words[_RUN_BYTES] = n
                words[_JOINED] = words[_JOINED] + 1
                return True
    n = words[_FILLED]
    if n >= words[_ROOM]:
        return False
    words[_FILLED] = n + 1
    words[_RUN_READ] = end
    words[_RUN_WRITE] = to_end
    words[_RUN_BYTES] = nbytes
    ptr32(p)[_READ_ADDR] = r
    ptr32(p)[_WRITE_ADDR] = w
    ptr32(p)[_TRANS_COUNT] = nbytes >> shift
    ptr32(p)[_CTRL] = ptr32(int(words) + (shift << 2))[_CONTROL]
    return True


@micropython.viper
def push_rows(self, read: int, write: int, rows: int) -> bool:
    words = ptr32(int(self.words_at))
    how = ptr32(self.how)
    nbytes = how[_ROW_BYTES]
    if (read | write | rows) >> 30:
        self.refuse(read, write, nbytes)
    if rows == 0:
        return True
    r = int(words) + (words[_REGIONS] << 2)
    w = r
    while read >= ptr32(r)[_END]:
        r += 4 * _REGION_WORDS
    while write >= ptr32(w)[_END]:
        w += 4 * _REGION_WORDS
    if r == int(words) + (words[_REGIONS_END] << 2) or ptr32(w)[_WRITABLE] == 0:
        self.refuse(read, write, nbytes)
    if rows > words[_ROOM] - words[_FILLED]:
        if rows > words[_ROOM]:
            self.refuse(read, write, nbytes)
        return False
    end = ptr32(r)[_END] - nbytes
    most = ptr32(w)[_END] - nbytes
    read_step = how[_READ_STEP]
    write_step = how[_WRITE_STEP]
    if r == w:
        d = write - read
        n = rows
        while n > 0:
            if d > 0 and d < nbytes:
                self.refuse(read, write, nbytes)
            d += write_step - read_step
            n -= 1
    # One width for all of them.
    d = (ptr32(r)[_BASE] + read) | (ptr32(w)[_BASE] + write) | nbytes | read_step | write_step
    shift = 2
    if d & 1:
        shift = 0
    elif d & 2:
        shift = 1
    control = ptr32(int(words) + (shift << 2))[_CONTROL]
    shift = nbytes >> shift
    p = int(words) + (words[_BANK] << 2)
    p += words[_FILLED] * (4 * _DESCRIPTOR_WORDS)
    from_base = ptr32(r)[_BASE]
    to_base = ptr32(w)[_BASE]
    n = rows
    while n > 0:
        if read > end or write > most:
            self.refuse(read, write, nbytes)
        ptr32(p)[_READ_ADDR] = from_base + read
        ptr32(p)[_WRITE_ADDR] = to_base + write
        ptr32(p)[_TRANS_COUNT] = shift
        ptr32(p)[_CTRL] = control
        p += 16
        read += read_step
        write += write_step
        n -= 1
    words[_FILLED] = words[_FILLED] + rows
    words[_RUN_READ] = read - read_step + nbytes
    words[_RUN_WRITE] = write - write_step + nbytes
    words[_RUN_BYTES] = nbytes
    words[_RUN_FROM] = (r - int(words)) >> 2
    words[_RUN_TO] = (w - int(words)) >> 2
    return True


@micropython.viper
def push_slots(self, layer: int, first: int, n: int) -> bool:
    words = ptr32(int(self.words_at))
    plan = ptr32(int(self.plan_at))
    slot = plan[_AT_SLOT]
    sinks = plan[_ALL_SINKS]
    ring = plan[_RING]
    there = first
    if ring > 0 and first - sinks >= ring:
        there = sinks + (first - sinks) % ring
    rest = there + n - sinks - ring
    # Below 0, of any of them, or a ring that ends within tokens that it does not begin with.
    beyond = (plan[_ALL_LAYERS] - 1 - layer) | (plan[_TOKENS] - slot - n) | (sinks + ring - n)
    if (layer | first | n | beyond) < 0:
        self.refuse(layer, first, n)
    if rest > 0:
        if first < sinks or n > ring:
            self.refuse(layer, first, n)
        n -= rest
    g = int(plan) + (layer << 2)
    last = int(plan) + (ptr32(g)[_GROUPS + 1] << 2)
    g = int(plan) + (ptr32(g)[_GROUPS] << 2)
    made = words[_FILLED]
    # From here on `layer`, which lies in a register, is where the next descriptor goes.
    layer = int(words) + (words[_BANK] << 2)
    layer += made * (4 * _DESCRIPTOR_WORDS)
    room = words[_ROOM] - made
    while n > 0:
        from_slot = there
        to_slot = there
        if plan[_PACKED]:
            if plan[_BACK]:
                from_slot = slot
            else:
                to_slot = slot
        e = g
        while e < last:
            nbytes = ptr32(e)[_SLOT_BYTES]
            read = plan[_PLAN_READ] + ptr32(e)[_PLANE_READ] + from_slot * nbytes
            write = plan[_PLAN_WRITE] + ptr32(e)[_PLANE_WRITE] + to_slot * nbytes
            nbytes = n * nbytes
            read_step = ptr32(e)[_READ_GAP]
            write_step = ptr32(e)[_WRITE_GAP]
            planes = ptr32(e)[_PLANES]
            if read_step == nbytes and write_step == nbytes:
                nbytes = planes * nbytes
                planes = 1
            room -= planes
            if room < 0:
                return False
            x = read | write | nbytes | read_step | write_step
            shift = 2
            if x & 1:
                shift = 0
            elif x & 2:
                shift = 1
            control = ptr32(int(words) + (shift << 2))[_CONTROL]
            shift = nbytes >> shift
            while planes > 0:
                ptr32(layer)[_READ_ADDR] = read
                ptr32(layer)[_WRITE_ADDR] = write
                ptr32(layer)[_TRANS_COUNT] = shift
                ptr32(layer)[_CTRL] = control
                layer += 16
                read += read_step
                write += write_step
                planes -= 1
            e += 4 * _GROUP_WORDS
        slot += n
        there = sinks
        n = 0
        if rest > 0:
            n = rest
            rest = 0
    words[_FILLED] = words[_ROOM] - room
    words[_RUN_BYTES] = 0
    return True


@micropython.viper
def close(words: ptr32) -> int:
    n = words[_FILLED]
    p = int(words) + (words[_BANK] << 2)
    p += n * (4 * _DESCRIPTOR_WORDS)
    ptr32(p)[_READ_ADDR] = 0
    ptr32(p)[_WRITE_ADDR] = 0
    ptr32(p)[_TRANS_COUNT] = 0
    ptr32(p)[_CTRL] = 0
    p = words[_BANK]
    words[_BANK] = words[_OTHER]
    words[_OTHER] = p
    words[_FILLED] = 0
    words[_RUN_BYTES] = 0
    return n


@micropython.viper
def copy(words: ptr32, at: ptr32, limit: int, regions) -> int:
    done = 0
    while done < limit:
        p = int(words) + (at[_RECORD] << 2)
        if ptr32(p)[_CTRL] == 0:
            return done
        shift = (ptr32(p)[_CTRL] >> 2) & 3
        copied = at[_COPIED]
        n = (ptr32(p)[_TRANS_COUNT] << shift) - copied
        if n > limit - done:
            n = ((limit - done) >> shift) << shift
            if n == 0:
                return done
            at[_COPIED] = copied + n
        else:
            at[_COPIED] = 0
            at[_RECORD] = at[_RECORD] + _DESCRIPTOR_WORDS
        done += n
        read = ptr32(p)[_READ_ADDR]
        write = ptr32(p)[_WRITE_ADDR]
        if _WIDE:
            near = int(words)
            read = near + ((read - near) << 32 >> 32)
            write = near + ((write - near) << 32 >> 32)
        read += copied
        write += copied
        copied = read + n
        if shift == 2:
            while n >= 16:
                ptr32(write)[0] = ptr32(read)[0]
                ptr32(write)[1] = ptr32(read)[1]
                ptr32(write)[2] = ptr32(read)[2]
                ptr32(write)[3] = ptr32(read)[3]
                read += 16
                write += 16
                n -= 16
            while read < copied:
                ptr32(write)[0] = ptr32(read)[0]
                read += 4
                write += 4
        elif shift == 1:
            while read < copied:
                ptr16(write)[0] = ptr16(read)[0]
                read += 2
                write += 2
        else:
            while read < copied:
                ptr8(write)[0] = ptr8(read)[0]
                read += 1
                write += 1
    return done
