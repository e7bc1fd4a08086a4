"""The transforms of a connector in order, each with the predicate that selects its records."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from connect.api.config import BOOLEAN, LIST, Option
from connect.api.errors import ConfigError
from connect.api.transform import Predicate, R, Transform

T = TypeVar("T")
_TRANSFORMS = Option(key="transforms", kind=LIST, default=())
_PREDICATES = Option(key="predicates", kind=LIST, default=())


class Step:
    """One transform of a chain."""

    def __init__(
        self, name: str, transform: Transform, *, predicate: Predicate | None = None, is_negated: bool = False
    ) -> None:
        self.name = name
        """Its alias in the configuration."""
        plugin = type(transform)
        self.class_name = plugin.aliases[0] if plugin.aliases else f"{plugin.__module__}.{plugin.__qualname__}"
        """Kafka Connect's name of its class."""
        self._transform = transform
        self._predicate = predicate
        self._is_negated = is_negated

    def apply(self, record: R) -> R | None:
        """The record afterwards, the same one when the predicate does not select it, or None when it is dropped."""
        if self._predicate is not None and self._predicate.test(record) is self._is_negated:
            return record
        return self._transform.apply(record)

    def close(self) -> None:
        """Close the transform and its predicate."""
        try:
            self._transform.close()
        finally:
            if self._predicate is not None:
                self._predicate.close()


class Chain:
    """The transforms that a configuration names; ConfigError when one of them cannot be made."""

    def __init__(
        self,
        config: Mapping[str, str],
        transform: Callable[[str], type[Transform]],
        predicate: Callable[[str], type[Predicate]],
    ) -> None:
        """`transform` and `predicate` find classes by the names in configurations."""
        self._config = config
        self._transform = transform
        self._predicate = predicate
        predicates = frozenset(_aliases(_PREDICATES, config))
        self.steps: list[Step] = []
        try:
            self.steps.extend(self._step(alias, predicates) for alias in _aliases(_TRANSFORMS, config))
        except Exception:
            for step in self.steps:
                step.close()
            raise

    def close(self) -> None:
        """Close all of them, even if that fails for one; its error is raised at the end."""
        errors = []
        for step in self.steps:
            try:
                step.close()
            except Exception as error:  # noqa: BLE001  # a plugin may raise anything, and the others must be closed
                errors.append(error)
        if errors:
            raise errors[0]

    def _step(self, alias: str, predicates: frozenset[str]) -> Step:
        prefix = f"transforms.{alias}."
        transform_class = self._transform(self._require(f"{prefix}type"))
        predicate_alias = self._config.get(f"{prefix}predicate")
        negate = self._config.get(f"{prefix}negate")
        if negate is not None and predicate_alias is None:
            raise ConfigError(
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' defining a predicate"
                " to be negated."
            )
        options = {key: value for key, value in self._below(prefix).items() if key not in {"predicate", "negate"}}
        predicate = None if predicate_alias is None else self._make_predicate(predicate_alias, predicates, key=prefix)
        is_negated = negate is not None and Option(key=f"{prefix}negate", kind=BOOLEAN, default=False).parse(negate)
        transform = _make(transform_class, options, prefix=prefix)
        return Step(alias, transform, predicate=predicate, is_negated=is_negated)

    def _make_predicate(self, alias: str, known: frozenset[str], *, key: str) -> Predicate:
        if alias not in known:
            allowed = ", ".join(sorted(known)) or "none are configured"
            raise ConfigError(
                f"Invalid value {alias} for configuration {key}predicate: must be one of `predicates`: {allowed}"
            )
        prefix = f"predicates.{alias}."
        return _make(self._predicate(self._require(f"{prefix}type")), self._below(prefix), prefix=prefix)

    def _require(self, key: str) -> str:
        value = self._config.get(key)
        if value is None or not value.strip():
            raise ConfigError(f'Missing required configuration "{key}" which has no default value.')
        return value.strip()

    def _below(self, prefix: str) -> dict[str, str]:
        below = {key.removeprefix(prefix): value for key, value in self._config.items() if key.startswith(prefix)}
        below.pop("type", None)
        return below


def _make(plugin: Callable[[Mapping[str, str]], T], options: Mapping[str, str], *, prefix: str) -> T:
    try:
        return plugin(options)
    except ConfigError as error:
        raise ConfigError(f"{prefix.removesuffix('.')}: {error}") from error


def _aliases(option: Option, config: Mapping[str, str]) -> tuple[str, ...]:
    aliases: tuple[str, ...] = option.parse(config.get(option.key) or "")
    if len(set(aliases)) != len(aliases):
        given = ", ".join(aliases)
        raise ConfigError(f"Invalid value [{given}] for configuration {option.key}: Duplicate alias provided.")
    return aliases
