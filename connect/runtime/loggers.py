"""Shows and changes the levels of this process's loggers, with Kafka Connect's names."""

import logging
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from connect.runtime.errors import BadRequest, NotFound
from core_broker.service.clock import Clock, SystemClock

ROOT: Final = "root"
_OFF: Final = logging.CRITICAL + 1
_LEVELS: Final[dict[str, int]] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": _OFF,
}
_SYNONYMS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_NAMES: Final = {number: name for name, number in _LEVELS.items()}
_MAX_NAME: Final = 500
_changed_ms: Final[dict[str, int]] = {}
"""When loggers were changed; process-wide, as loggers are."""


class LoggerLevel(msgspec.Struct, frozen=True, kw_only=True):
    """The level of a logger, and when it was set over the API."""

    level: Annotated[str, Meta(description="TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF.", examples=["INFO"])]
    last_modified: Annotated[int | None, Meta(description="When it was set, in milliseconds since 1970.")] = None


class Loggers:
    """The loggers of this process; all instances share them."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def levels(self) -> dict[str, LoggerLevel]:
        """The loggers with a level of their own, by name."""
        own = {name: logger for name, logger in _existing().items() if logger.level != logging.NOTSET}
        return {
            name: self._level_of(name, logger) for name, logger in sorted({**own, ROOT: logging.getLogger()}.items())
        }

    def level(self, name: str) -> LoggerLevel:
        """The level of one logger; NotFound when it does not exist."""
        if name.lower() == ROOT:
            return self._level_of(ROOT, logging.getLogger())
        found = _existing().get(name)
        if found is None:
            raise NotFound(f"Logger {name} not found.")
        return self._level_of(name, found)

    def set_level(self, namespace: str, level: str) -> list[str]:
        """Set the level of a logger and all below it; returns their names. NotFound for an unknown level."""
        number = _LEVELS[parse_level(level)]
        if len(namespace) > _MAX_NAME:
            raise BadRequest(f"A logger's name may have at most {_MAX_NAME} characters.")
        if namespace.lower() == ROOT:
            affected = {**_existing(), ROOT: logging.getLogger()}
        else:
            affected = {name: logger for name, logger in _existing().items() if name.startswith(f"{namespace}.")}
            affected[namespace] = logging.getLogger(namespace)
        for name, logger in affected.items():
            logger.setLevel(number)
            _changed_ms[name] = self._clock.now_ms()
        return sorted(affected)

    def _level_of(self, name: str, logger: logging.Logger) -> LoggerLevel:
        number = logger.getEffectiveLevel()
        level = _NAMES.get(number) or next((name for floor, name in _NAMES.items() if number <= floor), "OFF")
        return LoggerLevel(level=level, last_modified=_changed_ms.get(name))


def parse_level(level: str) -> str:
    """Kafka Connect's name of a level; NotFound, as in Kafka Connect, when it is unknown."""
    upper = level.strip().upper()
    known = _SYNONYMS.get(upper, upper)
    if known not in _LEVELS:
        raise NotFound(f"invalid log level '{level}'.")
    return known


def _existing() -> dict[str, logging.Logger]:
    known = logging.Logger.manager.loggerDict
    return {name: logger for name, logger in list(known.items()) if isinstance(logger, logging.Logger)}
