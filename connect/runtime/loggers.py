"""Levels of this process's loggers, in Kafka Connect's words: changed and shown while it runs."""

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
"""When loggers were changed; for the whole process, as they are."""


class LoggerLevel(msgspec.Struct, frozen=True, kw_only=True):
    """How much a logger tells, and since when that was changed by hand."""

    level: Annotated[str, Meta(description="TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF.", examples=["INFO"])]
    last_modified: Annotated[int | None, Meta(description="When it was changed, in milliseconds since 1970.")] = None


class Loggers:
    """The loggers of this process; every instance has the same ones."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def listed(self) -> dict[str, LoggerLevel]:
        """Those that have a level of their own, by name."""
        own = {name: logger for name, logger in _existing().items() if logger.level != logging.NOTSET}
        return {name: self._told(name, logger) for name, logger in sorted({**own, ROOT: logging.getLogger()}.items())}

    def level(self, name: str) -> LoggerLevel:
        """How much one logger tells; NotFound when there is none of that name."""
        if name.lower() == ROOT:
            return self._told(ROOT, logging.getLogger())
        found = _existing().get(name)
        if found is None:
            raise NotFound(f"Logger {name} not found.")
        return self._told(name, found)

    def set_level(self, namespace: str, level: str) -> list[str]:
        """Change a logger and all below it; gives their names. NotFound for a level that does not exist."""
        number = _LEVELS[checked_level(level)]
        if len(namespace) > _MAX_NAME:
            raise BadRequest(f"A logger's name has at most {_MAX_NAME} characters.")
        affected = _below(namespace)
        for name, logger in affected.items():
            logger.setLevel(number)
            _changed_ms[name] = self._clock.now_ms()
        return sorted(affected)

    def _told(self, name: str, logger: logging.Logger) -> LoggerLevel:
        return LoggerLevel(level=_name_of(logger.getEffectiveLevel()), last_modified=_changed_ms.get(name))


def checked_level(level: str) -> str:
    """A level in Kafka Connect's words; NotFound (so it is there) when it does not exist."""
    upper = level.strip().upper()
    known = _SYNONYMS.get(upper, upper)
    if known not in _LEVELS:
        raise NotFound(f"invalid log level '{level}'.")
    return known


def _below(namespace: str) -> dict[str, logging.Logger]:
    if namespace.lower() == ROOT:
        return {**_existing(), ROOT: logging.getLogger()}
    inside = {name: logger for name, logger in _existing().items() if name.startswith(f"{namespace}.")}
    return {**inside, namespace: logging.getLogger(namespace)}


def _existing() -> dict[str, logging.Logger]:
    known = logging.Logger.manager.loggerDict
    return {name: logger for name, logger in list(known.items()) if isinstance(logger, logging.Logger)}


def _name_of(number: int) -> str:
    return _NAMES.get(number) or next((name for floor, name in _NAMES.items() if number <= floor), "OFF")
