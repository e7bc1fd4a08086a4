"""Settings of a service: one typed definition per key drives parsing, validation, description and the docs.

A service writes one class:

    class BrokerSettings(Settings):
        log_segment_bytes: int = setting(INT, default=1 << 30, check=at_least(1 << 20))
        \"\"\"Size at which the active segment is closed and the next one begun.\"\"\"

The attribute is the key with dots as underscores; the docstring under it is the help. `BrokerSettings(...)` builds
values in code without checks; `BrokerSettings.parse({...})` reads text from outside and rejects invalid values.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, dataclass_transform

import msgspec
from msgspec.structs import replace
from typing_extensions import override

T = TypeVar("T")

Properties = tuple[tuple[str, str], ...]
"""Names and values that are passed on unchanged."""

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_SECRET_WORDS = ("pass", "pasw", "secret", "credential", "token", "jaas", ".key", "user.info", "private")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why one key was refused."""

    key: str
    value: str
    reason: str

    @override
    def __str__(self) -> str:
        return f"{self.key}={self.value}: {self.reason}"


class SettingsError(Exception):
    """Settings from outside were refused; the operator must change them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Kind(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A type of setting: how its text is read and written. `wire` is its number in DescribeConfigs (KIP-569)."""

    name: str
    wire: int
    read: Callable[[str], T]
    write: Callable[[T], str]
    allowed: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on a value beyond its type, with its description for operators."""

    accepts: Callable[[Any], bool]
    allowed: str


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about one key, except its help (`Settings.help_of`)."""

    name: str = ""
    key: str = ""
    kind: Kind[Any]
    default: Any
    check: Check | None = None
    aliases: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    is_dynamic: bool = False
    is_sensitive: bool = False
    is_internal: bool = False
    without_effect: str = ""
    """If set, the key is accepted and does nothing; this says why."""
    prefix: str = ""
    """If set, the value collects every key with this prefix that is not defined itself."""

    @property
    def allowed(self) -> str:
        """The values that are accepted, in words."""
        return self.check.allowed if self.check else self.kind.allowed

    def parse(self, text: str) -> Any:
        """Read one value, or raise a `SettingsError` that names the key, the value and what is allowed."""
        try:
            value = self.kind.read(text.strip())
        except ValueError as error:
            raise self._refusal(text, str(error) or f"must be {self.kind.allowed}") from None
        if value is not None and self.check and not self.check.accepts(value):
            raise self._refusal(text, f"must be {self.check.allowed}")
        return value

    def text(self, value: Any) -> str | None:
        """The value as in a properties file; None when it is not set."""
        return None if value is None else self.kind.write(value)

    def _refusal(self, text: str, reason: str) -> SettingsError:
        shown = "******" if self.is_sensitive else text
        return SettingsError([Problem(key=self.key, value=shown, reason=reason)])


def gathered(prefix: str, *, default: Properties) -> Properties:
    """Define a family of keys for another program: every key with the prefix is passed on as text.

    The values are never shown, because they may contain passwords.
    """
    kind = Kind(name="properties", wire=2, read=lambda _: (), write=_names, allowed="any text")
    return cast("Properties", Definition(kind=kind, default=default, prefix=prefix, is_sensitive=True))


def _names(values: Properties) -> str:
    return ",".join(name for name, _ in values)


def setting(
    kind: Kind[T],
    *,
    default: T,
    check: Check | None = None,
    aliases: tuple[str, ...] = (),
    synonyms: tuple[str, ...] = (),
    dynamic: bool = False,
    sensitive: bool = False,
    internal: bool = False,
    without_effect: str = "",
) -> T:
    """Define a key.

    `aliases` are other names for the same key in a file; `synonyms` are keys of another settings class that provide the
    default here, the first one set wins; `dynamic` keys may change at run time; `internal` keys are left out of
    descriptions and docs; `without_effect` says why a key that is checked, stored and shown does nothing.
    """
    definition = Definition(
        kind=kind,
        default=default,
        check=check,
        aliases=aliases,
        synonyms=synonyms,
        is_dynamic=dynamic,
        is_sensitive=sensitive or kind.wire == PASSWORD.wire,
        is_internal=internal,
        without_effect=without_effect,
    )
    return cast("T", definition)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting, gathered))
