"""The DMA controller of an emulated rp2 board: what `rp2.DMA` is there.

Channels obey what the chip's do: chains, null triggers, rings, transfers of 1, 2 and 4 bytes on addresses of
that multiple, steps of either side, the aliases of their registers, writes of one channel to another's. An
address is the low half of the process's own; flash is where the chip has it, and so are the registers. What
is nowhere, or is not aligned, ends a transfer as a bus error does.

Time is the emulated bus's: a channel takes a cycle a transfer, that of a read from flash more, and some to
begin. It goes on when a program looks at a channel, by POLL_CYCLES or by what has passed since the last look;
`held` lets step() alone move it on. Not here: paced channels (they never go on), the sniffer, interrupts
other than an irq() handler, called when a program next looks.
"""

from array import array
from time import ticks_diff, ticks_us

import micropython
from emu import board, flash
from emu.chip_uctypes import addressof as chip_address
from emu.chip_uctypes import real as process
from micropython import const

addressof = process.addressof

POLL_CYCLES = 64  # that a look at a channel takes
FLASH_CYCLES = 40  # of a read from flash: 20 clocks of the bus at half the core's
BEGIN_CYCLES = 8  # from a trigger to the first transfer, and from the last to what it triggers

cycles = 0  # that the bus has been busy
overhead_cycles = 0  # of them, those of beginnings
transfers = 0
begins = 0
errors = 0
held = False  # whether step() alone lets time pass

_READ = const(0)
_WRITE = const(1)
_RELOAD = const(2)
_CTRL = const(3)
_LEFT = const(4)
_BUSY = const(5)
_FIELDS = const(6)

# Which field each register is: the aliases have them in other orders.
_ORDER = bytes((0, 1, 2, 3, 3, 0, 1, 2, 3, 2, 0, 1, 3, 1, 2, 0))
_REGISTERS = const(16)
_CHIP_REGISTERS = const(0x50000000)
_CHIP_FLASH = const(0x10000000)
_CLOSED = const(255)
_EBUSY = const(16)
_FREE_RUNNING = const(0x3F)
_SLICE = const(16)  # transfers of a channel before the next one's turn

_NEW = board.CHIP == "RP2350"
CHANNELS = 16 if _NEW else 12
# Bits of CTRL: name, where an RP2040 has them, where an RP2350, how many, whether only the chip writes them.
_FIELDS_OF_CTRL = (
    ("enable", 0, 0, 1, 0),
    ("high_pri", 1, 1, 1, 0),
    ("size", 2, 2, 2, 0),
    ("inc_read", 4, 4, 1, 0),
    ("inc_read_rev", None, 5, 1, 0),
    ("inc_write", 5, 6, 1, 0),
    ("inc_write_rev", None, 7, 1, 0),
    ("ring_size", 6, 8, 4, 0),
    ("ring_sel", 10, 12, 1, 0),
    ("chain_to", 11, 13, 4, 0),
    ("treq_sel", 15, 17, 6, 0),
    ("irq_quiet", 21, 23, 1, 0),
    ("bswap", 22, 24, 1, 0),
    ("sniff_en", 23, 25, 1, 0),
    ("busy", 24, 26, 1, 1),
    ("write_err", 29, 29, 1, 0),
    ("read_err", 30, 30, 1, 0),
    ("ahb_err", 31, 31, 1, 1),
)
_BITS = [(f[0], f[2] if _NEW else f[1], f[3], f[4]) for f in _FIELDS_OF_CTRL if _NEW or f[1] is not None]
_AT = {name: at for name, at, _, _ in _BITS}
_BUSY_AT, _CHAIN_AT, _TREQ_AT, _QUIET_AT = _AT["busy"], _AT["chain_to"], _AT["treq_sel"], _AT["irq_quiet"]
_READ_AT, _WRITE_AT = _AT["inc_read"], _AT["inc_write"]
_READ_BACK_AT, _WRITE_BACK_AT = _AT.get("inc_read_rev", 31), _AT.get("inc_write_rev", 31)
_RING_AT, _SEL_AT, _SWAP_AT = _AT["ring_size"], _AT["ring_sel"], _AT["bswap"]
_COUNT_MASK = (1 << 28) - 1 if _NEW else (1 << 32) - 1
_WRITE_ERROR, _READ_ERROR, _ERROR = 1 << 29, 1 << 30, 1 << 31

