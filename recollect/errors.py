"""The one exception that is the user's to read: it never deserves a traceback."""


class InputError(ValueError):
    """What was given, what was expected, what to do about it."""
