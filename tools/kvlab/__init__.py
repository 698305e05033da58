"""kvlab: the host side of mpy-kv. One command line, one file a command in `kvlab/commands/`."""

import os

# Matrices here are small: a second BLAS thread costs more than it brings, several times over when
# both cores are busy. Read by numpy at its first import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"

INTERRUPTED = 130  # exit status
