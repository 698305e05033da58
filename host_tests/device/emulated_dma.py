"""What the emulated rp2.DMA does, by itself: prints what tests compare with what the chip's documents say."""

import sys
from array import array

import rp2
from emu import dma
from uctypes import addressof

NEW = sys.argv[1] == "rp2350"
dma.held = True


def refused(call, *arguments, **named):
    try:
        return call(*arguments, **named)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def done(*channels):
    """Let time pass until none is busy; how many cycles."""
    before = dma.cycles
    for _ in range(1000):
        if not any([channel.active() for channel in channels]):
            return dma.cycles - before
        dma.step(1000)
    return "never"


def claims():
    held = [rp2.DMA() for _ in range(dma.CHANNELS)]
    print(str(held[3]), held[-1].channel, refused(rp2.DMA))
    held[5].close()
    held[5].close()
    print(held[5].channel, refused(held[5].active), refused(lambda: held[5].read))
    again = rp2.DMA()
    print(again.channel)
    for one in held + [again]:
        one.close()


def controls():
    d = rp2.DMA()
    e = rp2.DMA()
    print(sorted(rp2.DMA.unpack_ctrl(e.pack_ctrl()).items()))
    print(hex(e.pack_ctrl()), hex(e.pack_ctrl(size=0, chain_to=d.channel, irq_quiet=0)))
    print(hex(e.pack_ctrl(default=0, ring_size=4, ring_sel=True, busy=1)))
    print(refused(e.pack_ctrl, 1), refused(e.pack_ctrl, size=4), refused(e.pack_ctrl, sizes=1)[:9])
    print(refused(e.config, read=0, reads=1)[:9])
    d.close()
    e.close()


def copies():
    """Each width and step; where the registers are then."""
    d = rp2.DMA()
    source = bytearray(range(1, 65))
    for size, inc_read, inc_write in ((0, 1, 1), (1, 1, 1), (2, 1, 1), (2, 0, 1), (1, 1, 0), (0, 0, 0)):
        to = bytearray(64)
        ctrl = d.pack_ctrl(size=size, inc_read=inc_read, inc_write=inc_write)
        d.config(read=source, write=to, count=5, ctrl=ctrl, trigger=True)
        busy = d.active()
        took = done(d)
        low = (d.read - addressof(source) & 0xFFFFFFFF, d.write - addressof(to) & 0xFFFFFFFF)
        print(size, busy, took, low, d.count, bytes(to[:24]))
    to = bytearray(16)
    d.config(read=source, write=to, count=2, ctrl=d.pack_ctrl(bswap=1), trigger=True)
    print(done(d), bytes(to))
    d.config(read=source, write=to, count=2)
    print(d.active(), d.active(1), done(d), d.active())
    d.close()


def backwards():
    d = rp2.DMA()
    source, to = bytearray(range(16)), bytearray(16)
    ctrl = d.pack_ctrl(size=0, inc_read_rev=1)
    d.config(read=addressof(source) + 15, write=to, count=16, ctrl=ctrl, trigger=True)
    done(d)
    print(bytes(to))
    d.close()


def rings():
    """A read ring of 8 bytes, on a boundary of 8."""
    d = rp2.DMA()
    room = bytearray(64)
    at = addressof(room) + 7 & -8
    for i in range(8):
        room[at - addressof(room) + i] = i + 1
    to = bytearray(20)
    ctrl = d.pack_ctrl(size=0, ring_size=3)
    d.config(read=at + 2, write=to, count=20, ctrl=ctrl, trigger=True)
    done(d)
    print(bytes(to), d.read - at & 0xFFFFFFFF)
    d.close()


def chains():
    """One channel's end begins another; a trigger of 0 begins none."""
    d, e = rp2.DMA(), rp2.DMA()
    one, two, three = bytearray(b"abcd"), bytearray(4), bytearray(4)
    e.config(read=two, write=three, count=1, ctrl=e.pack_ctrl())
    d.config(read=one, write=two, count=1, ctrl=d.pack_ctrl(chain_to=e.channel), trigger=True)
    print(done(d, e), bytes(two), bytes(three))
    registers = d.registers
    three[:] = b"wxyz"
    registers[12] = d.pack_ctrl()
    registers[13] = addressof(three) & 0xFFFFFFFF
    registers[14] = 1
    registers[15] = addressof(one) & 0xFFFFFFFF
    print(done(d), bytes(three), type(registers), len(registers), d.registers is registers)
    three[:] = b"wxyz"
    d.write = three
    registers = d.registers
    registers[15] = 0
    print(d.active(), done(d), bytes(three))
    d.close()
    e.close()


def faults():
    """What is not aligned, or nowhere, ends a transfer and raises the error's bits."""
    d = rp2.DMA()
    buffer = bytearray(16)
    for read, write, size in ((1, 0, 2), (0, 2, 2), (0, 1, 1), (None, 0, 0), (0, None, 0)):
        at = [0x08000000 if side is None else addressof(buffer) + side for side in (read, write)]
        d.config(read=at[0], write=at[1], count=2, ctrl=d.pack_ctrl(size=size), trigger=True)
        took = done(d)
        bits = d.ctrl >> 29
        d.ctrl = d.pack_ctrl() | 3 << 29
        print(took, bits, d.ctrl >> 29, d.active())
    d.close()


def paced():
    """A channel whose request never comes stays busy until it is stopped."""
    d = rp2.DMA()
    buffer = bytearray(16)
    d.config(read=buffer, write=buffer, count=2, ctrl=d.pack_ctrl(treq_sel=1), trigger=True)
    print(done(d), d.active(0), d.count)
    d.close()


def flash():
    """Read where the chip has it, at a flash's pace; what is written to it is an error."""
    d = rp2.DMA()
    to = bytearray(8)
    at = addressof(rp2.Flash())
    d.config(read=at, write=to, count=2, ctrl=d.pack_ctrl(), trigger=True)
    print(at >= 0x10000000, done(d), bytes(to))
    d.config(read=to, write=at, count=2, ctrl=d.pack_ctrl(), trigger=True)
    print(done(d), d.ctrl >> 29)
    d.close()


def handlers():
    d = rp2.DMA()
    told = []
    d.irq(lambda channel: told.append(channel.channel))
    buffer = array("I", [1, 2])
    for quiet in (0, 1):
        d.config(read=buffer, write=buffer, count=1, ctrl=d.pack_ctrl(irq_quiet=quiet), trigger=True)
        done(d)
    print(told)
    d.close()


for part in (claims, controls, copies, rings, chains, faults, paced, flash, handlers):
    print("--", part.__name__)
    part()
if NEW:
    print("-- backwards")
    backwards()
