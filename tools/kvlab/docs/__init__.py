"""The figures of the documentation: each stands between markers, is made by a registered producer, and is
checked against it within a tolerance.

markers.py reads and writes pages, tolerance.py compares, registry.py finds the producers, run.py checks and
renews. A family of figures is one module of producers/.
"""
