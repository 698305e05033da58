"""A Llama whose weights come from flash into RAM chunk by chunk while the core computes; making.py makes
it. Allocates nothing once it is made.

A chunk is some rows of a matrix. RAM has a few places of one size, which chunks take turns at, in the order
in which a token multiplies them. A chunk is fetched once the one that had its place before is multiplied, so
some are always ahead: while attention computes, which reads no weights, those of the layer behind it arrive.
When a token ends all places are filled, and nothing is fetched until the next begins: the flash may be
erased and written between two tokens.
"""


class Streamed:
    """What keeps the chunks of a Llama: the arrays that the steps of its programs point at.

    ring: bytearray of all places. chunks: array('i') of a CHUNK record each. state: of all (STREAM). counts:
    chunks of each matrix. fetching: what fetches, with a close().
    """

    def __init__(self, kernels, ring, chunks, state, counts, fetching):
        self.kernels = kernels
        self.ring = ring
        self.chunks = chunks
        self.state = state
        self.counts = counts
        self.fetching = fetching
        self.codes = ()  # addresses of chunk(), skip() and rest(), of the records and of the state
        self.record_bytes = 0

    def ram_bytes(self):
        """Payload of all arrays."""
        return len(self.ring) + 4 * (len(self.chunks) + len(self.state)) + self.fetching.ram_bytes()

    def close(self):
        """Nothing is fetched any more; the model must be given other steps first (Llama.use)."""
        self.fetching.close()

    def more(self, matrix, n):
        """How many steps more than one each so many matrices take from that on."""
        return sum(self.counts[matrix : matrix + n]) - n

    def begin(self, to, at, add_step):
        _, skip, _, _, state = self.codes
        return add_step(to, at, skip, state, 0)

    def multiply(self, to, at, matrix, add_step):
        chunk, _, _, records, state = self.codes
        first = sum(self.counts[:matrix])
        for i in range(first, first + self.counts[matrix]):
            at = add_step(to, at, chunk, records + i * self.record_bytes, state)
        return at

    def end(self, to, at, add_step):
        _, _, rest, _, state = self.codes
        return add_step(to, at, rest, state, 0)
