"""A step of a Llama done one layer at a time, for a program that has other things to do. Imported only where
it is asked for.

    step = Layered(llama)
    step.begin(token)
    while step.next():      # one layer, or one piece of the classifier
        ...                 # whatever else there is to do
    step.commit()

The logits and the cache are those of llama.step(token), to the bit. No call takes longer than a layer of a
token does: a classifier that has more weights than a layer is done in pieces, and blocks are sealed layer by
layer before commit() would. Until commit() the cache is as it was before the step, whatever raises and
wherever the program stops; cancel() says that it has stopped. Nothing is allocated after construction.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from mpy_kv import cpython as micropython
    from mpy_kv.cpython import const

from array import array

from mpy_kv.errors import BadArgument, StepError

# fields: embed, matvec, rope
_ROW_AT = const(3)
_M_AT = const(0)
_M_ROWS = const(1)
_M_GROUPS = const(2)
_M_SKIP = const(3)
_M_TO = const(5)
_POSITION = const(1)
# end of fields

# Of kernels/layout.py.
_GROUP = const(32)
_MASK = const(0x00FF00FF)

# What a slot of a step does, as mpy_kv/bus/schedule.py counts them; more than these, and there is none.
KV_READ = const(0)
KV_WRITE = const(1)
WEIGHTS = const(2)
DONE = const(4)
_IDLE = const(5)


class Layered:
    """Steps of `llama`, one at a time. Whoever shares the Llama waits until a step is committed or cancelled:
    its vectors hold what is computed so far.

    slot: what the next part() does, or DONE. layer: of which layer. sealing: whether it seals blocks, one
    by each call of next().
    """

    def __init__(self, llama):
        self.llama = llama
        self.slot = _IDLE
        self.layer = 0
        self._cache = llama.cache
        self._at = 0  # length of the cache when the step began
        self._token = 0
        self._pieces = 0  # of the classifier, in this step
        self._seals = False  # whether the cache has blocks to seal, see SealedCache.seal_ahead
        self.sealing = False
        self._before = None
        self._rows = llama.vocab
        self._piece = array("i", llama.matrices[-1])
        self._cut()
        self._find()

    def _cut(self):
        """The classifier into pieces of no more weights than a layer has."""
        m = self.llama
        most = 0
        for a in m.matrices[:7]:
            most += a[_M_ROWS] * (a[_M_GROUPS] * _GROUP + a[_M_SKIP])
        row = self._row_bytes()
        pieces = (m.vocab * row + most - 1) // most
        self._rows = (m.vocab + pieces - 1) // pieces
        if m.views is not None:
            # As many rows as are read at a time, and those that are left.
            at_once = len(m.weights) // row
            view = memoryview(m.weights)
            for rows in (self._rows, m.vocab % self._rows):
                for n in (min(rows, at_once), rows % at_once):
                    if n * row not in m.views:
                        m.views[n * row] = view[: n * row]

    def _find(self):
        """How kernels are called, where there are no programs, such as after Llama.use()."""
        if not self.llama.programs:
            from . import by_name

            self._before = by_name

    def _row_bytes(self):
        a = self._piece
        return a[_M_GROUPS] * _GROUP + a[_M_SKIP]

    @micropython.native
    def begin(self, token, logits=True):
        """Begin a step at position cache.length. logits=False leaves the classifier out (prompts).

        BadArgument: no such token. StepError: one is in progress."""
        m = self.llama
        if not 0 <= token < m.vocab or self.slot < _IDLE:
            self._refuse(token)
        if not (m.programs or self._before):
            self._find()
        cache = m.cache
        self._cache = cache
        self._at = cache.length
        self._token = token
        self._pieces = (m.vocab + self._rows - 1) // self._rows if logits else 0
        if m.programs:
            if m.sinks:
                m.turn_sinks[_POSITION] = cache.sink_query_position()
            m.turn[_POSITION] = cache.length
            m.embed[_ROW_AT] = m.embed_at + token * m.embed_row_bytes
        self._seals = hasattr(cache, "seal_ahead")
        self.sealing = False
        self.layer = 0
        self.slot = WEIGHTS

    @micropython.native
    def next(self):
        """Do what is next: a layer up to its attention, what is behind the last one, a piece of the
        classifier, a layer's block sealed. Whether there is more; if not, commit() is to come."""
        slot = self.part()
        while slot < WEIGHTS and not self.sealing:
            slot = self.part()
        return slot != DONE

    @micropython.native
    def part(self):
        """A slot of next(): weights are read, keys and values written, or read. What the one behind it does,
        or DONE. Raises as the cache does: the step is then over, and nothing of it stays."""
        slot = self.slot
        m = self.llama
        cache = self._cache
        if slot > WEIGHTS or m.cache is not cache or cache.length != self._at:
            self._lost()
        self.slot = _IDLE
        layer = self.layer
        layers = m.layers
        if slot == WEIGHTS:
            if m.programs and (layer <= layers or self._pieces == 1):
                m.kernels.caller(m.programs[layer])
            elif layer > layers:
                self._classify(layer - layers - 1)
            else:
                self._before.before(m, layer, self._token)
            if layer < layers:
                slot = KV_WRITE
            elif layer - layers < self._pieces:
                self.layer = layer + 1
            else:
                slot = DONE
                if self._seals and cache.commit_seals():
                    self.sealing = True
                    self.layer = 0
                    slot = KV_WRITE
        elif self.sealing:
            cache.seal_ahead(layer)
            self.layer = layer + 1
            if layer + 1 == layers:
                self.sealing = False
                slot = DONE
        elif slot == KV_WRITE:
            cache.append(layer, m.k, m.kv_out)
            slot = KV_READ
        else:
            if m.sinks:
                cache.attend(layer, m.q, m.att, m.q_sinks)
            else:
                cache.attend(layer, m.q, m.att)
            self.layer = layer + 1
            slot = WEIGHTS
        self.slot = slot
        return slot

    @micropython.native
    def _classify(self, i):
        """Piece i of the classifier."""
        m = self.llama
        a = self._piece
        whole = m.matrices[-1]
        k = m.kernels
        if i == 0:
            norm = m.norms[-1]
            k.norm(m.norm_weights, m.workspace, norm)
            k.quant(m.workspace, norm)
        rows = self._rows
        done = i * rows
        left = whole[_M_ROWS] - done
        a[_M_ROWS] = rows if rows < left else left
        a[_M_AT] = whole[_M_AT] + done * self._row_bytes()
        a[_M_TO] = whole[_M_TO] + done
        if self._before:
            self._before.multiply(m, a)
        else:
            k.matvec(m.weights, m.workspace, _MASK, a)

    @micropython.native
    def commit(self, token=None):
        """Make the step part of the cache. With `token`, of a cache that is told it (a request)."""
        cache = self._cache
        if self.slot != DONE or self.llama.cache is not cache or cache.length != self._at:
            self._lost()
        self.slot = _IDLE
        if token is None:
            cache.commit()
        else:
            cache.commit(token)

    def cancel(self):
        """Forget the step, if there is one: the cache is as before it. Another may begin."""
        if self.slot < _IDLE:
            self.slot = _IDLE
            self._cache.abort()

    def _lost(self):
        if self.slot == _IDLE:
            raise StepError("no step is in progress: begin() one")
        if self.slot < DONE and self.llama.cache is self._cache and self._cache.length == self._at:
            raise StepError("a step is not done: call next() until it returns False")
        if self.slot == DONE and self.llama.cache is self._cache and self._cache.length == self._at:
            raise StepError("a step is done: commit() it")
        self.slot = _IDLE
        raise StepError("the cache has gone on while a step was in progress: begin() it again")

    def _refuse(self, token):
        if self.slot < _IDLE:
            raise StepError("a step is in progress: commit() or cancel() it")
        raise BadArgument("token must be 0..%d, got %r" % (self.llama.vocab - 1, token))
