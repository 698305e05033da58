"""Picks the next token from the logits: greedy, or at random by temperature and top-p, from a seed.

Integers only, the same on every port and kernel set, and nothing is allocated after construction.
"""

from mpy_kv.transient import load_module

from .kernels.tables import EXP2

class Sampler:
    """temperature 0..100 (0: greedy), top_p 0..1 (0 and 1: all tokens) as numbers or text; any int seed,
    mod 2^32."""

    def __init__(self, model, temperature="0.8", top_p="0.9", seed=1):
        self.kernels = model.kernels
        self._v = model.workspace
        self.parameters = model.logits_parameters()  # n, offset, and room for what follows
        self.greedy = load_module("stories.sampling").fill(self.parameters, temperature, top_p, seed)

    def sample(self):
        """The next token. Unless greedy, the model's logits are overwritten with weights."""
        if self.greedy:
            return self.kernels.argmax(self._v, self.parameters)
        self.kernels.softmax(self._v, EXP2, self.parameters)
        return self.kernels.pick(self._v, self.parameters)
