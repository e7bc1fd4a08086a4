"""Options that several transforms share, and how they check them."""

from collections.abc import Callable, Iterator

from connect.api.config import BOOLEAN, Check, Config, Importance, Kind, Problem, option
from connect.api.errors import ConfigError

FIELD_NAMES = Check(accepts=bool, allowed="a list that is not empty")
WORD = Kind(name="string", wire=2, read=lambda text: text.lower(), write=str, allowed="a word")
"""Text in letters of any case."""
_VERSION = Kind(name="string", wire=2, read=lambda text: text.upper(), write=str, allowed="V1 or V2")
_VERSIONS = Check(accepts=lambda value: value in {"V1", "V2"}, allowed="one of V1, V2")


class NullConfig(Config):
    """For transforms that read fields."""

    replace_null_with_default: bool = option(BOOLEAN, default=True)
    """Whether the default of a field, if its schema has one, replaces null."""


class PathConfig(NullConfig):
    """For transforms that can address nested fields."""

    field_syntax_version: str = option(_VERSION, default="V1", check=_VERSIONS, importance=Importance.HIGH)
    """V1: field names are taken literally. V2: dots lead into nested fields; enclose a name that contains dots in
    backticks."""


def raw_text(config: Config, key: str, *, default: str) -> str:
    """The text of an option in which leading and trailing blanks matter."""
    text = config.given.get(key)
    return default if text is None else text


def problems_of(key: str, read: Callable[[], object]) -> Iterator[Problem]:
    """The ConfigError of something that is made from an option, as a problem of its key."""
    try:
        read()
    except ConfigError as error:
        yield Problem(key, str(error))
