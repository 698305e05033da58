"""What the command lines of `kvlab` and `python -m qemu_port` share: errors in one line, files that a command
reads and writes, its figures as JSON. Knows neither of them.
"""
