"""Deployment files as those read them for whom they are made: YAML, and settings by each service's own parser."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from connect.settings import ConnectSettings
from core_broker.service.properties import from_environment
from core_broker.service.settings import ServiceSettings
from core_broker.settings import BrokerSettings
from deploy.stack import BY_NAME
from rest_proxy.settings import ProxySettings
from schema_registry.settings import RegistrySettings
from streams.settings import SparkSettings
from tests.support.service import REPOSITORY

DEPLOY: Final = REPOSITORY / "deploy"
SETTINGS: Final[Mapping[str, type[ServiceSettings]]] = {
    "broker": BrokerSettings,
    "registry": RegistrySettings,
    "rest-proxy": ProxySettings,
    "connect": ConnectSettings,
    "connect-worker": ConnectSettings,
}
"""By the name of the command."""


def read_yaml(path: Path) -> Any:
    """A YAML file of one document."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def parse_settings(command: str, values: Mapping[str, str]) -> ServiceSettings:
    """Read settings as the service does; raises `SettingsError` for what it would refuse, or would only ignore."""
    kind = SETTINGS[command]
    ignored = kind.ignored(values)
    assert not ignored, f"{command}: without effect: {ignored}"
    if kind is ConnectSettings:
        SparkSettings.among(values)
    return kind.parse(values)


def settings_in(command: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that a service of this command would find in an environment; all of it must be settings."""
    prefix = BY_NAME.get(command, BY_NAME["connect"]).environment_prefix
    found = from_environment(environment, prefix)
    assert len(found) == len(environment), f"{command}: variables that are no settings: {sorted(environment)}"
    return found
