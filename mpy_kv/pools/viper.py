"""The one kernel of pools: words moved inside a buffer. See moving.py; loaded by port.load_native."""

import micropython


@micropython.viper
def move_down(to: int, at: int, words: int, buffer: ptr8):  # viper: allow order because both become addresses
    # Addresses stay in the first two registers, indexes are constants.
    to += int(buffer)
    at += int(buffer)
    while words >= 8:
        ptr32(to)[0] = ptr32(at)[0]
        ptr32(to)[1] = ptr32(at)[1]
        ptr32(to)[2] = ptr32(at)[2]
        ptr32(to)[3] = ptr32(at)[3]
        ptr32(to)[4] = ptr32(at)[4]
        ptr32(to)[5] = ptr32(at)[5]
        ptr32(to)[6] = ptr32(at)[6]
        ptr32(to)[7] = ptr32(at)[7]
        to += 32
        at += 32
        words -= 8
    while words > 0:
        ptr32(to)[0] = ptr32(at)[0]
        to += 4
        at += 4
        words -= 1
