"""What SealedCache is made of; as mpy_kv/setup.py, and transient as that is."""

from array import array

from ..arena import Arena
from ..errors import BadArgument
from ..transient import load_module
from .geometry import BLOCK, SealedGeometry

setup = load_module("mpy_kv.setup")
P = load_module("mpy_kv.kernels.params")
P4 = load_module("mpy_kv.kernels.int4.params")


def parts(geometry, buffer, kv_shift, q_shift, out_shift, kernels):
    """As mpy_kv.setup.parts, and last the parameters `s` of kernels/int4/params.py and those `e` by which a
    token is encoded that was re-opened."""
    g = geometry
    if not isinstance(g, SealedGeometry):
        raise BadArgument("geometry must be a SealedGeometry, got %s" % type(g).__name__)
    setup.check_size(g, g.bytes())
    k_shift, v_shift, q_shift, out_shift = setup.all_shifts(g.layers, kv_shift, q_shift, out_shift)
    arena = Arena(g.bytes(), buffer)  # before the kernels, as mpy_kv.setup.parts
    kernels = setup.kernel_set(kernels, g.codec)
    pool, codes = setup.layer_blocks(g, arena)
    if g.slice_width % 8:
        _clear_padding(g, arena.buffer, codes)
    a = _attention(g, arena.start)
    e = setup.encoding(g, codes, k_shift, v_shift)
    floats = array("i", [0] * g.layers)
    again = setup.encoding(g, codes, floats, floats)
    one = setup.computing(g, kernels, arena.buffer, codes, a, e, q_shift, out_shift)
    return pool, one, _sealing(g, arena.start), again


def _clear_padding(g, buffer, codes):
    """Sealing writes the nibbles of values alone: what a row has besides is 0 from the start."""
    size = g.kv_heads * g.head4_stride
    for base in codes:
        for at in (base + g.at_codes4, base + g.at_v_codes4):
            for i in range(at, at + size):
                buffer[i] = 0


def _attention(g, first):
    a = setup.attention(g, first)
    a.extend(array("i", [0] * (P4.A4_COUNT - len(a))))
    a[P4.ROWS] = BLOCK * g.blocks
    a[P4.ROW4] = g.row4_bytes
    a[P4.WIDTH4] = g.slice4_bytes
    a[P4.MINIMA_GAP] = g.minima_gap
    a[P4.HEADER] = g.header_bytes
    a[P4.STRIDE4] = g.scale4_stride
    a[P4.CENTERS] = first + g.at_centers
    a[P4.CENTER_ROW] = g.center_row
    a[P4.SPREAD] = first + g.at_spread
    # B3: what is read back is below 64 P, a query's codes are 64: a value's product is 2^12 at most.
    finer = 7
    for n in (g.slice_width - 1, g.slices - 1):
        while n:
            n >>= 1
            finer -= 1
    a[P4.FINER] = max(finer, 0)
    return a


def _sealing(g, first):
    s = array("i", [0] * P4.S_COUNT)
    s[P4.S_HEAD] = g.head_stride
    s[P4.S_STRIDE] = g.scale_stride
    s[P4.S_ROW] = g.row_bytes
    s[P4.S_WIDTH] = g.slice_bytes
    s[P4.S_SLICE] = g.slice_width
    s[P4.S_SLICES] = g.slices
    s[P4.S_GROUP] = g.group
    s[P4.S_GROUPS] = g.groups
    s[P4.S_POWERS] = g.powers_bytes
    s[P4.S_GAP] = g.minima_gap
    s[P4.S_HEAD4] = g.head4_stride
    s[P4.S_STRIDE4] = g.scale4_stride
    s[P4.S_ROW4] = g.row4_bytes
    s[P4.S_WIDTH4] = g.slice4_bytes
    s[P4.S_SPREAD] = first + g.at_spread
    return s


assert P.RUN + 4 * 3 == P4.SEALED  # a ring has three runs at most; what is int4's own stands behind them
