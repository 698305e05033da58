"""The policy kernels of a set against their plain twins: every exponent of scores, tables at random.

usage: token_twins.py KERNELS    prints how many calls agreed; ends with an error at the first that does not
"""

import sys
from array import array

from mpy_kv.eviction import tokens
from mpy_kv.eviction.tokens import params as T
from mpy_kv.eviction.tokens import selfcheck

RING, SINKS = 13, 2
plain, other = tokens.FAMILY.plain(), tokens.FAMILY.get(sys.argv[1])
state = 1
agreed = 0


def draw(most):
    """0..most."""
    global state
    state = (state * 22695477 + 1) & 0x3FFFFFFF
    return (state >> 8) % (most + 1)


def same(name, about, run):
    global agreed
    want, got = run(plain), run(other)
    if want != got:
        raise SystemExit("%s%r: %r, not %r" % (name, about, got, want))
    agreed += 1


def surveyed(kernels, at, worth, length, recent):
    plan = array("i", [0] * (T.ACC + 2 * (SINKS + RING)))
    plan[T.RING], plan[T.SINKS], plan[T.RECENT] = RING, SINKS, recent
    for i in range(SINKS + RING):
        plan[T.ACC + i] = 99
    at = array("i", at)
    kernels.survey(at, array("i", worth), plan, length)
    return list(plan), list(at)


def watched(kernels, kind, numbers, shares, old):
    plan = array("i", [0] * (T.ACC + 2 * (SINKS + RING)))
    plan[T.RING], plan[T.SINKS] = RING, SINKS
    plan[T.HOLE], plan[T.COUNT], plan[T.SEEN], plan[T.ROWS], plan[T.DOWN], plan[T.UP] = numbers
    plan[T.THRESHOLD] = 1 << 19
    for i in range(len(shares)):
        plan[T.ACC + i] = shares[i]
    new = array("i", [7] * (RING + 2))
    kernels.watch(plan, array("i", old), new, kind)
    return list(new)


for exponent in range(-64, 64):
    for peak, bits in ((0, 20), (0, 1), (1, 20)):
        about = (peak, bits, exponent)
        same("uses", about, lambda kernels: selfcheck._shares(kernels, *about))

for _ in range(150):
    length = draw(40)
    at = [draw(3) and draw(length + 3) for _ in range(RING)]
    worth = [draw(1) and draw(3) or draw(T.NOW) for _ in range(RING + 2)]
    about = (at, worth, length, draw(2) and draw(RING))
    same("survey", about, lambda kernels: surveyed(kernels, *about))

for _ in range(300):
    hole, seen, rows = draw(RING), draw(SINKS), draw(1) and draw(300) or 1
    count = draw(RING - 1)
    up = draw(4) if rows > 1 else 0
    shares = [draw((1 << 20) - 1) << (draw(1) and 8) for _ in range(SINKS + RING)]
    kind = draw(2)
    most = T.NOW if kind == T.USED else (1 << 28) + (1 << 26) if kind == T.MASS else 1 << 25
    old = [draw(3) and draw(most >> draw(9)) for _ in range(RING)] + [draw(21), draw(most)]
    about = (kind, (hole, count, seen, rows, draw(8), up), shares, old)
    same("watch", about, lambda kernels: watched(kernels, *about))

print(agreed)
