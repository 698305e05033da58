"""What imports what, and in which order it may: no module reaches up, no two reach for each other.

`graph.py` reads all arrows off the sources, those included that are put together at run time; `layers.py` is
the order; `check.py` compares. `registries.py` looks for element types that are listed a second time,
`lengths.py` for functions that nobody takes in at once.
"""
