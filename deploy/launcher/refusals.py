"""Why the platform was not started, in words for the one who wanted it."""

from collections.abc import Sequence


class Refused(Exception):
    """The platform cannot be started like that; nothing is left running."""

    def __init__(self, text: str, next_steps: Sequence[str] = (), *, tail: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.text = text
        self.next_steps = tuple(next_steps)
        self.tail = tuple(tail)
        """The last lines of the log that tells more."""
