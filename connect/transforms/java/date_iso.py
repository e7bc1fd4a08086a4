"""A fast way for the patterns that are used most: `yyyy-MM-dd HH:mm:ss`, with T, milliseconds, Z, or the date alone."""

import datetime as dt
import re
from typing import Final, NamedTuple, Self

from connect.transforms.epoch import ms_of

_PATTERN: Final = re.compile(
    r"yyyy-MM-dd(?:(?P<separator> |'T')HH:mm:ss(?P<fraction>\.SSS)?(?P<zone>'Z'|X{1,3})?)?", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_UTC: Final = "+00:00"


class IsoShape(NamedTuple):
    """One of these patterns. Texts that do not look exactly like it are left to the lenient parser."""

    separator: str
    timespec: str
    suffix: str
    shape: re.Pattern[str]

    @classmethod
    def of(cls, pattern: str) -> Self | None:
        """The shape of a pattern, if it is one of them."""
        found = _PATTERN.fullmatch(pattern)
        if found is None:
            return None
        if found["separator"] is None:
            return cls("", "", "", _DATE)
        separator = found["separator"].strip("'")
        fraction = r"\.\d{3}" if found["fraction"] else ""
        suffix = "Z" if found["zone"] else ""
        shape = re.compile(rf"({_DATE.pattern}{separator}\d\d:\d\d:\d\d{fraction}){suffix}", re.ASCII)
        return cls(separator, "milliseconds" if fraction else "seconds", suffix, shape)

    def format(self, moment: dt.datetime) -> str:
        """The text of a time that is in UTC, with or without saying so."""
        if not self.separator:
            return moment.date().isoformat()
        return moment.isoformat(self.separator, self.timespec).removesuffix(_UTC) + self.suffix

    def parse(self, text: str) -> int | None:
        """Milliseconds since 1970; None when the text must be read leniently."""
        found = self.shape.fullmatch(text)
        if found is None:
            return None
        try:
            return ms_of(dt.datetime.fromisoformat(f"{found[1]}{_UTC}" if self.separator else f"{text}T00:00{_UTC}"))
        except ValueError:
            return None
