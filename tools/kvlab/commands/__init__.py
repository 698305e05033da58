"""The commands. Each module here exposes `command`, a `click.Command`, and imports what is slow
inside it.
"""
