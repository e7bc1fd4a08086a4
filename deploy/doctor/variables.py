"""Environment variables that services read: which have an effect, would be refused, or are unknown."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

from core_broker.service.properties import from_environment
from core_broker.service.settings import Problem, SettingsError
from deploy.clients.profiles import FOLDER_VARIABLE, PROFILE_VARIABLE
from deploy.doctor.finding import Context, Finding, note, ok, problem, warning
from deploy.launcher.request import DATA_VARIABLE
from deploy.services import settings_type
from deploy.stack import STACK, Service

_OURS: Final = "CAUDAL_"
_SPARK: Final = "CAUDAL_SPARK_"
_KNOWN: Final = (
    "CAUDAL_BOOTSTRAP",
    "CAUDAL_REGISTRY",
    "CAUDAL_REGISTRY_USER",
    "CAUDAL_CONNECT",
    "CAUDAL_STREAMS",
    "CAUDAL_CLIENT_CONFIG",
    PROFILE_VARIABLE,
    FOLDER_VARIABLE,
    "CAUDAL_INSECURE_HTTP",
    DATA_VARIABLE,
    "CAUDAL_COMPLETION_TIMEOUT",
)
"""The variables of the tools."""


def variables(context: Context) -> Iterator[Finding]:
    """Which variables change the services and the tools, or would keep them from starting?"""
    found = [
        *(finding for service in STACK for finding in _service_variables(service, context)),
        *_spark_variables(context.environment),
        *_tool_variables(context.environment),
    ]
    yield from found or [ok("Variables", "none that changes a service or a tool")]


def _service_variables(service: Service, context: Context) -> Iterator[Finding]:
    names = _names_by_key(context.environment, service.environment_prefix)
    values = from_environment(context.environment, service.environment_prefix)
    settings = settings_type(service.name)
    refused: tuple[Problem, ...] = ()
    try:
        settings.parse(values)
    except SettingsError as error:
        refused = error.problems
    yield from (_refusal(service.name, names, item, f"see {service.settings_page}") for item in refused)
    ignored = settings.ignored(values)
    for key, reason in ignored.items():
        yield note(names[key], f"{service.name}: accepted without effect: {reason}")
    effective = [names[key] for key in values if key not in {*ignored, *(item.key for item in refused)}]
    if effective:
        yield note(f"Variables: {service.name}", f"{', '.join(sorted(effective))} change its settings")


def _spark_variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    from streams.settings import SparkSettings

    given = {name: value for name, value in environment.items() if name.startswith(_SPARK)}
    names = _names_by_key(given, _OURS)
    refused: tuple[Problem, ...] = ()
    try:
        SparkSettings.read(file=None, environment=given)
    except SettingsError as error:
        refused = error.problems
    yield from (_refusal("caudal spark", names, item, "see streams/SETTINGS.md") for item in refused)
    effective = [name for key, name in names.items() if key not in {item.key for item in refused}]
    if effective:
        yield note("Variables: spark", f"{', '.join(sorted(effective))} change the settings of  caudal spark")


def _tool_variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    given = [name for name in environment if name.startswith(_OURS) and not name.startswith(_SPARK)]
    known = sorted(name for name in given if name in _KNOWN)
    if known:
        shown = ", ".join(name if name.endswith("_USER") else f"{name}={environment[name]}" for name in known)
        yield note("Variables: tools", f"{shown}: the defaults of the tools' options")
    for name in sorted(set(given) - set(known)):
        close = difflib.get_close_matches(name, _KNOWN, n=1)
        steps = [f"did you mean {close[0]}?"] if close else [f"there are {', '.join(_KNOWN)} and {_SPARK}..."]
        yield warning(name, "not a variable that Caudal reads", *steps)


def _refusal(reader: str, names: Mapping[str, str], refused: Problem, where: str) -> Finding:
    name = names.get(refused.key, refused.key)
    return problem(name, f"{reader} would not start: {refused}", f"unset or correct {name}: {where}")


def _names_by_key(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The variable behind each setting."""
    return {key: name for name in environment for key in from_environment({name: ""}, prefix)}
