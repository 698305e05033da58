"""A kernel set is checked, unless a verdict on it is there. Transient, see ../transient.py.

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


def register(family, name, loader):
    """As Family.register."""
    if name == "plain":
        raise ValueError("the set 'plain' is what others are checked against")
    family._extra[:] = [(name, loader)] + [pair for pair in family._extra if pair[0] != name]
    family._found.pop(name, None)
    family.reasons.pop(name, None)


def unknown(candidates):
    """Why a name is refused."""
    return "unknown; known: plain, " + ", ".join([name for name, _ in candidates])


def wrong(family, found):
    """Why a set is not used, or None. It is checked, unless a verdict says that it passed."""
    if family.taken and key(family, found.name) in family.taken:
        return None
    why = _differs(family, found)
    if why is None:
        family.checked += (found.name,)
    return why


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
        why = _differs(family, family._found[name])
        if why is None:
            family.checked += (name,)
        else:
            family._found.pop(name)
            family.reasons[name] = why


def _differs(family, found):
    """Why a set does not pass the check; None if it does."""
    check = load_module(_check_of(family))
    try:
        where = "" if check.known(found) else check.compare(family.plain(), found)
    except MemoryError:
        raise  # says nothing about the set
    except Exception as error:
        return "self-check: %s: %s" % (type(error).__name__, error)
    return "differs from plain in " + where if where else None


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
