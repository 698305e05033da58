"""Puts mpy_kv, an app, its main.py and a model on a board, over mpremote's serial transport.

Whatever interrupts it, no file on the board is ever half of a new one, and running it again completes
the work: files that are already right are left alone. `agent.py` and `agent_romfs.py` are the half that
runs on the board.
"""

NO_APP = "none"  # the package alone, for a program of the user's own
APPS = ("stories", NO_APP)
PLACES = ("auto", "file", "romfs")  # of the model: a partition if there is one, else a file
