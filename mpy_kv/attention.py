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
    from .cpython import const

from .kernels.tables import TABLES

# fields: attend, calls
_SINK_QUERY = const(18)
_OUT_SHIFT = const(29)
_Q_AT = const(30)
_SETS = const(34)
_Q_SHIFT = const(35)
_LAYER_AT = const(9)
# end of fields


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
        self.calls = None  # of kernels that call one another: see kernels/calls.py
        self.heads = None  # where they do not
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
        calls = self.calls
        if calls:
            calls[_LAYER_AT] = self.codes[layer]
            self.kernels.caller(self.buffer, a, out, calls)
        else:
            self.heads(self, self.codes[layer], out, TABLES)
        return done

    def look(self, placement, p):
        """Have the runs of slots written that the token at position p sees."""
        self.runs_of = -1
        placement.look(p, self.a)
        if self.v_runs:
            self.v_runs(self.a)
        self.runs_floor = placement.floor
        self.runs_of = p

    def call_by_name(self):
        """Have the kernels called one by one."""
        from .heads import heads

        self.heads = heads
        self.calls = None

    def _use_sets(self, sets):
        """Of queries: 2 where the sinks have their own."""
        self.a[_SETS] = 0  # neither, should an exception part the two
        self.a[_SINK_QUERY] = self.geometry.query_words if sets == 2 else 0
        self.a[_SETS] = sets
