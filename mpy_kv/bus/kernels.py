"""The kernels of the DMA queue: native where there is native code, else plain.py. See there."""

from ..port import EMITTER, load_native

if EMITTER:
    _names = load_native(__file__[: __file__.rfind("/") + 1] + "viper.py", "mpy_kv.bus")
else:
    from . import plain

    _names = plain.__dict__

base = _names["base"]
push = _names["push"]
push_rows = _names["push_rows"]
push_slots = _names["push_slots"]
place = _names["place"]
close = _names["close"]
copy = _names["copy"]
