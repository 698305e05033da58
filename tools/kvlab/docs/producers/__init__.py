"""One module a family of figures; each has PRODUCERS, a tuple of registry.Producer.

A module is imported whenever figures are checked, so what is slow to import it imports in `make`.
"""
