"""The version of this software, and how a broker offers it to those who ask.

Kafka's protocol has no field for it. Our brokers offer a feature (KIP-584) whose highest level is the version; nothing
ever finalises it, so brokers and controllers of any other kind ignore it.
"""

from functools import cache
from importlib.metadata import version
from typing import Final

VERSION_FEATURE: Final = "caudal.version"
_MAJOR, _MINOR = 10_000, 100


@cache
def version_level() -> int:
    """Our version as a level of the feature: 0.1.0 is 100, 1.2.3 is 10203."""
    major, minor, patch = (int(part) for part in version("caudal").split(".")[:3])
    return major * _MAJOR + minor * _MINOR + patch


def version_at(level: int) -> str:
    """The version that a level stands for."""
    return f"{level // _MAJOR}.{level % _MAJOR // _MINOR}.{level % _MINOR}"
