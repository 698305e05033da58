"""Kernel sets of another element type: a few kernels of its own, the rest those of a base family.

Allocates as a Family does. Native code of the base that is loaded is not loaded again; where it is not, what
the element type has of its own is left out of it.
"""

from ..transient import load_module
from .kernel_registry import Family


class Variant(Family):
    """`codec`: the element type; its kernels `own` lie in `package` and `folder`, as a Family's do. `added`:
    those of them that the base has not. `assembled`: some of them are in Thumb assembler; if none is, the set
    "thumb" has the base's, and its own from viper."""

    def __init__(self, package, folder, base, codec, own, added=(), assembled=True):
        Family.__init__(self, package, folder, base.names + added, base.caller)
        self._twins = base._twins
        self.base = base
        self._codec = codec
        self._own = own
        self._assembled = assembled
        self._others = tuple([name for name in base.names if name not in own])

    def plain(self):
        if self.package not in self._twins:
            functions = self._rest(self.base.plain())
            own = load_module(self.package + ".plain")
            for name in self._own:
                functions[name] = getattr(own, name)
            self._twins[self.package] = self._set_of("plain", functions)
        return self._twins[self.package]

    def _set_of(self, name, functions):
        made = Family._set_of(self, name, functions)
        made.codec = self._codec
        return made

    def _rest(self, kernels):
        found = {name: getattr(kernels, name) for name in self._others}
        found[self.caller] = kernels.caller
        return found

    def _viper(self, skip=()):
        return self._mixed("viper", Family._viper, Family._viper, skip)

    def _thumb(self, skip=()):
        own = Family._thumb if self._assembled else Family._viper
        return self._mixed("thumb", Family._thumb, own, skip)

    def _mixed(self, name, load, load_own, skip):
        """Functions of the set of that name: the base's, then its own over them."""
        found = self.base._found.get(name)
        functions = dict(load(self.base, self._own)) if found is None else self._rest(found)
        functions.update(load_own(self, self._others + tuple(skip)))
        return functions
