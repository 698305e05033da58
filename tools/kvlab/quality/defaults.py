"""What `kvlab quality` measures where nothing else is asked for, and the names of what it can."""

from kvlab.element_types import EXACT, NAMES, SEALED

WARNING = "int4-naive"  # no device has it: it shows what int4 without blocks does to keys
OPEN_FLOAT16 = "int4-float16"  # blocks that are float16 until they are sealed; no device has it either
# Element types that are held against float32.
CODECS = tuple(
    each
    for name in (*NAMES, WARNING)
    if name != EXACT
    for each in ((name, OPEN_FLOAT16) if name == SEALED else (name,))
)

TOKENS = 12_000  # at least so many are predicted
BUDGETS = (128, 64, 32)  # tokens that a policy may keep
