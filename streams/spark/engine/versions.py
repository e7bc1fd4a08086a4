"""The version and settings that an engine runs with, for clients to compare with theirs."""

import hashlib
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from streams.settings import SparkSettings

_IRRELEVANT: Final = {
    "spark.caudal.data.dir",
    "spark.caudal.idle.timeout.ms",
    "spark.caudal.start",
    "spark.caudal.start.timeout.ms",
}
"""Engines that differ only in these behave the same."""


def caudal_version() -> str:
    """The version of Caudal."""
    try:
        return version("caudal")
    except PackageNotFoundError:
        return "unknown"


def setting_digests(settings: SparkSettings) -> dict[str, str]:
    """A digest of each effective setting: enough to compare them without revealing passwords."""
    named = {key: settings.text_of(key) or "" for key, found in settings.DEFINITIONS.items() if not found.prefix}
    values = {**settings.of_spark(), **named, "spark.caudal.warehouse.dir": settings.warehouse}
    return {key: hashlib.sha256(f"{key}={value}".encode()).hexdigest()[:12] for key, value in values.items()}


def differing_keys(wanted: SparkSettings, running: dict[str, str]) -> list[str]:
    """The given settings that an engine does not run with."""
    given = {*wanted.set, *(f"spark.{name}" for name, _ in wanted.spark_properties)}
    mine = setting_digests(wanted)
    return sorted(key for key in given - _IRRELEVANT if key in mine and running.get(key) != mine[key])
