"""Resolves `${provider:path:key}`: values from files and environment variables of the machine.

Connectors and tasks get the resolved values when they start; they are never stored, shown or logged.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, NamedTuple

from typing_extensions import override

from connect.api.config_provider import ConfigProvider
from connect.api.errors import ConfigError
from connect.runtime.configuration.reach import limits_of
from connect.settings import ConnectSettings
from core_broker.service.properties import parse_properties

_MAX_BYTES: Final = 1024 * 1024
_SHORTEST_SECRET: Final = 3
_GROUP: Final = "caudal.config_providers"
_LIMITING: Final = ("allowed.paths", "allowlist.pattern")


class _Placeholder(NamedTuple):
    start: int
    end: int
    provider: str
    path: str
    key: str

    @property
    def shown(self) -> str:
        """As in a configuration."""
        return f"${{{self.provider}:{self.path + ':' if self.path else ''}{self.key}}}"


class ConfigProviders:
    """The providers of one worker, by their names in its settings (`config.providers`)."""

    def __init__(self, settings: ConnectSettings) -> None:
        options = dict(settings.config_provider_properties)
        self._limits = limits_of(settings)
        self._is_limited = settings.connector_allowed_paths is not None or bool(settings.methods)
        self._unlimited: set[str] = set()
        self._providers: dict[str, ConfigProvider] = {}
        for name in settings.config_providers:
            prefix = f"{name}.param."
            parameters = {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
            try:
                self._providers[name] = _find_class(name, options.get(f"{name}.class"))(parameters)
            except ConfigError as error:
                raise ConfigError(f"config.providers.{name}: {error}") from None
            if not parameters.keys() & _LIMITING:
                self._unlimited.add(name)

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """The same configuration with every placeholder resolved.

        Text that names none of our providers, such as `${topic}`, is kept: connectors have placeholders of their own.
        """
        return {key: self._resolve(key, text) if "${" in text else text for key, text in config.items()}

    def secrets(self, config: Mapping[str, str]) -> dict[str, str]:
        """The resolved values in a configuration, each with its placeholder: for `conceal`.

        Placeholders that cannot be resolved are left out.
        """
        found = {}
        for key, text in config.items():
            for place in _placeholders(text):
                provider = self._providers.get(place.provider)
                if provider is not None:
                    with suppress(ConfigError):
                        found[self._look_up(provider, key, place)] = text[place.start : place.end]
        return found

    def are_placeholders(self, text: str) -> bool:
        """Whether a text is nothing but placeholders of these providers."""
        places = list(_placeholders(text)) if text.startswith("${") else []
        ends = [0, *(place.end for place in places)]
        return (
            bool(places)
            and [place.start for place in places] == ends[:-1]
            and ends[-1] == len(text)
            and all(place.provider in self._providers for place in places)
        )

    def close(self) -> None:
        """Close the providers."""
        for provider in self._providers.values():
            provider.close()

    def _resolve(self, key: str, text: str) -> str:
        parts, end = [], 0
        for place in _placeholders(text):
            provider = self._providers.get(place.provider)
            if provider is not None:
                parts += [text[end : place.start], self._look_up(provider, key, place)]
                end = place.end
        return "".join([*parts, text[end:]])

    def _look_up(self, provider: ConfigProvider, key: str, place: _Placeholder) -> str:
        """A value; providers without limits of their own have those of connectors."""
        if self._is_limited and place.provider in self._unlimited:
            if place.path and not self._limits.allows_path(place.path):
                reason = "it is not in connector.allowed.paths, and config.providers.*.param.allowed.paths is not set"
                raise ConfigError(f"Invalid value {place.shown} for configuration {key}: {reason}")
            if isinstance(provider, EnvironmentProvider):
                reason = f"config.providers.{place.provider}.param.allowlist.pattern is not set"
                raise ConfigError(f"Invalid value {place.shown} for configuration {key}: {reason}")
        return _look_up(provider, key, place)


def conceal(text: str, secrets: Mapping[str, str]) -> str:
    """A text to show to users, such as a trace, with placeholders instead of the secrets in it.

    Values of less than three characters are kept, since they may occur by chance.
    """
    stripped = {value.strip(): placeholder for value, placeholder in list(secrets.items())[::-1]}
    for secret in sorted(stripped, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, stripped[secret])
    return text


class FileProvider(ConfigProvider):
    """`${file:/path/to/some.properties:key}`: values of Java properties files."""

    aliases = ("org.apache.kafka.common.config.provider.FileConfigProvider",)

    def __init__(self, config: Mapping[str, str]) -> None:
        self._allowed = _allowed_paths(config)

    @override
    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        values = parse_properties(_read(_allowed_path(path, self._allowed)))
        return {key: values[key] for key in keys if key in values}


class DirectoryProvider(ConfigProvider):
    """`${dir:/path/to/directory:file}`: contents of whole files, as secrets are mounted into containers."""

    aliases = ("org.apache.kafka.common.config.provider.DirectoryConfigProvider",)

    def __init__(self, config: Mapping[str, str]) -> None:
        self._allowed = _allowed_paths(config)

    @override
    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        folder = _allowed_path(path, self._allowed)
        if not folder.is_dir():
            raise ConfigError(f"{path} is not a directory")
        names = [key for key in keys if key not in ("", ".", "..") and "/" not in key and "\0" not in key]
        return {name: _read(folder / name) for name in names if (folder / name).is_file()}


class EnvironmentProvider(ConfigProvider):
    """`${env:NAME}`: the worker's environment variables."""

    aliases = ("org.apache.kafka.common.config.provider.EnvVarConfigProvider",)

    def __init__(self, config: Mapping[str, str]) -> None:
        try:
            self._allowed = re.compile(config.get("allowlist.pattern", ".*"))
        except re.error as error:
            raise ConfigError(f"Invalid value for allowlist.pattern: not a regular expression: {error}") from None

    @override
    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        if path:
            raise ConfigError(f"environment variables have no path, but {path} was given: write ${{env:NAME}}")
        return {key: os.environ[key] for key in keys if key in os.environ and self._allowed.fullmatch(key)}


