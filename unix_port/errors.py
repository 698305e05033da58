"""What goes wrong outside the script."""


class PortError(ValueError):
    """The unix port is missing or was asked for what it cannot do. One line."""
