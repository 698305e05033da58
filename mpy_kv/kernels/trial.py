"""A kernel set is loaded and checked, unless a verdict on it is there. Transient, see ../transient.py.

    trial = load_module("mpy_kv.kernels.trial")
    trial.take(kernels.FAMILY, keys)        # of an earlier run; before a set is asked for
    kernels.best()
    keys = trial.verdicts(kernels.FAMILY)   # of this one: to be kept

A verdict is a key: whoever has one from an earlier run vouches that the check of its set was passed then. A
key is worth as much as what it names: interpreter, machine, and a checksum of every file that makes the
kernels or the check. Whoever keeps keys keeps them so that a damaged one is none.
"""

import sys
from binascii import crc32

from ..transient import load_module

# Modules of a family's package, and of that which it builds on; of all caches' kernels.
_KERNELS = ("plain", "viper", "thumb", "tables")
_OF_ALL = ("mpy_kv.kernels.tables", "mpy_kv.sources")
# What the self-check of caches loads beside itself.
_CHECKS = ("mpy_kv.selfcheck_float16", "mpy_kv.int4_blocks.selfcheck")


def tried(family, name, loader, set_of):
    """The set that `loader` loads, or as text why it is not used. set_of(name, functions) makes it."""
    # A port without an emitter raises SyntaxError, a foreign .mpy ValueError, a missing file OSError;
    # a refusal of the code generator itself must not pass unseen.
    try:
        found = set_of(name, loader())
    except (ImportError, SyntaxError, ValueError, OSError) as error:
        return str(error)
    if family.taken and key(family, name) in family.taken:
        return found
    why = _wrong(family, found)
    if why:
        return why
    family.checked += (name,)
    return found


def take(family, keys):
    """Verdicts on sets that passed their check in an earlier run: whoever asks for one is spared it."""
    family.taken = keys


def verdicts(family):
    """Keys of the sets that passed it in this run, where they can be told."""
    return [found for found in [key(family, name) for name in family.checked] if found is not None]


def check_again(family):
    """Check the sets that are loaded; one that fails is dropped, and the reason kept."""
    family.checked = ()
    for name in list(family._found):
        why = _wrong(family, family._found[name])
        if why:
            family._found.pop(name)
            family.reasons[name] = why
        else:
            family.checked += (name,)


def _wrong(family, found):
    """Why a set is not used, or ""."""
    check = load_module(_check_of(family))
    try:
        wrong = "" if check.known(found) else check.compare(family.plain(), found)
    except MemoryError:
        raise  # says nothing about the set
    except Exception as error:
        return "self-check: %s: %s" % (type(error).__name__, error)
    return "differs from plain in " + wrong if wrong else ""


def _check_of(family):
    """The module that tries a family's sets: that of the family it builds on."""
    return family.base.check if family.base else family.check


def key(family, name):
    """What a passed check of that set holds for, as a line of text: machine, firmware, files. None where
    that cannot be told: of a set that was registered, or where a file of the set or of its check cannot be
    read, as one of frozen modules."""
    if name in [known for known, _ in family._extra]:
        return None
    check = _check_of(family)
    names = [family.package + "." + module for module in _KERNELS]
    if family.base:
        names += [family.base.package + "." + module for module in _KERNELS]
    names += _OF_ALL
    names.append(check)
    if family.package.startswith("mpy_kv.kernels"):
        names += _CHECKS
    found = []
    total = 0
    buffer = bytearray(1024)
    for module in names:
        checksum = _checksum(module, buffer)
        if checksum is not None:
            found.append(module)
            total = crc32(b"%s %08x\n" % (module.encode(), checksum), total)
    if check not in found or family.package + ".plain" not in found or not _has(found, family, name):
        return None
    interpreter = sys.implementation
    words = [
        family.package,
        name,
        getattr(interpreter, "_machine", sys.platform),
        getattr(interpreter, "_build", ""),
        sys.version,
        "mpy %x" % getattr(interpreter, "_mpy", 0),
        "%08x" % (total & 0xFFFFFFFF),
    ]
    return "\t".join(words).replace("\n", " ")


def _has(found, family, name):
    """Whether the file of a set is among those found; without one in assembler, viper's."""
    own = [known for known in ("thumb", "viper") if family.package + "." + known in found]
    return name in own or name == "thumb" and "viper" in own


def _checksum(module, buffer):
    """CRC-32 of the file that `module` is or would be loaded from; None where there is none."""
    top, _, rest = module.partition(".")
    file = getattr(sys.modules[top], "__file__", None) if top in sys.modules else None
    if file is None:
        return None
    path = file[: file.rfind("/") + 1] + rest.replace(".", "/")
    for ending in (".py", ".mpy"):  # as import looks for them
        try:
            with open(path + ending, "rb") as source:
                total = 0
                while True:
                    size = source.readinto(buffer)
                    if not size:
                        return total & 0xFFFFFFFF
                    total = crc32(memoryview(buffer)[:size], total)
        except OSError:
            pass
    return None
