"""Which program and which settings an engine was started with."""

import hashlib
from importlib.metadata import PackageNotFoundError, version

from streams.settings import SparkSettings
from streams.spark.engine.properties_text import properties_text


def own_version() -> str:
    """The version of Caudal."""
    try:
        return version("caudal")
    except PackageNotFoundError:
        return "unknown"


def digest_of(settings: SparkSettings) -> str:
    """The same for the same settings; tells nothing about passwords among them."""
    values = {key: value for key, value in settings.as_text().items() if "timeout" not in key}
    defaults = {"spark.master": settings.spark_master, "spark.driver.memory": settings.spark_driver_memory}
    return hashlib.sha256(properties_text({**defaults, **values}).encode()).hexdigest()[:16]
