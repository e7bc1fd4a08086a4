"""Finds the classes that configurations name: built-in ones, and those of installed packages."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points, version
from threading import RLock
from typing import Annotated, Any, Generic, Self, TypeVar

import msgspec
from msgspec import Meta

from connect.api.connector import Connector
from connect.api.converter import Converter, HeaderConverter
from connect.api.errors import ConfigError
from connect.api.sink import SinkConnector
from connect.api.transform import Predicate, Transform

log = logging.getLogger(__name__)

P = TypeVar("P")


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True, rename={"name": "class"}):
    """A plugin as the REST API lists it."""

    name: Annotated[
        str,
        Meta(description="The name of its class.", examples=["org.apache.kafka.connect.file.FileStreamSinkConnector"]),
    ]
    type: Annotated[str, Meta(description="source, sink, converter, header_converter, transformation or predicate.")]
    version: Annotated[str, Meta(description="Its version.", examples=["1.0"])]


def name_of(plugin: type) -> str:
    """The displayed name of a plugin: Kafka Connect's if it has one, else that of the Python class."""
    aliases: tuple[str, ...] = getattr(plugin, "aliases", ())
    return aliases[0] if aliases else _python_name(plugin)


class Family(Generic[P]):
    """All plugins of one kind. Those of packages are imported on demand, since they may be large."""

    def __init__(
        self, kind: type[P], *, suffix: str, built_in: Iterable[type[P]] = (), installed: Iterable[EntryPoint] = ()
    ) -> None:
        self._kind = kind
        self._suffix = suffix
        self._loaded = list(built_in)
        self._not_loaded = list(installed)
        self._broken: dict[str, str] = {}
        self._lock = RLock()

    def find(self, name: str) -> type[P]:
        """The class by its full name, its last part, or that without the suffix; ConfigError when unknown."""
        with self._lock:
            found = self._by_full_name(name)
            if found is None:
                # First those whose class is probably the one of that full name, so that others need not be imported.
                likely = self._shorten(name)
                points = self._not_loaded
                self._load([point for point in points if likely in map(self._shorten, (point.name, point.attr))])
                found = self._by_full_name(name)
            if found is None:
                self._load(list(self._not_loaded))
                found = self._by_full_name(name) or self._by_short_name(name)
            if found is None:
                kind = self._kind.__name__
                known = ", ".join(sorted(map(name_of, self._loaded)))
                broken = "".join(f"; {point} cannot be loaded: {reason}" for point, reason in self._broken.items())
                raise ConfigError(
                    f"Failed to find any class that implements {kind} and which name matches {name}, "
                    f"available {kind.lower()}s are: {known}{broken}"
                )
            return found

    def all(self) -> list[type[P]]:
        """Every class, in the order of their displayed names."""
        with self._lock:
            self._load(list(self._not_loaded))
            return sorted(self._loaded, key=name_of)

    def _by_full_name(self, name: str) -> type[P] | None:
        return next((plugin for plugin in self._loaded if name in _full_names(plugin)), None)

    def _by_short_name(self, name: str) -> type[P] | None:
        found = [plugin for plugin in self._loaded if any(self._is_short(name, full) for full in _full_names(plugin))]
        if len(found) > 1:
            preferred = [plugin for plugin in found if self._is_short(name, name_of(plugin))]
            found = preferred or found
        if len(found) > 1:
            # Kafka's own plugins take precedence.
            found = [plugin for plugin in found if name_of(plugin).startswith("org.apache.kafka.")] or found
        if len(found) > 1:
            raise ConfigError(
                f"More than one {self._kind.__name__.lower()} matches alias {name}. Please use full package and class "
                f"name instead. Classes found: {', '.join(map(name_of, found))}"
            )
        return found[0] if found else None

    def _is_short(self, name: str, full: str) -> bool:
        return name in (full.rpartition(".")[2], self._shorten(full))

    def _shorten(self, full: str) -> str:
        return full.rpartition(".")[2].removesuffix(self._suffix)

    def _load(self, points: Sequence[EntryPoint]) -> None:
        for point in points:
            self._not_loaded.remove(point)
            try:
                loaded = point.load()
                if not (isinstance(loaded, type) and issubclass(loaded, self._kind)):
                    raise TypeError(f"{point.value} is not a {self._kind.__name__}")
            except Exception as error:  # noqa: BLE001 - a broken package must not affect the others
                self._broken[point.name] = reason = f"{type(error).__name__}: {error}"
                log.warning("plugin cannot be loaded", extra={"plugin": point.value, "reason": reason})
            else:
                self._loaded.append(loaded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """All connectors, converters, transforms and predicates of this worker."""

    connectors: Family[Connector]
    converters: Family[Converter]
    header_converters: Family[HeaderConverter]
    transforms: Family[Transform]
    predicates: Family[Predicate]
    own_version: str = field(default="")

    @classmethod
    def load(cls) -> Self:
        """The built-in ones, and the entry points of installed packages."""
        from connect.converters.table import CONVERTERS, HEADER_CONVERTERS
        from connect.transforms.table import PREDICATES, TRANSFORMS

        return cls.of(
            converters=CONVERTERS, header_converters=HEADER_CONVERTERS, transforms=TRANSFORMS, predicates=PREDICATES
        )

    @classmethod
    def of(
        cls,
        *,
        connectors: Iterable[type[Connector]] = (),
        converters: Iterable[type[Converter]] = (),
        header_converters: Iterable[type[HeaderConverter]] = (),
        transforms: Iterable[type[Transform]] = (),
        predicates: Iterable[type[Predicate]] = (),
    ) -> Self:
        """These classes, and the entry points of installed packages."""
        # This reads a file of every installed package: once for all kinds.
        installed = entry_points()

        def family(kind: Any, suffix: str, group: str, built_in: Iterable[type[Any]]) -> Family[Any]:
            return Family(kind, suffix=suffix, built_in=built_in, installed=installed.select(group=f"caudal.{group}"))

        return cls(
            connectors=family(Connector, "Connector", "connectors", connectors),
            converters=family(Converter, "Converter", "converters", converters),
            header_converters=family(HeaderConverter, "Converter", "header_converters", header_converters),
            transforms=family(Transform, "Transformation", "transforms", transforms),
            predicates=family(Predicate, "Predicate", "predicates", predicates),
            own_version=version("caudal"),
        )

    def infos(self, *, connectors_only: bool) -> list[PluginInfo]:
        """All plugins in Kafka Connect's order: sinks, sources, then transforms, predicates and converters."""
        connectors = self.connectors.all()
        sinks = [plugin for plugin in connectors if issubclass(plugin, SinkConnector)]
        infos = [self._info(plugin, "sink") for plugin in sinks]
        infos += [self._info(plugin, "source") for plugin in connectors if plugin not in sinks]
        if not connectors_only:
            others: dict[str, Family[Any]] = {
                "transformation": self.transforms,
                "predicate": self.predicates,
                "converter": self.converters,
                "header_converter": self.header_converters,
            }
            infos += [self._info(plugin, kind) for kind, family in others.items() for plugin in family.all()]
        return infos

    def version_of(self, plugin: type) -> str:
        """The version of a plugin; that of the worker unless the plugin has its own."""
        return getattr(plugin, "version", None) or self.own_version

    def _info(self, plugin: type, kind: str) -> PluginInfo:
        return PluginInfo(name=name_of(plugin), type=kind, version=self.version_of(plugin))


def _full_names(plugin: type) -> tuple[str, ...]:
    return (*getattr(plugin, "aliases", ()), _python_name(plugin))


def _python_name(plugin: type) -> str:
    return f"{plugin.__module__}.{plugin.__qualname__}"
