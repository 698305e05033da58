"""Has the weights of a model streamed: streamed.py says what that is. Transient (mpy_kv/transient.py).

For a model that is mapped, with kernels in assembler; what fetches is mpy_kv/bus/stream/dma.py on a chip.
"""

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

import sys
from array import array

from mpy_kv.errors import BadArgument
from mpy_kv.port import addressof
from mpy_kv.transient import load_module

from ..model import Llama
from ..probe import settle

# fields: matvec, chunk, stream
_M_AT = const(0)
_M_ROWS = const(1)
_M_GROUPS = const(2)
_M_SKIP = const(3)
_M_ACT = const(4)
_M_TO = const(5)
_M_EXPONENT = const(6)
_CHUNK_PLACE = const(1)
_CHUNK_FROM = const(2)
_CHUNK_WORDS = const(3)
_CHUNK_NEXT = const(4)
_CHUNK_FILLS = const(5)
_CHUNK_FIELDS = const(8)
_STREAM_NEXT = const(0)
_STREAM_FIRST = const(1)
_STREAM_PLACES = const(2)
_STREAM_FETCH = const(3)
_STREAM_WORK = const(4)
_STREAM_ONE_WORD = const(5)
_STREAM_OTHER_WORD = const(6)
_STREAM_FIELDS = const(12)
# end of fields

PLACES = const(4)
_MATVEC_FIELDS = const(7)
_RECORD_WORDS = const(_CHUNK_FIELDS + _MATVEC_FIELDS)
_MOST_PLACES = const(64)

# Of ../kernels/layout.py.
_GROUP = const(32)
_MASK = const(0x00FF00FF)


def ring(size, places=PLACES):
    """A bytearray for so many places, of `size` bytes or a few less."""
    if type(size) is not int or not 1 <= places <= _MOST_PLACES or not 4 * places <= size <= 1 << 20:
        raise BadArgument("stream must be %d..%d bytes, got %r" % (4 * places, 1 << 20, size))
    return bytearray(size // (4 * places) * 4 * places)


def make(image, cache, kernels, room):
    """A Llama whose weights are streamed where the chip can, of what opening.py has made: its room, and the
    ring."""
    room, ring = room
    m = Llama(image, cache, kernels=kernels, room=room)
    start(m, ring)
    settle("the stream of weights")
    return m


def start(m, ring):
    """Have the weights of a Llama streamed where the chip can; where it should be able to and is not, stderr
    says why, and the model stays as it is. BadArgument as begin()."""
    _check(m)
    from mpy_kv.bus.stream.dma import Chained

    try:
        begin(m, ring, Chained())
    except OSError as error:
        sys.stderr.write("stories: not streamed: %s\n" % error)


def begin(m, ring, fetching, places=PLACES):
    """Have the weights of a Llama streamed into `ring`, and give it the programs that take them from there.

    fetching: what fetches. Its prepare(chunks, state, bytes of a record) fills what of CHUNK and STREAM is
    its own, begins to fetch, and returns what is wrong, or None; fetch is the kernel that has a chunk
    fetched; ram_bytes(); close(). The model keeps what is returned, a Streamed, as `streamed`. BadArgument
    where the model cannot be streamed or its rows are longer than a place, OSError where fetching goes
    wrong."""
    try:
        _check(m)
        counts = _counts(m, len(ring) // places, places)
        chunks = array("i", bytes(4 * _RECORD_WORDS * sum(counts)))
        state = array("i", bytes(4 * _STREAM_FIELDS))
        from .streamed import Streamed

        made = Streamed(load_module("mpy_kv.bus.stream.thumb"), ring, chunks, state, counts, fetching)
        made.record_bytes = 4 * _RECORD_WORDS
        _point(m, made, places)
        wrong = fetching.prepare(chunks, state, made.record_bytes)
        if wrong:
            raise OSError(wrong)
        programs = load_module("stories.programs").make(m, made)
        if programs is None:
            raise BadArgument("stream needs kernels in assembler, all below 1 GiB")
        m.programs = programs
    except BaseException:
        fetching.close()
        raise
    m.streamed = made
    return made


def _check(m):
    if not m.mapped or getattr(m.kernels, "caller", None) is None:
        raise BadArgument("stream needs a model that lies in flash, and kernels in assembler")


def _counts(m, place, places):
    """Chunks of each matrix, of `place` bytes at most; in all a multiple of `places`, so that every token's
    lie at the same places."""
    row_bytes = [a[_M_GROUPS] * _GROUP + a[_M_SKIP] for a in m.matrices]
    if max(row_bytes) > place:
        raise BadArgument(
            "stream must be %d bytes or more: %d rows of weights" % (places * max(row_bytes), places)
        )
    rows = [a[_M_ROWS] for a in m.matrices]
    counts = [-(-n // (place // size)) for n, size in zip(rows, row_bytes)]
    while sum(counts) % places or sum(counts) < 2 * places:
        parts = [n * size // count if n > count else 0 for n, size, count in zip(rows, row_bytes, counts)]
        counts[parts.index(max(parts))] += 1
    return counts


def _point(m, made, places):
    """Fill the records and the state, but for what fetching.prepare does."""
    addresses = load_module("mpy_kv.kernels.addresses")
    like = m.kernels.caller
    k = made.kernels
    records, state_at, ring_at = addressof(made.chunks), addressof(made.state), addressof(made.ring)
    made.codes = (
        addresses.address(k.chunk, 2, like),
        addresses.address(k.skip, 1, like),
        addresses.address(k.rest, 1, like),
        records,
        state_at,
    )
    weights = addressof(m.weights)
    place = len(made.ring) // places
    n = sum(made.counts)
    i = 0
    for a, count in zip(m.matrices, made.counts):
        size = a[_M_GROUPS] * _GROUP + a[_M_SKIP]
        for part in range(count):
            first, end = a[_M_ROWS] * part // count, a[_M_ROWS] * (part + 1) // count
            chunk = memoryview(made.chunks)[i * _RECORD_WORDS : (i + 1) * _RECORD_WORDS]
            rows = chunk[_CHUNK_FIELDS:]
            rows[_M_ROWS] = end - first
            rows[_M_GROUPS] = a[_M_GROUPS]
            rows[_M_SKIP] = a[_M_SKIP]
            rows[_M_ACT] = a[_M_ACT]
            rows[_M_TO] = a[_M_TO] + first
            rows[_M_EXPONENT] = a[_M_EXPONENT]
            chunk[_CHUNK_PLACE] = ring_at + i % places * place
            chunk[_CHUNK_FROM] = weights + a[_M_AT] + first * size
            chunk[_CHUNK_WORDS] = (end - first) * size // 4
            chunk[_CHUNK_NEXT] = records + (i + 1) % n * made.record_bytes
            chunk[_CHUNK_FILLS] = records + (i + places) % n * made.record_bytes
            i += 1
    state = made.state
    state[_STREAM_NEXT] = state[_STREAM_FIRST] = records
    state[_STREAM_PLACES] = places
    state[_STREAM_FETCH] = addresses.address(made.fetching.fetch, 2, like)
    state[_STREAM_WORK] = addresses.address(m.kernels.matvec, 4, like)
    state[_STREAM_ONE_WORD] = addressof(m.workspace)
    state[_STREAM_OTHER_WORD] = _MASK
    for x in made.codes + (state[_STREAM_FETCH], state[_STREAM_WORK], ring_at):
        if not 0 < x <= addresses.MOST:
            raise BadArgument("stream needs kernels in assembler, all below 1 GiB")
