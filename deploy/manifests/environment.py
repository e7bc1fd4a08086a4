"""Settings as environment variables, in the names that the images of Kafka and Confluent have made known."""

import re
from collections.abc import Mapping
from typing import Final

_WRITTEN: Final = {".": "_", "-": "__", "_": "___"}


def variable_of(prefix: str, key: str) -> str:
    """The variable of a setting: `log.dirs` of a broker is KAFKA_LOG_DIRS."""
    return prefix + re.sub("[._-]", lambda sign: _WRITTEN[sign[0]], key).upper()


def variables_of(prefix: str, settings: Mapping[str, str]) -> dict[str, str]:
    """All settings of a service as variables."""
    return {variable_of(prefix, key): value for key, value in settings.items()}
