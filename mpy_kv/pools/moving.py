"""Moves the bytes of a block: move_down(to, at, words, buffer).

`words` words of 4 bytes of `buffer` from offset `at` to offset `to`, both on words of real memory; they may
overlap if `to` is the lower one. Arguments are not checked. With native code nothing is allocated: a viper
loop. Elsewhere the interpreter's own memmove does it, at the price of a few small objects a call.
"""

from ..port import EMITTER, load_native

if EMITTER:
    _path = __file__[: __file__.rfind("/") + 1] + "viper.py"
    move_down = load_native(_path, "mpy_kv.pools")["move_down"]
else:

    def move_down(to, at, words, buffer):
        view = memoryview(buffer)
        view[to : to + 4 * words] = view[at : at + 4 * words]