_BUILT_IN: Final[Mapping[str, type[ConfigProvider]]] = {
    "file": FileProvider,
    "env": EnvironmentProvider,
    "dir": DirectoryProvider,
}


def _placeholders(text: str) -> Iterator[_Placeholder]:
    """Every `${provider:key}` and `${provider:path:key}`; only the key may contain more colons."""
    end = 0
    while (start := text.find("${", end)) >= 0 and (last := text.find("}", start)) >= 0:
        end = last + 1
        provider, colon, rest = text[start + 2 : last].partition(":")
        path, second, key = rest.partition(":")
        if colon:
            yield _Placeholder(start, end, provider, path if second else "", key if second else path)


def _look_up(provider: ConfigProvider, key: str, place: _Placeholder) -> str:
    shown = place.shown
    try:
        value = provider.get(place.path, (place.key,)).get(place.key)
    except ConfigError as error:
        raise ConfigError(f"Invalid value {shown} for configuration {key}: {error}") from None
    if value is None:
        raise ConfigError(
            f"Invalid value {shown} for configuration {key}: the provider {place.provider} has no such value"
        )
    return value


def _find_class(name: str, wanted: str | None) -> type[ConfigProvider]:
    if wanted is None and name in _BUILT_IN:
        return _BUILT_IN[name]
    for provider in _BUILT_IN.values():
        if _is_called(provider, wanted or name):
            return provider
    points = entry_points(group=_GROUP)
    likely = [point for point in points if point.name == (wanted or name)] or points
    for point in likely:
        loaded: type[ConfigProvider] = point.load()
        if point.name == (wanted or name) or _is_called(loaded, wanted or name):
            return loaded
    known = sorted([*_BUILT_IN, *(point.name for point in points)])
    raise ConfigError(f"there is no provider {wanted or name}; available are {', '.join(known)}")


def _is_called(provider: type[ConfigProvider], name: str) -> bool:
    full = (*provider.aliases, f"{provider.__module__}.{provider.__qualname__}")
    return name in full or name in {alias.rpartition(".")[2] for alias in full}


def _allowed_paths(config: Mapping[str, str]) -> tuple[Path, ...] | None:
    """The directories that providers may read; None for all."""
    listed = [Path(part.strip()) for part in config.get("allowed.paths", "").split(",") if part.strip()]
    for path in listed:
        if not path.is_absolute() or not path.exists():
            raise ConfigError(f"Invalid value {path} for allowed.paths: must be absolute paths that exist")
    return tuple(path.resolve() for path in listed) or None


def _allowed_path(path: str, allowed: tuple[Path, ...] | None) -> Path:
    if not path or "\0" in path:
        raise ConfigError("the path is missing: write ${provider:/path:key}")
    resolved = Path(path).resolve()
    if allowed is not None and not any(resolved == below or below in resolved.parents for below in allowed):
        raise ConfigError(f"{path} is not below allowed.paths")
    return resolved


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ConfigError(f"{path} is longer than {_MAX_BYTES} bytes")
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
