"""`python -m kvlab`."""

from kvlab.cli import run

run()
