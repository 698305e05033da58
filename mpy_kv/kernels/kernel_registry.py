"""A family of kernel sets: one protocol, several implementations, the fastest right one picked by trial.

Allocates at import and when a set is loaded; nothing per call. What tries a set, and
what remembers that one was right, is in trial.py. A family belongs to a package that has
`plain.py` (the definition), `viper.py` (see port.load_native) and, if it pays, `thumb.py`: some or all of the
kernels in Thumb assembler, for boards with an Arm core. `check` names the module that tries a set:
`selfcheck.py` of the package, or one above it. It has known(candidate), whether the set's results are those
that the plain twin is known to have, and compare(reference, candidate) -> "" or where they differ.
"""

from ..port import THUMB, load_native
from ..transient import load_module, unload_all


def _function(functions, name):
    return functions.get(name) if isinstance(functions, dict) else getattr(functions, name, None)


class KernelSet:
    """Functions by name as attributes; `functions`: dict or module. ValueError if one is missing."""

    codec = "int8"  # element type of a cache's kernels; Variant makes others

    def __init__(self, name, functions, names, caller=""):
        self.name = name
        for key in names:
            f = _function(functions, key)
            if f is None:
                raise ValueError("function %s is missing" % key)
            setattr(self, key, f)
        # What calls the others by the addresses of their code (calls.py); None: they are called by name.
        self.caller = _function(functions, caller)


class Family:
    """Sets of the kernels `names` in `package` (a dotted name) whose files lie in `folder` (ends in /).

    caller: the name of a function of thumb.py, in no other set, that calls kernels by their addresses.
    """

    base = None  # the family that this one builds on, see derived_kernels.py

    def __init__(self, package, folder, names, caller=""):
        self.package = package
        self.names = names
        self.caller = caller
        self.check = package + ".selfcheck"
        self.reasons = {}  # set name -> why it is not used here
        self._folder = folder
        self._found = {}
        self.taken = ()  # verdicts on sets, see trial.py
        self.checked = ()  # names of those that have passed
        self._twins = {}  # plain sets by package: of this family, and of others that build on it
        self._extra = []  # (name, loader) registered by a host, tried first

    def register(self, name, loader):
        """Offer a set: `loader()` returns its functions or raises. The self-check decides. A set of the
        same name is replaced; "plain", the reference, cannot be."""
        load_module("mpy_kv.kernels.trial").register(self, name, loader)

    def plain(self):
        """The plain twin: the definition."""
        if self.package not in self._twins:
            self._twins[self.package] = self._set_of("plain", load_module(self.package + ".plain"))
        return self._twins[self.package]

    def _set_of(self, name, functions):
        return KernelSet(name, functions, self.names, self.caller)

    def _viper(self, skip=()):
        return load_native(self._folder + "viper.py", self.package, skip)

    def _thumb(self, skip=()):
        """What thumb.py lacks is viper's."""
        if not THUMB:
            raise ImportError("no Thumb assembler on this port")
        found = load_native(self._folder + "thumb.py", self.package, skip)
        for name in self.names:
            if name not in found and name not in skip:
                # Of this family's own file: a variant puts its base's functions to these.
                functions = dict(Family._viper(self, tuple(found) + tuple(skip)))
                functions.update(found)
                return functions
        return found

    def _candidates(self):
        return self._extra + [("thumb", self._thumb), ("viper", self._viper)]

    def get(self, name):
        """The set of that name, checked; raises ValueError with the reason if it cannot be used here."""
        if name == "plain":
            return self.plain()
        if name in self._found:
            return self._found[name]
        # Tried once only: on some ports the memory of native code is never freed.
        why = self.reasons.get(name)
        if why is None:
            for known, loader in self._candidates():
                if known == name:
                    why = self._try(name, loader)
                    if why is None:
                        return self._found[name]
                    self.reasons[name] = why
                    break
            else:
                why = load_module("mpy_kv.kernels.trial").unknown(self._candidates())
        raise ValueError("kernels %r cannot be used here: %s" % (name, why))

    def _try(self, name, loader):
        """Load and check a set; None if it is good, else why not."""
        # A port without an emitter raises SyntaxError, a foreign .mpy ValueError, a missing file OSError;
        # a refusal of the code generator itself must not pass unseen.
        try:
            found = self._set_of(name, loader())
        except (ImportError, SyntaxError, ValueError, OSError) as error:
            return str(error)
        wrong = load_module("mpy_kv.kernels.trial").wrong(self, found)
        if not wrong:
            self._found[name] = found
        return wrong
        return None

    def best(self):
        """The first usable set of those registered, thumb, viper, plain."""
        for name, _ in self._candidates():
            try:
                return self.get(name)
            except ValueError:
                continue
        return self.plain()

    def release(self):
        """Let go of the plain twin, the self-check and all else that is transient (mpy_kv/transient.py), 14
        KB of a board's heap; get("plain") loads the twin anew. For a program that has its set and will not
        change it.
        """
        self._twins.clear()
        unload_all()
