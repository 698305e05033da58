"""Sizes and units that the kernels and their callers share; see plain.py for what they mean."""

GROUP = 32
POINT = 16
LIMIT = 0x3FFFFFFF
ACT_HEADER = 2  # elements of v before the first group of an activation vector
ACT_GROUP = 25  # elements per group: three for each four codes, then its scale
MAX_GROUPS = 256  # B3
MASK = 0x00FF00FF
OFFSETS = 0x00800080  # what is added to two weights of a word
ROOT_ONE = 1 << 14  # a[4] of a vector that is divided by nothing
