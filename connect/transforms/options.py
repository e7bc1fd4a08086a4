"""Options that several transforms share."""

from connect.api.config import BOOLEAN, Check, Config, Importance, Kind, option

FIELD_NAMES = Check(accepts=bool, allowed="a list that is not empty")
VERSION = Kind(name="string", wire=2, read=lambda text: text.upper(), write=str, allowed="V1 or V2")
_VERSIONS = Check(accepts=lambda value: value in {"V1", "V2"}, allowed="one of V1, V2")


class NullConfig(Config):
    """For transforms that read fields."""

    replace_null_with_default: bool = option(BOOLEAN, default=True)
    """Whether a field that is null counts as its default, when its schema has one."""


class PathConfig(NullConfig):
    """For transforms whose fields may lie within other fields."""

    field_syntax_version: str = option(VERSION, default="V1", check=_VERSIONS, importance=Importance.HIGH)
    """V1: names of fields are taken as they are. V2: dots lead into nested fields, backticks around a name protect
    dots in it."""


def as_given(config: Config, key: str, *, default: str) -> str:
    """An option where blanks at the ends matter."""
    text = config.given.get(key)
    return default if text is None else text