class Settings:
    """An immutable set of settings. The class has the defaults, an instance the values that were set."""

    DEFINITIONS: ClassVar[dict[str, Definition]] = {}
    """Every definition by its key."""
    IGNORED: ClassVar[Mapping[str, str]] = {}
    """Well-known keys (or prefixes ending in `*`) that are accepted without effect, and why."""
    REFUSED: ClassVar[Mapping[str, str]] = {}
    """Well-known keys (or prefixes ending in `*`) for things we do not support, and what to do instead."""

    _help: ClassVar[Mapping[str, str]] = {}

    @override
    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Definition)}
        named = [
            replace(value, name=name, key=f"{value.prefix}*" if value.prefix else name.replace("_", "."))
            for name, value in own.items()
        ]
        inherited = [getattr(ancestor, "DEFINITIONS", {}) for ancestor in reversed(cls.__mro__[1:])]
        cls.DEFINITIONS = {key: value for definitions in inherited for key, value in definitions.items()}
        cls.DEFINITIONS.update({definition.key: definition for definition in named})
        for definition in named:
            setattr(cls, definition.name, definition.default)

    def __init__(self, **values: object) -> None:
        names = {definition.name for definition in self.DEFINITIONS.values()}
        if unknown := values.keys() - names:
            raise TypeError(f"{type(self).__name__} has no setting named {', '.join(sorted(unknown))}")
        self.__dict__.update(values)

    @override
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are immutable: use replace() to change {name}")

    @override
    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, d.name) == getattr(other, d.name) for d in self.DEFINITIONS.values())

    @override
    def __hash__(self) -> int:
        return hash(tuple(getattr(self, d.name) for d in self.DEFINITIONS.values()))

    @override
    def __repr__(self) -> str:
        shown = (f"{key}={'******' if self.DEFINITIONS[key].is_sensitive else self.text_of(key)}" for key in self.set)
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def set(self) -> tuple[str, ...]:
        """The keys that were set explicitly."""
        return tuple(key for key, definition in self.DEFINITIONS.items() if definition.name in self.__dict__)

    def is_set(self, key: str) -> bool:
        """Whether the key was set explicitly, even to its default."""
        return self.DEFINITIONS[key].name in self.__dict__

    def text_of(self, key: str) -> str | None:
        """The value of a key as text, None when it has none."""
        definition = self.DEFINITIONS[key]
        return definition.text(getattr(self, definition.name))

    def replace(self, **changes: object) -> Self:
        """A copy with some values changed (by attribute name); nothing is checked."""
        return type(self)(**{**self.__dict__, **changes})

    def problems(self) -> Iterable[Problem]:
        """Conflicts between these values; each service adds its own rules."""
        return ()

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Self:
        """Read settings from text; reports all unknown and invalid keys together, each with its value and a reason."""
        parsed: dict[str, object] = {}
        problems: list[Problem] = []
        for given, text in values.items():
            try:
                match cls._definition(given, text):
                    case None:
                        continue
                    case Definition(prefix="") as definition:
                        value = definition.parse(text)
                        if parsed.setdefault(definition.name, value) != value:
                            reason = f"{definition.key} was also set, to a different value"
                            raise SettingsError([Problem(key=given, value=text, reason=reason)])
                    case definition:
                        # Properties under a prefix are collected without it.
                        so_far = cast("Properties", parsed.get(definition.name, ()))
                        parsed[definition.name] = (*so_far, (given.removeprefix(definition.prefix), text.strip()))
            except SettingsError as error:
                problems.extend(error.problems)
        settings = cls(**parsed)
        if not problems:
            problems.extend(settings.problems())
        if problems:
            raise SettingsError(problems)
        return settings

    @classmethod
    def ignored(cls, values: Iterable[str]) -> dict[str, str]:
        """The given keys that are accepted but have no effect, and why."""
        reasons = {key: cls._why_ignored(key) for key in values}
        return {key: reason for key, reason in reasons.items() if reason}

    @classmethod
    def help_of(cls, key: str) -> str:
        """The help of a key: the docstring under its definition. Empty when there is none."""
        if "_help" not in vars(cls):
            cls._help = docstrings_of(cls)
        return cls._help.get(cls.DEFINITIONS[key].name, "")

    @classmethod
    def _why_ignored(cls, key: str) -> str | None:
        definition = _canonical(key, cls.DEFINITIONS)
        return definition.without_effect if definition else _match(key, cls.IGNORED)

    @classmethod
    def _definition(cls, given: str, text: str) -> Definition | None:
        """The definition of a key or alias; None when the key is known to have no effect."""
        if definition := _canonical(given, cls.DEFINITIONS):
            return definition
        if (instead := _match(given, cls.REFUSED)) is not None:
            raise SettingsError([Problem(key=given, value=_shown(given, text), reason=instead)])
        if _match(given, cls.IGNORED) is not None:
            return None
        for definition in cls.DEFINITIONS.values():
            if definition.prefix and given.startswith(definition.prefix):
                return definition
        raise SettingsError([Problem(key=given, value=_shown(given, text), reason=_unknown(given, cls.DEFINITIONS))])


