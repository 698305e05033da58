"""The parts of the `micropython` module that mpy_kv uses, for CPython."""


def const(value):
    return value


def native(function):
    return function
