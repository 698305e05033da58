"""How exact attention is: a search for the inputs on which it is worst.

distributions.py draws inputs from a seed, runner.py has the package compute them, reference.py computes them
in float64 over the same stored codes and query, which stored.py has from the definition of each element type,
and search.py keeps the worst. known.py has inputs whose right results are known.
"""

from __future__ import annotations

HEAD_DIMS = (1, 5, 8, 12, 64, 128)
SEEDS = 40  # of a sample: about a minute

# The distributions by name, and what is shown of each. distributions.py has a function for every one.
TITLES = {
    "normal": "normal keys and queries",
    "peaked": "few tokens take most",
    "heavy": "one heavy token, up to 63 light ones",
    "tails": "few heavy tokens, a thin tail of up to 65,536",
    "clusters": "two clusters of scores",
    "sinks": "four sinks take most",
    "constant": "the same value in every token",
    "against": "values against the rounding of weights",
    "far": "scales up to 1,024 times one another",
    "tiny": "scales that are denormal",
    "beyond": "scores up to 1,000, scales up to a million times one another",
}
