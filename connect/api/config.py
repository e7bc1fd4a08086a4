"""Options of connectors, converters and transforms: one declaration to check, document and show them.

    class FileConfig(Config):
        file: str = option(STRING, importance=Importance.HIGH)
        '''The file to read.'''
        batch_size: int = option(INT, default=2000, check=at_least(1))
        '''The most lines to read at once.'''

The key of `batch_size` is `batch.size`. An option without a default is required. The docstring is its help.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar, cast

import msgspec
from typing_extensions import dataclass_transform, override

from connect.api.errors import ConfigError
from connect.api.places import Place, guessed
from core_broker.service.settings import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Check,
    Kind,
    at_least,
    between,
    docstrings_of,
    not_empty,
    one_of,
    optional,
    some_of,
)

__all__ = [
    "BOOLEAN",
    "CLASS",
    "DOUBLE",
    "INT",
    "LIST",
    "LONG",
    "LOWER_CASE",
    "PASSWORD",
    "REQUIRED",
    "SHORT",
    "STRING",
    "UPPER_CASE",
    "Check",
    "Config",
    "Importance",
    "Kind",
    "Option",
    "Problem",
    "Width",
    "at_least",
    "between",
    "not_empty",
    "one_of",
    "option",
    "optional",
    "some_of",
]

T = TypeVar("T")
CLASS: Final = Kind(name="class", wire=8, read=str, write=str, allowed="the name of a class")
LOWER_CASE: Final = msgspec.structs.replace(STRING, read=str.lower)
"""Text that is the same in capitals, such as the name of a mode."""
UPPER_CASE: Final = msgspec.structs.replace(STRING, read=str.upper)
HIDDEN: Final = "[hidden]"


class _Required:
    @override
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class Importance(StrEnum):
    """How much attention an option deserves from the user who sets up a connector."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(StrEnum):
    """The width of a field in a form."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Problem(NamedTuple):
    """An error about one key."""

    key: str
    message: str

    @classmethod
    def invalid(cls, key: str, value: object, reason: str) -> Self:
        """A value that cannot be used, in Kafka's words; the reason says what it must be."""
        return cls(key, f"Invalid value {value} for configuration {key}: {reason}")


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of one key; its help is in `Config.help_of`."""

    name: str = ""
    key: str = ""
    kind: Kind[Any]
    default: Any
    check: Check | None = None
    aliases: tuple[str, ...] = ()
    importance: Importance = Importance.MEDIUM
    group: str = ""
    width: Width = Width.NONE
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()

    @property
    def is_required(self) -> bool:
        """Whether the key must be set."""
        return self.default is REQUIRED

    @property
    def is_secret(self) -> bool:
        """Whether the value is never shown."""
        return self.kind.name == PASSWORD.name

    @property
    def default_text(self) -> str | None:
        """The default as text, as in a configuration."""
        return None if self.is_required or self.default is None else self.kind.write(self.default)

    def parse(self, text: str) -> Any:
        """Parse a value; ConfigError names the key, the value and what is allowed."""
        try:
            value = self.kind.read(text.strip())
        except ValueError as error:
            raise self._refusal(text, str(error) or f"must be {self.kind.allowed}") from None
        if value is not None and self.check and not self.check.accepts(value):
            raise self._refusal(text, f"must be {self.check.allowed}")
        return value

    def _refusal(self, text: str, reason: str) -> ConfigError:
        shown = HIDDEN if self.is_secret else text
        return ConfigError(f"Invalid value {shown} for configuration {self.key}: {reason}")


def option(
    kind: Kind[T],
    *,
    default: T | _Required = REQUIRED,
    key: str = "",
    check: Check | None = None,
    aliases: tuple[str, ...] = (),
    importance: Importance = Importance.MEDIUM,
    group: str = "",
    width: Width = Width.NONE,
    display_name: str = "",
    dependents: tuple[str, ...] = (),
    recommended: tuple[str, ...] = (),
) -> T:
    """Declare a key: its name is the attribute's with dots for underscores, unless `key` says otherwise."""
    declared = Option(
        key=key,
        kind=kind,
        default=default,
        check=check,
        aliases=aliases,
        importance=importance,
        group=group,
        width=width,
        display_name=display_name,
        dependents=dependents,
        recommended=recommended,
    )
    return cast("T", declared)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(option,))
class Config:
    """Parsed options as attributes; `given` holds the original keys and values, unknown keys included."""

    OPTIONS: ClassVar[dict[str, Option]] = {}
    """Every option by its key, in the order of declaration."""
    given: Mapping[str, str]

    @override
    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Option)}
        named = [msgspec.structs.replace(o, name=n, key=o.key or n.replace("_", ".")) for n, o in own.items()]
        inherited = [getattr(ancestor, "OPTIONS", {}) for ancestor in reversed(cls.__mro__[1:])]
        cls.OPTIONS = {key: item for options in inherited for key, item in options.items()}
        cls.OPTIONS.update({item.key: item for item in named})
        for item in named:
            setattr(cls, item.name, None if item.is_required else item.default)

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Self:
        """Parse the options; the ConfigError lists everything that is wrong."""
        config, problems = cls.read(values)
        wrong = problems or list(config.problems())
        if wrong:
            raise ConfigError("; ".join(problem.message for problem in wrong))
        return config

    @classmethod
    def read(cls, values: Mapping[str, str]) -> tuple[Self, list[Problem]]:
        """Parse the options one by one: those that are valid, and the problems of the others."""
        config = cls()
        config.__dict__["given"] = values
        problems = []
        for key, item in cls.OPTIONS.items():
            text = next((values[name] for name in (key, *item.aliases) if values.get(name) is not None), None)
            if text is not None:
                try:
                    config.__dict__[item.name] = item.parse(text)
                except ConfigError as error:
                    problems.append(Problem(key, str(error)))
            elif item.is_required:
                message = f'Missing required configuration "{key}" which has no default value.'
                problems.append(Problem(key, message))
        return config, problems

    def problems(self) -> Iterable[Problem]:
        """Problems of these values in combination; called only when each value is valid by itself."""
        return ()

    def places(self) -> Iterable[Place]:
        """The files and addresses that these values make a plugin use: whatever looks like one, unless overridden.

        Called only when each value is valid by itself.
        """
        known = {key for key, item in self.OPTIONS.items() if item.kind.name in ("class", "boolean", "int", "long")}
        return guessed({key: text for key, text in self.given.items() if key not in known})

    def below(self, prefix: str) -> dict[str, str]:
        """The keys below a prefix and their values, without the prefix."""
        return {key.removeprefix(prefix): value for key, value in self.given.items() if key.startswith(prefix)}

    @classmethod
    def help_of(cls, key: str) -> str:
        """The help of a key: the docstring under its declaration, or empty."""
        if "_help" not in vars(cls):
            cls._help = docstrings_of(cls)
        return cls._help.get(cls.OPTIONS[key].name, "")

    _help: ClassVar[Mapping[str, str]] = {}

    @override
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a configuration is immutable: {name}")
