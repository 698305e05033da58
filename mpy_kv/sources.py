"""Sources of native functions as a board compiles them: one by one, for its word size. Transient, see
transient.py.
"""

import gc

from .port import WIDE

_HASH, _UNDERSCORE = 35, 95  # as bytes


def viper_source(text):
    """Source of viper kernels as this word size needs it.

    In kernel sources `x >> _HI` is the upper half of a 32-bit product, `x >> _FINER` its upper 23 bits, and
    `if _WIDE:` guards the sign extension of a 32-bit load: nothing to do on 32 bits, two shifts on 64.
    """
    if WIDE:
        text = text.replace("_WIDE = const(0)", "_WIDE = const(1)").replace(">> _HI", "<< 32 >> 48")
        text = text.replace(">> _FINER", "<< 32 >> 41")
    return text


def constants_of(head):
    """Place and name of each line `_NAME = const(...)` in `head`, one behind the other."""
    found = []
    at = 0
    while at < len(head):
        end = head.find(b"\n", at) + 1 or len(head)
        equals = head.find(b" = const(", at, end)
        if equals > 0 and head[at] == _UNDERSCORE:
            found += at, head[at:equals]
        at = end
    return found


def functions(source):
    """(name, text) of each decorated function in a file of bytes, the text with what precedes the first one.

    That is imports and constants, from `import micropython` on; those constants that it surely has no use for
    are comments, as each takes heap and time. All texts lie in one place, each until the next is asked for:
    what compiling leaves behind cuts the heap into pieces smaller than a text.
    """
    names = []
    starts = []
    at = 0
    for line in source:
        if line.startswith(b"@"):
            starts.append(at)
        elif line.startswith(b"def ") and len(names) < len(starts):
            names.append(str(line[4 : line.find(b"(")], "utf-8"))
        at += len(line)
    starts.append(at)
    source.seek(0)
    head = source.read(starts[0])
    head = head[max(0, head.find(b"import micropython")) :]
    constants = constants_of(head)
    first = len(head)
    longest = max([starts[i + 1] - starts[i] for i in range(len(names))])
    line = None
    gc.collect()
    text = bytearray(first + longest)
    text[:first] = head
    head = None
    view = memoryview(text)
    for i in range(len(names)):
        for j in range(0, len(constants), 2):
            text[constants[j]] = _HASH
        end = first + starts[i + 1] - starts[i]
        source.seek(starts[i])
        source.readinto(view[first:end])
        # Behind the end the longest text before is still there: it may keep a constant, never take one away.
        used = [constants[j] for j in range(0, len(constants), 2) if constants[j + 1] in text]
        for at in used:
            text[at] = _UNDERSCORE
        yield names[i], viper_source(str(view[:end], "utf-8")) if WIDE else view[:end]
