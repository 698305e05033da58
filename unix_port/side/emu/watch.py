"""Notes the largest bytearray and array a script makes, by standing in front of both.

Seen: bytearray(...) and array.array(...) that succeed. Not seen: bytes and str, slices, `a + b`,
`a * n`, containers, objects made by C code (file.read()), and the growth of an existing object.
`isinstance`, `issubclass` and class bases know the stand-ins for what they stand for. `type(x) is
bytearray` and class methods such as bytearray.fromhex do not work.
"""

import array as _array_module
import builtins
import sys

largest_bytes = 0
largest_kind = ""

real_bytearray = builtins.bytearray
_array = _array_module.array
_isinstance = builtins.isinstance
_issubclass = builtins.issubclass
_build_class = builtins.__build_class__
_MISSING = object()
_ITEM_BYTES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "f": 4}  # all others 8


def _note(count, kind):
    global largest_bytes, largest_kind
    if count > largest_bytes:
        largest_bytes = count
        largest_kind = kind


# Fixed arguments, not *args: a stand-in must not allocate what the real one would not.
def _make_bytearray(source=_MISSING, encoding=_MISSING):
    if source is _MISSING:
        return real_bytearray()
    made = real_bytearray(source) if encoding is _MISSING else real_bytearray(source, encoding)
    _note(len(made), "bytearray")
    return made


def _make_array(typecode, initial=_MISSING):
    if initial is _MISSING:
        return _array(typecode)
    made = _array(typecode, initial)
    _note(len(made) * _ITEM_BYTES.get(typecode, 8), "array")
    return made


def _real(cls):
    if cls is _make_bytearray:
        return real_bytearray
    return _array if cls is _make_array else cls


def _is_instance(thing, cls):
    if type(cls) is tuple:
        for one in cls:
            if _is_instance(thing, one):
                return True
        return False
    return _isinstance(thing, _real(cls))


def _is_subclass(thing, cls):
    if type(cls) is tuple:
        for one in cls:
            if _is_subclass(thing, one):
                return True
        return False
    return _issubclass(_real(thing), _real(cls))


def _class(body, name, *bases):
    return _build_class(body, name, *[_real(base) for base in bases])


class _ArrayModule:
    """Stands for the module `array`, whose own attributes cannot be changed."""

    __name__ = "array"

    def __init__(self):
        self.array = _make_array


def install():
    """From here on the stand-ins are what scripts see."""
    builtins.bytearray = _make_bytearray
    builtins.isinstance = _is_instance
    builtins.issubclass = _is_subclass
    builtins.__build_class__ = _class
    sys.modules["array"] = _ArrayModule()
