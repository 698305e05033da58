"""Attention: the layers of one element type, through one set of kernels.

Allocates at construction only. Owns the parameters of the kernels (kernels/params.py): `e` by which a token
is stored, `a` by which a query is answered. Where tokens lie is not known here: whoever places them
(sequence.py) writes the slot into `e` and the runs of slots that a token sees into `a`.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from . import cpython as micropython
    from .cpython import const, ptr32

from .kernels.tables import TABLES

# fields: attend, encode, vector
_N = const(0)
_SLICES = const(3)
_CODES = const(5)
_VCODES = const(6)
_SCALES = const(7)
_VSCALES = const(8)
_SCALE_STRIDE = const(9)
_QUERY = const(17)
_SINK_QUERY = const(18)
_SLICE = const(19)
_OUT_SHIFT = const(29)
_Q_AT = const(30)
_HEAD_DIM = const(32)
_QUERY_BYTES = const(33)
_SETS = const(34)
_Q_SHIFT = const(35)
_HEADS = const(37)
_QUERIES = const(44)
_E_GROUP = const(4)
_E_K = const(9)
_E_V = const(15)
_VECTOR_AT = const(0)
_VECTOR_CODES = const(2)
_VECTOR_HEAD = const(4)
# end of fields

# Of kernels/params.py.
_MASK = const(0x00FF00FF)


class Attention:
    """geometry: shape and strides of what `buffer` holds; codes: per layer what is added to the place of a
    run for its K codes; a, e: arrays of its own; v_runs: what writes V's runs where they are not K's, or None
    (value_runs.py); q_shift, out_shift: per layer, BIAS added, or None where vectors are array('f').

    A class without properties, so that an attribute is stored at once.
    """

    def __init__(self, geometry, kernels, buffer, codes, a, e, v_runs, q_shift, out_shift):
        self.geometry = geometry
        self.kernels = kernels
        self.buffer = buffer
        self.codes = codes
        self.a = a
        self.e = e
        self.q_shift = q_shift
        self.out_shift = out_shift
        self.v_runs = v_runs
        self.form = None  # of int4: where a head's sealed tokens are (int4_blocks/blocks.py)
        self.probe = None  # of a token policy: what its uses() is told before weights(), with `plan`
        # Which runs `a` holds: those of the token at this position, with this floor. -1: none.
        self.runs_of = -1
        self.runs_floor = 0

    @micropython.native
    def row(self, placement, p, layer, q, out, qs, at):
        """Answer the query at element `at` of q, for the sinks of qs, over what the token at position p sees:
        there in `out`. Below 0: a number of q cannot be taken."""
        a = self.a
        if p != self.runs_of or placement.floor != self.runs_floor:
            self.look(placement, p)
        a[_Q_AT] = at
        sets = 1
        if qs is not q:
            sets = 2
        if a[_SETS] != sets:
            self._use_sets(sets)
        shift = self.q_shift
        if shift:
            a[_Q_SHIFT] = shift[layer]
            a[_OUT_SHIFT] = self.out_shift[layer]
        done = self.kernels.query(self.buffer, q, qs, a)
        if done < 0:
            return done
        self._heads(self.codes[layer], out, TABLES)
        return done

    def look(self, placement, p):
        """Have the runs of slots written that the token at position p sees."""
        self.runs_of = -1
        placement.look(p, self.a)
        if self.v_runs:
            self.v_runs(self.a)
        self.runs_floor = placement.floor
        self.runs_of = p

    def _use_sets(self, sets):
        """Of queries: 2 where the sinks have their own."""
        self.a[_SETS] = 0  # neither, should an exception part the two
        self.a[_SINK_QUERY] = self.geometry.query_words if sets == 2 else 0
        self.a[_SETS] = sets

    @micropython.viper
    def _heads(self, codes: int, out, tables):
        """The loop over heads. In native code an attribute, element or sum costs about as much as ten tokens
        of a kernel; in viper only the attribute and the call do."""
        a = self.a
        p = ptr32(a)
        e = ptr32(self.e)
        g = self.geometry
        buf = self.buffer
        kernels = self.kernels
        qk = kernels.qk
        score = kernels.score
        weights = kernels.weights
        av = kernels.av
        emit = kernels.emit
        watched = 0
        probe = self.probe
        if probe:
            watched = 1
            uses = probe.uses
            plan = probe.plan
        # Of int4: sealed tokens stand behind the fresh ones, whose kernels are int8's, in one list of scores
        # and weights. While av() runs, N counts the fresh ones alone.
        sealed = two = 0
        form = self.form
        if form:
            two = 1
            sealed = int(form.begin(codes))
            qk4 = kernels.qk4
            center = kernels.center
            av4 = kernels.av4
        n = p[_N]
        slices = p[_SLICES]
        slice_scales = slices * p[_SCALE_STRIDE]
        v_codes = codes + e[_E_V + _VECTOR_AT]
        scales = codes + e[_E_K + _VECTOR_CODES]
        v_scales = v_codes + e[_E_V + _VECTOR_CODES]
        stride = e[_E_K + _VECTOR_HEAD]
        v_stride = int(g.v_head_stride)
        kv = int(g.kv_heads)
        per_kv = p[_HEADS] // kv  # viper: allow divide because it is 1 at least
        per_scales = e[_E_GROUP] // p[_HEAD_DIM]  # viper: allow divide because it is 1 at least
        query = p[_QUERIES]
        p[_SLICE] = 0
        same_scales = 0
        while kv:
            kv -= 1
            p[_CODES] = codes
            p[_VCODES] = v_codes
            codes += stride
            v_codes += v_stride
            if same_scales == 0:
                p[_SCALES] = scales
                p[_VSCALES] = v_scales
                scales += slice_scales
                v_scales += slice_scales
                kernels.scales(buf, buf, 0, a)
                kernels.scales(buf, buf, 1, a)
                same_scales = per_scales
            if same_scales:
                same_scales -= 1
            h = per_kv
            while h:
                h -= 1
                p[_QUERY] = query
                query += p[_QUERY_BYTES]
                s = 0
                while s < slices:
                    p[_SLICE] = s
                    qk(buf, buf, _MASK, a)
                    if sealed:
                        qk4(buf, buf, _MASK, a)
                    score(buf, buf, 0, a)
                    s += 1
                s = 0
                while s < slices:
                    p[_SLICE] = s
                    if sealed:
                        center(buf, buf, tables, a)
                    if watched:
                        uses(buf, plan, tables, a)
                    weights(buf, buf, tables, a)
                    p[_N] = n - sealed
                    av(buf, buf, _MASK, a)
                    p[_N] = n
                    if sealed:
                        av4(buf, buf, _MASK, a)
                    emit(buf, a, out)
                    s += 1
            if two:
                if kv:
                    form.next(same_scales)