def _canonical(key: str, definitions: Mapping[str, Definition]) -> Definition | None:
    """The definition of a key or of an alias."""
    if key in definitions:
        return definitions[key]
    return next((definition for definition in definitions.values() if key in definition.aliases), None)


def _match(key: str, table: Mapping[str, str]) -> str | None:
    if key in table:
        return table[key]
    prefixes = (pattern for pattern in table if pattern.endswith("*") and key.startswith(pattern[:-1]))
    return next((table[pattern] for pattern in prefixes), None)


def _shown(key: str, text: str) -> str:
    """The value of a key without a definition, unless it sounds like a secret."""
    return "******" if any(word in key.lower() for word in _SECRET_WORDS) else text


def _unknown(key: str, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(key, known, n=1)
    return f"unknown setting; did you mean {close[0]}?" if close else "unknown setting"


def docstrings_of(settings: type) -> dict[str, str]:
    """The docstrings under the attributes of a class, read from its source, and so only when needed."""
    import ast
    import inspect
    import textwrap

    found: dict[str, str] = {}
    for ancestor in reversed(settings.__mro__[:-1]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(ancestor)))
        for line, following in pairwise(cast("ast.ClassDef", tree.body[0]).body):
            match line, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
                case _:
                    pass
    return found


# --- kinds ---


def _integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return read


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("must be true or false")


def _double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


def _strings(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


BOOLEAN = Kind(name="boolean", wire=1, read=_boolean, write=lambda v: "true" if v else "false", allowed="true or false")
STRING = Kind(name="string", wire=2, read=str, write=str, allowed="any text")
INT = Kind(name="int", wire=3, read=_integer(-(2**31), INT_MAX), write=str, allowed="a whole number (32 bits)")
SHORT = Kind(name="short", wire=4, read=_integer(-(2**15), 2**15 - 1), write=str, allowed="a whole number (16 bits)")
LONG = Kind(name="long", wire=5, read=_integer(-(2**63), LONG_MAX), write=str, allowed="a whole number (64 bits)")
DOUBLE = Kind(name="double", wire=6, read=_double, write=repr, allowed="a number")
LIST = Kind(name="list", wire=7, read=_strings, write=",".join, allowed="values separated by commas")
CLASS = Kind(name="class", wire=8, read=str, write=str, allowed="the name of a class")
PASSWORD = Kind(name="password", wire=9, read=str, write=str, allowed="any text")


def optional(kind: Kind[T]) -> Kind[T | None]:
    """The same kind, where None means "not set", so the default comes from elsewhere."""
    return cast("Kind[T | None]", replace(kind, name=kind.name))


# --- checks ---


def at_least(minimum: float) -> Check:
    """Accept numbers from `minimum` upward."""
    return Check(accepts=lambda value: bool(value >= minimum), allowed=f"at least {minimum}")


def between(minimum: float, maximum: float) -> Check:
    """Accept numbers from `minimum` to `maximum`, both included."""
    return Check(accepts=lambda value: minimum <= value <= maximum, allowed=f"between {minimum} and {maximum}")


def one_of(*choices: str) -> Check:
    """Accept one of the given words."""
    return Check(accepts=lambda value: value in choices, allowed=f"one of {', '.join(choices)}")


def some_of(*choices: str) -> Check:
    """Accept a non-empty list of the given words."""
    allowed = f"one or more of {', '.join(choices)}"
    return Check(accepts=lambda values: bool(values) and set(values) <= set(choices), allowed=allowed)


def not_empty() -> Check:
    """Accept any text or list but the empty one."""
    return Check(accepts=bool, allowed="not empty")


# --- settings of every service ---


class ServiceSettings(Settings):
    """Settings that every service has."""

    logging_level: str = setting(STRING, default="INFO", check=one_of("DEBUG", "INFO", "WARNING", "ERROR"))
    """Least severity that is logged."""
    logging_format: str = setting(STRING, default="auto", check=one_of("auto", "text", "json"))
    """How log lines look: text for people, json for machines, auto chooses text on a terminal and json elsewhere."""
