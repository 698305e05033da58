"""What notes each step of a story that is kept; kept.py makes it."""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython


class Kept:
    """The Llama of a story that is kept: it notes each step. left: steps that are run, others are not."""

    def __init__(self, llama):
        self.llama = llama
        self.left = 1 << 29
        self.ids = None  # what keeps the id of each token by its position
        self.log = None

    def __getattr__(self, name):
        return getattr(self.llama, name)

    @micropython.native
    def step(self, token, logits=True):
        if self.left:
            self.left -= 1
            if self.ids is not None:
                self.ids[self.llama.cache.length] = token
            self.llama.step(token, logits)
            if self.log is not None:
                self.log.stepped(token)
