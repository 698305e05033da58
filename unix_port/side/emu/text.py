"""Text for the report of what belongs to the script, whose classes may do anything."""

from micropython import const

_MOST = const(500)  # characters


def brief(thing):
    """str(thing), cut; what was in the way, in angle brackets, when there is none."""
    try:
        text = thing if type(thing) is str else str(thing)
        return text if len(text) <= _MOST else text[:_MOST] + "..."
    except MemoryError:
        # An exception of one long text: the text itself is there, a copy of it has no room.
        first = thing.args[0] if isinstance(thing, BaseException) and thing.args else None
        return brief(first) if type(first) is str else "<no room for its text>"
    except BaseException as error:
        return "<its text raises %s>" % type(error).__name__
