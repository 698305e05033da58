"""What notes each step of a story in its flash log; logged.py makes it.

The tail of each block, behind what mpy_kv/resume/blocks.py has: as little-endian words the tokens of the
prompt, stories, whether the choice is greedy, the block's last token; then the choice's parameters.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from mpy_kv import cpython as micropython
    from mpy_kv.cpython import const

from mpy_kv.flash_log.words import copy, put_word, word

# fields: pick
_HEAT = const(2)
# end of fields

_BLOCK = const(16)
# Offsets in the tail.
_PROMPT_TOKENS = const(0)
_STORIES = const(4)
_GREEDY = const(8)
_LAST = const(12)
_CHOICE = const(16)
_CHOICE_BYTES = const(24)


class Logged:
    """Notes each step of a story in its log."""

    def __init__(self, blocks, teller):
        self.blocks = blocks
        self.prompt_tokens = 1
        self._teller = teller
        self._sinks = blocks.sinks
        self._choice = memoryview(teller.sampler.parameters)
        if hasattr(self._choice, "cast"):
            self._choice = self._choice.cast("B")

    @micropython.native
    def stepped(self, token):
        """A token more is run."""
        blocks = self.blocks
        if not (blocks.cache.length - self._sinks) & (_BLOCK - 1):
            tail = blocks.tail
            put_word(tail, _PROMPT_TOKENS, self.prompt_tokens)
            put_word(tail, _STORIES, self._teller.stories)
            put_word(tail, _GREEDY, 1 if self._teller.sampler.greedy else 0)
            put_word(tail, _LAST, token)
            copy(tail, self._choice, _CHOICE, 4 * _HEAT, _CHOICE_BYTES)
        blocks.stepped()

    def take(self, tokens, vocab):
        """What the tail of the newest block says; whether there is more to tell of `tokens`."""
        tail = self.blocks.tail
        teller = self._teller
        self.prompt_tokens = word(tail, _PROMPT_TOKENS)
        last = word(tail, _LAST)
        if self.blocks.position + 1 - self.prompt_tokens >= tokens or last >= vocab:
            return False
        teller.stories = word(tail, _STORIES)
        teller.sampler.greedy = word(tail, _GREEDY) == 1
        teller.last = last
        copy(self._choice, tail, 4 * _HEAT, _CHOICE, _CHOICE_BYTES)
        return True
