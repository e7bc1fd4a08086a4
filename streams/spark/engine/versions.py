"""Which program and which settings an engine was started with."""

import hashlib
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from streams.settings import SparkSettings

_NO_MATTER: Final = {
    "spark.caudal.data.dir",
    "spark.caudal.idle.timeout.ms",
    "spark.caudal.start",
    "spark.caudal.start.timeout.ms",
}
"""Engines that differ in these alone do the same."""


def own_version() -> str:
    """The version of Caudal."""
    try:
        return version("caudal")
    except PackageNotFoundError:
        return "unknown"


def digests_of(settings: SparkSettings) -> dict[str, str]:
    """A digest of each setting as it is in effect: enough to compare them, and no password among them is told."""
    named = {key: settings.text_of(key) or "" for key, found in settings.DEFINITIONS.items() if not found.prefix}
    values = {**settings.of_spark(), **named, "spark.caudal.warehouse.dir": settings.warehouse}
    return {key: _digest(key, value) for key, value in values.items()}


def other_keys(wanted: SparkSettings, running: dict[str, str]) -> list[str]:
    """Which of the settings that were given are not those that an engine runs with."""
    given = {*wanted.set, *(f"spark.{name}" for name, _ in wanted.spark_properties)}
    mine = digests_of(wanted)
    return sorted(key for key in given - _NO_MATTER if key in mine and running.get(key) != mine[key])


def _digest(key: str, value: str) -> str:
    return hashlib.sha256(f"{key}={value}".encode()).hexdigest()[:12]