_state = array("l", bytes(8 * _FIELDS * CHANNELS))
_claimed = bytearray(CHANNELS)
_handlers = [None] * CHANNELS
# What a program sees of the registers, on 64 bytes a channel, and what it last saw.
_room = array("I", bytes(64 * (CHANNELS + 1)))
_block_at = addressof(_room) + 63 & -64
_block = memoryview(_room)[(_block_at - addressof(_room)) // 4 :]
_seen = array("I", bytes(64 * CHANNELS))
_stored = array("l", bytes(8 * _REGISTERS))
_last_us = ticks_us()
_heap_from = _heap_to = 0
_turn = 0  # of the channels


def _find_heap():
    """The mapping that this process's heap lies in: what a wild address is told by."""
    global _heap_from, _heap_to
    here = addressof(_room)
    with open("/proc/self/maps") as maps:
        for line in maps:
            first, last = line.split(" ", 1)[0].split("-")
            if int(first, 16) <= here < int(last, 16):
                _heap_from, _heap_to = int(first, 16), int(last, 16)
                return
    _heap_from, _heap_to = here - (1 << 20), here + (1 << 20)


_find_heap()


@micropython.viper
def _word(at: int) -> int:
    return int(uint(ptr32(at)[0]))


@micropython.viper
def _put_word(at: int, value: int):
    ptr32(at)[0] = value


@micropython.viper
def _value(at: int, size: int) -> int:
    if size == 0:
        return int(ptr8(at)[0])
    if size == 1:
        return int(ptr16(at)[0])
    return int(uint(ptr32(at)[0]))


@micropython.viper
def _move(to: int, at: int, how: int, n: int):
    """n transfers of a size, how & 3; bit 2: the read side steps, 4: the other one; 6: bytes are swapped."""
    size = how & 3
    step = 1 << size
    read_step = step if how & 4 else 0
    write_step = step if how & 16 else 0
    while n > 0:
        n -= 1
        if size == 2:
            x = int(ptr32(at)[0])
            if how & 64:
                x = (x & 255) << 24 | (x >> 8 & 255) << 16 | (x >> 16 & 255) << 8 | (x >> 24 & 255)
            ptr32(to)[0] = x
        elif size == 1:
            x = int(ptr16(at)[0])
            if how & 64:
                x = (x & 255) << 8 | x >> 8
            ptr16(to)[0] = x
        else:
            ptr8(to)[0] = int(ptr8(at)[0])
        at += read_step
        to += write_step


@micropython.native
def _memory(at, n, write):
    """Where n bytes from an address of the bus on lie in this process; 0: nowhere."""
    if _CHIP_REGISTERS <= at and at + n <= _CHIP_REGISTERS + 64 * CHANNELS:
        return _block_at + at - _CHIP_REGISTERS
    full = (_heap_from & -(1 << 32)) | at
    if full < _heap_from:
        full += 1 << 32
    if full + n <= _heap_to:
        return 0 if write and _in_flash(full) else full
    begin = at - _CHIP_FLASH - flash.storage_at
    if not write and 0 <= begin and begin + n <= flash.size:
        return addressof(flash.image) + begin
    return 0


@micropython.native
def _in_flash(at):
    begin = at - addressof(flash.image)
    return 0 <= begin < flash.size


@micropython.native
def _show(channel):
    """Have a program see a channel's registers."""
    s = channel * _FIELDS
    at = channel * _REGISTERS
    k = 0
    while k < _REGISTERS:
        field = _ORDER[k]
        if field == _RELOAD:
            value = _state[s + _LEFT]
        else:
            value = _state[s + field]
            if field == _CTRL:
                value |= _state[s + _BUSY] << _BUSY_AT
                if value & (_READ_ERROR | _WRITE_ERROR):
                    value |= _ERROR
        _seen[at + k] = value
        _put_word(_block_at + 4 * (at + k), value)
        k += 1


@micropython.native
def _trigger(channel):
    global cycles, overhead_cycles, begins
    s = channel * _FIELDS
    if _state[s + _CTRL] & 1 and not _state[s + _BUSY]:
        _state[s + _LEFT] = _state[s + _RELOAD]
        _state[s + _BUSY] = 1
        begins += 1
        cycles += BEGIN_CYCLES
        overhead_cycles += BEGIN_CYCLES
        if not _state[s + _LEFT]:
            _finish(channel)


@micropython.native
def _finish(channel):
    """The last transfer is done, or there is none."""
    s = channel * _FIELDS
    control = _state[s + _CTRL]
    _state[s + _BUSY] = 0
    if not control >> _QUIET_AT & 1:
        _interrupt(channel)
    _show(channel)
    chain = control >> _CHAIN_AT & 15
    if chain != channel and chain < CHANNELS:
        _trigger(chain)
        _show(chain)


def _interrupt(channel):
    handler = _handlers[channel]
    if handler is not None:
        handler[0](handler[1])


@micropython.native
def _store(channel, k, value):
    """Write register k of a channel, as a program or a channel does."""
    s = channel * _FIELDS
    field = _ORDER[k]
    if field == _CTRL:
        kept = _state[s + _CTRL] & (_READ_ERROR | _WRITE_ERROR)
        value_errors = value & (_READ_ERROR | _WRITE_ERROR)
        _state[s + _CTRL] = (
            value & ~(_READ_ERROR | _WRITE_ERROR | _ERROR | 1 << _BUSY_AT) | kept & ~value_errors
        )
    elif field == _RELOAD:
        _state[s + _RELOAD] = value & _COUNT_MASK
    else:
        _state[s + field] = value
    if k & 3 == 3:
        if value:
            _trigger(channel)
        elif _state[s + _CTRL] >> _QUIET_AT & 1:
            _interrupt(channel)
    _show(channel)


@micropython.native
def _take_stores():
    """Take what a program has written to the registers' memory since it last saw them."""
    channel = 0
    while channel < CHANNELS:
        if _claimed[channel]:
            at = channel * _REGISTERS
            changed = k = 0
            while k < _REGISTERS:
                value = _word(_block_at + 4 * (at + k))
                if value != _seen[at + k]:
                    changed |= 1 << k
                    _stored[k] = value
                k += 1
            k = 0
            while changed >> k:
                if changed >> k & 1:
                    _store(channel, k, _stored[k])
                k += 1
        channel += 1


@micropython.native
def _fault(channel, bit):
    """A bus error: the channel stops where it is."""
    global errors
    s = channel * _FIELDS
    _state[s + _CTRL] |= bit
    _state[s + _BUSY] = 0
    errors += 1
    _interrupt(channel)
    _show(channel)


@micropython.native
def _stepped(at, by, mask):
    """The address after a transfer; mask: of the bits that change, of a ring."""
    if mask:
        return at & ~mask | at + by & mask
    return at + by & 0xFFFFFFFF


@micropython.native
def _run(channel, most):
    """Up to so many transfers of a busy channel; the cycles they take."""
    s = channel * _FIELDS
    control = _state[s + _CTRL]
    size = control >> 2 & 3
    step = 1 << size
    if size == 3 or _state[s + _READ] & step - 1:
        _fault(channel, _READ_ERROR)
        return 1
    if _state[s + _WRITE] & step - 1:
        _fault(channel, _WRITE_ERROR)
        return 1
    n = min(_state[s + _LEFT], most)
    spent = _bulk(s, control, n)
    if not spent:
        spent = _one_by_one(channel, control, n)
    if _state[s + _BUSY] and not _state[s + _LEFT]:
        _finish(channel)
    else:
        _show(channel)
    return spent


@micropython.native
def _by(control, at, back_at):
    """By how much a side steps."""
    step = 1 << (control >> 2 & 3)
    if not control >> at & 1:
        return 0
    return -step if _NEW and control >> back_at & 1 else step


@micropython.native
def _bulk(s, control, n):
    """n transfers at once, where no ring, register or bus error is met; their cycles, or 0: none is done."""
    global transfers
    read_by = _by(control, _READ_AT, _READ_BACK_AT)
    write_by = _by(control, _WRITE_AT, _WRITE_BACK_AT)
    if control >> _RING_AT & 15 or read_by < 0 or write_by < 0:
        return 0
    size = control >> 2 & 3
    source = _memory(_state[s + _READ], n * read_by or 1 << size, False)
    to = _memory(_state[s + _WRITE], n * write_by or 1 << size, True)
    if not source or not to or _block_at <= to < _block_at + 64 * CHANNELS:
        return 0
    _move(to, source, size | (read_by != 0) << 2 | (write_by != 0) << 4 | (control >> _SWAP_AT & 1) << 6, n)
    transfers += n
    _state[s + _READ] = _state[s + _READ] + n * read_by & 0xFFFFFFFF
    _state[s + _WRITE] = _state[s + _WRITE] + n * write_by & 0xFFFFFFFF
    _state[s + _LEFT] -= n
    return n * (FLASH_CYCLES if _in_flash(source) else 1)


@micropython.native
def _one_by_one(channel, control, n):
    global transfers
    s = channel * _FIELDS
    size = control >> 2 & 3
    read_by = _by(control, _READ_AT, _READ_BACK_AT)
    write_by = _by(control, _WRITE_AT, _WRITE_BACK_AT)
    ring = control >> _RING_AT & 15
    mask = (1 << ring) - 1 if ring else 0
    sel = control >> _SEL_AT & 1
    spent = 0
    while n > 0:
        source = _memory(_state[s + _READ], 1 << size, False)
        to = _memory(_state[s + _WRITE], 1 << size, True)
        if not source or not to:
            _fault(channel, _WRITE_ERROR if source else _READ_ERROR)
            return spent + 1
        value = _value(source, size)
        here = to - _block_at
        spent += FLASH_CYCLES if _in_flash(source) else 1
        transfers += 1
        n -= 1
        _state[s + _READ] = _stepped(_state[s + _READ], read_by, 0 if sel else mask)
        _state[s + _WRITE] = _stepped(_state[s + _WRITE], write_by, mask if sel else 0)
        _state[s + _LEFT] -= 1
        if 0 <= here < 64 * CHANNELS:
            # Registers take any transfer as a whole word, with what is narrow in all its lanes.
            if control >> _SWAP_AT & 1 and size:
                value = (value & 255) << 8 | value >> 8 if size == 1 else _swapped(value)
            value = value * (0x01010101 if size == 0 else 0x00010001 if size == 1 else 1)
            _store(here >> 6, here >> 2 & 15, value)
        else:
            _move(to, source, size | (control >> _SWAP_AT & 1) << 6, 1)
    return spent


def _swapped(value):
    return (value & 255) << 24 | (value >> 8 & 255) << 16 | (value >> 16 & 255) << 8 | value >> 24


@micropython.native
def step(budget):
    """Let so many cycles of the bus pass, to within a transfer; False if no channel had anything to do."""
    global cycles, _turn
    some = False
    while budget > 0:
        busy = 0
        while busy < CHANNELS:
            s = _turn * _FIELDS
            control = _state[s + _CTRL]
            if _state[s + _BUSY] and control & 1 and control >> _TREQ_AT & 63 == _FREE_RUNNING:
                break
            _turn = (_turn + 1) % CHANNELS
            busy += 1
        if busy == CHANNELS:
            return some
        some = True
        before = overhead_cycles
        spent = _run(_turn, min(_SLICE, budget))
        cycles += spent
        budget -= spent + overhead_cycles - before
        _turn = (_turn + 1) % CHANNELS
    return some


@micropython.native
def _look():
    """A program looks at a channel: what it has written counts, and time passes."""
    global _last_us
    _take_stores()
    now = ticks_us()
    passed = ticks_diff(now, _last_us) * (board.CLOCK_HZ // 1000000)
    _last_us = now
    if not held:
        step(max(POLL_CYCLES, min(passed, 1 << 20)))


def _address(of):
    """What a register is given: the low word of where a buffer lies, or a number."""
    if isinstance(of, int):
        return of & 0xFFFFFFFF
    return chip_address(of) & 0xFFFFFFFF


class DMA:
    """One channel, as the port's class of that name is."""

    def __init__(self):
        self.channel = _CLOSED
        for channel in range(CHANNELS):
            if not _claimed[channel]:
                _claimed[channel] = 1
                self.channel = channel
                _show(channel)
                return
        raise OSError(_EBUSY)

    def __str__(self):
        return "DMA(%d)" % self.channel

    __repr__ = __str__

    @micropython.native
    def _open(self):
        if self.channel == _CLOSED:
            raise ValueError("channel closed")
        _look()
        return self.channel * _FIELDS

    @micropython.native
    def _set(self, k, value):
        self._open()
        _store(self.channel, k, value)

    @property
    def read(self):
        return _state[self._open() + _READ]

    @read.setter
    def read(self, to):
        self._set(0, _address(to))

    @property
    def write(self):
        return _state[self._open() + _WRITE]

    @write.setter
    def write(self, to):
        self._set(1, _address(to))

    @property
    def count(self):
        return _state[self._open() + _LEFT]

    @count.setter
    def count(self, to):
        self._set(2, to & 0xFFFFFFFF)

    @property
    def ctrl(self):
        self._open()
        return _word(_block_at + 4 * (self.channel * _REGISTERS + 3))

    @ctrl.setter
    def ctrl(self, to):
        self._set(4, to & 0xFFFFFFFF)

    @property
    def registers(self):
        """A view of 16 words: of the registers themselves, and another one each time, as on the chip."""
        self._open()
        at = self.channel * _REGISTERS
        return _block[at : at + _REGISTERS]

    def config(self, **to):
        self._open()
        trigger = to.pop("trigger", False)
        known = [name for name in ("read", "write", "count", "ctrl") if name in to]
        if len(known) != len(to):
            raise TypeError("extra keyword arguments given")
        for name in known:
            value = to[name] if name in ("count", "ctrl") else _address(to[name])
            _store(self.channel, {"read": 0, "write": 1, "count": 2, "ctrl": 4}[name], value & 0xFFFFFFFF)
        if trigger:
            _trigger(self.channel)
            _show(self.channel)

    def active(self, to=None):
        s = self._open()
        if to is not None:
            if to:
                _trigger(self.channel)
            else:
                _state[s + _BUSY] = 0
            _show(self.channel)
        return bool(_state[s + _BUSY])

    def pack_ctrl(self, *wrong, default=None, **fields):
        if wrong:
            raise TypeError("pack_ctrl only takes keyword arguments")
        value = default
        if value is None:
            value = 1 | 2 << 2 | 1 << _READ_AT | 1 << _WRITE_AT | _FREE_RUNNING << _TREQ_AT | 1 << _QUIET_AT
            value |= (self.channel & 15) << _CHAIN_AT
        for name, at, bits, fixed in _BITS:
            if name in fields:
                field = int(fields.pop(name))
                if not fixed:
                    mask = (1 << bits) - 1
                    if field != field & mask:
                        raise ValueError("bad field value")
                    value = value & ~(mask << at) | field << at
        if fields:
            raise TypeError()
        return value & 0xFFFFFFFF

    @staticmethod
    def unpack_ctrl(value):
        return {name: value >> at & (1 << bits) - 1 for name, at, bits, _ in _BITS}

    def irq(self, handler=None, hard=False):
        _handlers[self.channel] = None if handler is None else (handler, self)

    def close(self):
        if self.channel != _CLOSED:
            _handlers[self.channel] = None
            _claimed[self.channel] = 0
            self.channel = _CLOSED

    __del__ = close
