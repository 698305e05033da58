"""int8 in symmetric groups: byte = code + 128, code -127..127, one float16 scale a group, rounded up."""

from .scales import not_finite, scaled


def read(buffer, g, which, at_codes, at_scales):
    codes = []
    stride = g.v_head_stride if which == "v" else g.head_stride
    for head in range(g.kv_heads):
        for piece in range(g.slices):
            at = at_codes + head * stride + piece * g.slice_bytes
            codes += [buffer[at + c] - 128 for c in range(g.slice_width)]
    return scaled(codes, buffer, g, at_scales)


def broken(buffer, g, which, at_codes, at_scales):
    """A byte of zero, a scale not finite."""
    bad = not_finite(buffer, g, at_scales)
    stride = g.v_head_stride if which == "v" else g.head_stride
    for head in range(g.kv_heads):
        at = at_codes + head * stride
        bad += len([c for c in range(g.row_bytes) if buffer[at + c] == 0])
    return bad
