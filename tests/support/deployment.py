"""Deployment files as their readers see them: YAML, and settings read by each service's own parser."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from connect.settings import ConnectSettings
from core_broker.service.properties import from_environment
from core_broker.service.settings import ServiceSettings
from deploy.services import settings_type
from deploy.stack import BROKER, BY_NAME, STACK, ServiceAddress, settings_of
from streams.settings import SparkSettings
from tests.support.service import REPOSITORY

DEPLOY: Final = REPOSITORY / "deploy"
DOCKERFILE: Final = DEPLOY / "docker" / "Dockerfile"
NETWORK_PORT: Final = 29092
"""The broker's listener for other containers; the machine around them uses its usual port."""


def read_yaml(path: Path) -> Any:
    """A YAML file of one document."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def read_compose(path: Path) -> Any:
    """A compose file; variables keep their form, and `$$` is what it stands for."""
    return yaml.safe_load(path.read_text(encoding="utf-8").replace("$$", "$"))


def merge_compose(first: Any, second: Any) -> Any:
    """What `docker compose -f first -f second` makes of two files: mappings are merged, lists joined."""
    if isinstance(first, dict) and isinstance(second, dict):
        merged = {key: merge_compose(first[key], value) if key in first else value for key, value in second.items()}
        return first | merged
    return [*first, *second] if isinstance(first, list) and isinstance(second, list) else second


def parse_settings(command: str, values: Mapping[str, str]) -> ServiceSettings:
    """Read settings as the service does; raises `SettingsError` for what it would refuse, or would only ignore."""
    kind = settings_type(command)
    ignored = kind.ignored(values)
    assert not ignored, f"{command}: without effect: {ignored}"
    if kind is ConnectSettings:
        SparkSettings.among(values)
    return kind.parse(values)


def settings_in(command: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that a service would find in an environment; every variable must be one."""
    prefix = BY_NAME.get(command, BY_NAME["connect"]).environment_prefix
    found = from_environment(environment, prefix)
    assert len(found) == len(environment), f"{command}: variables that are no settings: {sorted(environment)}"
    return found


def stack_settings(name: str, *, data: str, host: str | None = None) -> dict[str, str]:
    """What the stack says about a service: in a container of its name, or on one host beside the others."""
    addresses = {
        service.name: ServiceAddress(
            host=host or service.name,
            port=NETWORK_PORT if service is BROKER and host is None else service.port,
            data=data,
            metrics_port=service.metrics_port,
        )
        for service in STACK
    }
    return settings_of(name, addresses)


def observed_ports() -> dict[str, int]:
    """Where each service tells its health and metrics."""
    return {service.name: service.metrics_port or service.port for service in STACK}


def stages(dockerfile: str) -> dict[str, str]:
    """The lines of each stage of a Dockerfile, with those of the stages it is built on."""
    parts = re.split(r"^FROM (\S+) AS (\S+)$", dockerfile, flags=re.MULTILINE)[1:]
    found: dict[str, str] = {}
    for parent, name, body in zip(parts[0::3], parts[1::3], parts[2::3], strict=True):
        found[name] = found.get(parent, "") + body
    return found
