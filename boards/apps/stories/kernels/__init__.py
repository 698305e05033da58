"""The integer kernels of the model: two sets with the same bits, picked by trial as in mpy_kv.kernels."""

from mpy_kv.kernels.kernel_registry import Family

FAMILY = Family(
    __name__,
    __file__[: __file__.rfind("/") + 1],
    (
        "embed",
        "norm",
        "quant",
        "matvec",
        "rope_table",
        "rotate",
        "narrow",
        "widen",
        "swiglu",
        "add",
        "argmax",
        "softmax",
        "pick",
    ),
    "run",
)

NAMES = FAMILY.names
best = FAMILY.best
get = FAMILY.get
release = FAMILY.release
reasons = FAMILY.reasons
