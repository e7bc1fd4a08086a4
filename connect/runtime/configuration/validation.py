"""Validates a connector's configuration before anything is started, and reports all errors at once.

The order is Kafka Connect's: placeholders are resolved, then come the keys of every source or sink, the connector's
own, those of its transforms and predicates, of its converters, and its overrides for Kafka clients. Resolved values are
checked but never shown: responses and errors contain the placeholder.
"""

import difflib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from connect.api.config import HIDDEN, Problem
from connect.api.connector import Connector
from connect.api.errors import ConfigError, ConnectError
from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.runtime.configuration import client_overrides
from connect.runtime.configuration.config_infos import (
    ConfigInfo,
    ConfigInfos,
    ConfigWarning,
    KeyInfo,
    ValueInfo,
    check_section,
    definitions,
    groups_of,
    section_of,
)
from connect.runtime.configuration.config_providers import ConfigProviders, conceal
from connect.runtime.configuration.connector_config import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from connect.runtime.configuration.plugin_sections import converter_sections, stage_sections, topic_creation_section
from connect.runtime.configuration.plugins import Family, Plugins, name_of
from connect.runtime.configuration.reach import limits_of, reach_problems
from connect.runtime.configuration.secrets import MASK, ConfigSecrets
from connect.runtime.errors import BadRequest
from connect.settings import ConnectSettings

log = logging.getLogger(__name__)

_NULL: Final = "Null value can not be supplied as the configuration value."
_SEE_ALSO: Final = (
    "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
)
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")


class Validation:
    """The result of validating a configuration."""

    def __init__(self, infos: ConfigInfos) -> None:
        self.infos = infos

    @property
    def error_count(self) -> int:
        """The number of errors."""
        return self.infos.error_count

    @property
    def errors(self) -> list[str]:
        """The errors, in the order of the keys."""
        return [error for info in self.infos.configs for error in info.value.errors]

    def require(self) -> None:
        """Raise BadRequest with all errors, if there are any."""
        if self.error_count:
            start = f"Connector configuration is invalid and contains the following {self.error_count} error(s):"
            raise BadRequest("\n".join([start, *self.errors, _SEE_ALSO]))


def validate(
    config: Mapping[str, str | None], *, plugins: Plugins, providers: ConfigProviders, settings: ConnectSettings
) -> Validation:
    """Validate a configuration; BadRequest only when it names no connector that this worker has."""
    given = {key: value for key, value in config.items() if value is not None}
    resolved, unresolved = _resolve(given, providers)
    name = resolved.get("connector.class", "").strip()
    if not name:
        raise BadRequest(f"Connector config {{{', '.join(config)}}} contains no connector type")
    try:
        connector = plugins.connectors.find(name)
    except ConfigError as error:
        raise BadRequest(str(error)) from None
    work = _Work(config=resolved, connector=connector, plugins=plugins, settings=settings)
    sheet = _Sheet(_check_values(work))
    for key in (key for key, value in config.items() if value is None):
        sheet.replace_errors(key, _NULL)
    for problem in unresolved:
        sheet.replace_errors(problem.key, problem.message)
    with limits_of(settings).enforced():
        for problem in _all_problems(work, sheet):
            sheet.add(problem)
    secrets = ConfigSecrets(plugins, providers)
    sheet.hide(given, resolved, secrets.concealing(given), shown=secrets.shown(given))
    return Validation(sheet.result(name, warnings=list(_warnings(work, sheet))))


def definition_class(connector: type[Connector]) -> type[ConnectorConfig]:
    """The options of every source, or of every sink."""
    return SinkConnectorConfig if issubclass(connector, SinkConnector) else SourceConnectorConfig


def plugin_keys(plugin: type[Any]) -> list[KeyInfo]:
    """The definitions of a plugin's keys: its own, then those that every connector of its kind has."""
    keys = {key.name: key for key in definitions(section_of(plugin.config_class))}
    if issubclass(plugin, Connector):
        for key in definitions(section_of(definition_class(plugin))):
            keys.setdefault(key.name, key)
    return list(keys.values())


class _Work(NamedTuple):
    config: Mapping[str, str]
    connector: type[Connector]
    plugins: Plugins
    settings: ConnectSettings


class _Sheet:
    """Every key once, in display order."""

    def __init__(self, infos: Iterable[ConfigInfo]) -> None:
        self._by_name: dict[str, ConfigInfo] = {}
        for info in infos:
            known = self._by_name.get(info.value.name)
            if known and known.value.errors and not info.value.errors:
                info.value.errors = known.value.errors
            self._by_name[info.value.name] = info

    def __contains__(self, key: str) -> bool:
        return key in self._by_name

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def is_valid(self, names: Iterable[str]) -> bool:
        """Whether none of these keys has an error."""
        return not any(self._by_name[name].value.errors for name in names if name in self._by_name)

    def add(self, problem: Problem) -> None:
        value = self._value(problem.key)
        value.errors = [*value.errors, problem.message]

    def replace_errors(self, key: str, message: str) -> None:
        self._value(key).errors = [message]

    def hide(
        self,
        given: Mapping[str, str],
        resolved: Mapping[str, str],
        secrets: Mapping[str, str],
        *,
        shown: Mapping[str, str],
    ) -> None:
        """Show placeholders instead of resolved values, and no secrets, also within errors."""
        for info in self._by_name.values():
            value = info.value
            value.errors = [conceal(error, secrets) for error in value.errors]
            if value.value not in (None, HIDDEN):
                value.value = conceal(value.value, secrets)  # it may be given under another name
            if value.name in given and shown[value.name] != given[value.name] and value.value != HIDDEN:
                value.value = HIDDEN if shown[value.name] == MASK else shown[value.name]
                value.errors = [error.replace(given[value.name], shown[value.name]) for error in value.errors]
            if value.name in given and resolved.get(value.name, given[value.name]) != given[value.name]:
                value.value = HIDDEN if value.value == HIDDEN else shown[value.name]
                start, placeholder = f"Invalid value {resolved[value.name]} for", shown[value.name]
                value.errors = [error.replace(start, f"Invalid value {placeholder} for") for error in value.errors]

    def result(self, name: str, *, warnings: list[ConfigWarning]) -> ConfigInfos:
        infos = list(self._by_name.values())
        errors = sum(len(info.value.errors) for info in infos)
        return ConfigInfos(name=name, error_count=errors, groups=groups_of(infos), configs=infos, warnings=warnings)

    def _value(self, key: str) -> ValueInfo:
        return self._by_name.setdefault(key, ConfigInfo(value=ValueInfo(name=key))).value


def _resolve(given: Mapping[str, str], providers: ConfigProviders) -> tuple[dict[str, str], list[Problem]]:
    """Resolve placeholders key by key, so that one that fails does not hide other errors."""
    resolved, problems = {}, []
    for key, value in given.items():
        try:
            resolved.update(providers.resolve({key: value}))
        except ConfigError as error:
            problems.append(Problem(key, str(error)))
    return resolved, problems


def _check_values(work: _Work) -> Iterator[ConfigInfo]:
    config, framework = work.config, definition_class(work.connector)
    for info in check_section(section_of(framework), config):
        if info.value.name in _CONVERTERS and info.definition is not None:
            _fill_in_converter(info, info.definition, work)
        yield info
    creation = topic_creation_section(config, work.settings) if issubclass(work.connector, SourceConnector) else None
    if creation:
        yield from check_section(creation, config)
    for stage in stage_sections(config, work.plugins):
        yield from check_section(stage.section, stage.values)
    yield from check_section(section_of(work.connector.config_class), config)
    for family in _families(work):
        for key, value in client_overrides.overrides_of(family, config).items():
            yield ConfigInfo(value=ValueInfo(name=f"{family}.override.{key}", value=value))
    for converter in converter_sections(config, work.plugins):
        yield from check_section(converter.section, converter.values)


def _fill_in_converter(info: ConfigInfo, definition: KeyInfo, work: _Work) -> None:
    """Show the converters to choose from; the default is the worker's."""
    name = info.value.name
    family: Family[Any] = work.plugins.header_converters if name == "header.converter" else work.plugins.converters
    info.value.recommended_values = [name_of(plugin) for plugin in family.all()]
    of_worker: str = getattr(work.settings, name.replace(".", "_"))
    info.definition = msgspec.structs.replace(definition, default_value=of_worker)
    if name not in work.config:
        info.value.value = of_worker


# --- problems of several values in combination ---


def _all_problems(work: _Work, sheet: _Sheet) -> Iterator[Problem]:
    common, _ = definition_class(work.connector).read(work.config)
    for problem in common.problems():
        if problem.key in ("topics", "topics.regex") and not problem.message.startswith("Invalid value"):
            # Kafka Connect reports a conflict between the two at both keys.
            yield Problem("topics", problem.message)
            yield Problem("topics.regex", problem.message)
        else:
            yield problem
    yield from _name_problems(work)
    yield from _exactly_once_problems(work, common)
    for part in [*stage_sections(work.config, work.plugins), *converter_sections(work.config, work.plugins)]:
        yield from part.problems
        names = [part.section.prefix + key for key in part.section.options]
        if not part.problems and sheet.is_valid(names):
            yield from _attempt(part.build, part.key)
    refused = list(reach_problems(work.config, work.connector, plugins=work.plugins, settings=work.settings))
    yield from refused
    if sheet.is_valid(work.connector.config_class.OPTIONS) and not refused:
        yield from _attempt(lambda: _connector_problems(work), "connector.class")
    for family in _families(work):
        yield from client_overrides.problems(family, work.settings, work.config)


def _name_problems(work: _Work) -> Iterator[Problem]:
    name, worker_group = work.config.get("name", ""), work.settings.group_id
    if controls := [str(ord(letter)) for letter in name if ord(letter) < ord(" ") or ord(letter) == 127]:
        reason = f"String may not contain control sequences but had the following ASCII chars: {', '.join(controls)}"
        yield Problem("name", f"Invalid value {name} for configuration name: {reason}")
    if not issubclass(work.connector, SinkConnector):
        return
    overridden = work.config.get("consumer.override.group.id")
    if overridden == worker_group:
        message = f"Consumer group {overridden} conflicts with Connect worker group {worker_group}"
        yield Problem("consumer.override.group.id", message)
    elif overridden is None and f"connect-{name}" == worker_group:
        message = f"Consumer group for sink connector named {name} conflicts with Connect worker group {worker_group}"
        yield Problem("name", message)


def _exactly_once_problems(work: _Work, common: ConnectorConfig) -> Iterator[Problem]:
    if not (isinstance(common, SourceConnectorConfig) and issubclass(work.connector, SourceConnector)):
        return
    if common.exactly_once_support == "required":
        if work.settings.exactly_once_source_support in ("disabled", "preparing"):
            yield Problem("exactly.once.support", "This worker does not have exactly-once source support enabled.")
        if not work.connector.is_exactly_once:
            message = "The connector does not support exactly-once semantics with the provided configuration."
            yield Problem("exactly.once.support", message)
    if common.transaction_boundary == "connector" and not work.connector.defines_transactions:
        message = (
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition."
        )
        yield Problem("transaction.boundary", message)


def _connector_problems(work: _Work) -> list[Problem]:
    config, wrong = work.connector.config_class.read(work.config)
    return wrong or list(config.problems()) or list(work.connector.validate(config))


def _attempt(work: Callable[[], Iterable[Problem]], key: str) -> list[Problem]:
    """The problems that a plugin's own code reports, or its failure."""
    try:
        return list(work())
    except ConnectError as error:
        return [Problem(key, str(error))]
    except Exception as error:
        log.exception("a plugin failed while its configuration was validated", extra={"key": key})
        return [Problem(key, f"Failed to check {key}: {type(error).__name__}: {error}")]


def _families(work: _Work) -> Iterator[client_overrides.Family]:
    """The kinds of clients that the connector uses."""
    is_sink = issubclass(work.connector, SinkConnector)
    has_dead_letters = bool(work.config.get("errors.deadletterqueue.topic.name", "").strip())
    creates_topics = not is_sink and any(key.startswith("topic.creation.") for key in work.config)
    if not is_sink or has_dead_letters:
        yield "producer"
    if is_sink:
        yield "consumer"
    if creates_topics or has_dead_letters:
        yield "admin"


# --- warnings: what works, but probably not as intended ---


def _warnings(work: _Work, sheet: _Sheet) -> Iterator[ConfigWarning]:
    config = work.config
    tolerates = config.get("errors.tolerance", "").strip() == "all"
    has_dead_letters = bool(config.get("errors.deadletterqueue.topic.name", "").strip())
    if tolerates and not has_dead_letters and config.get("errors.log.enable", "").strip().lower() != "true":
        message = (
            "bad records are dropped without a trace: set errors.deadletterqueue.topic.name to keep them, "
            "or errors.log.enable=true to see them in the log"
        )
        yield ConfigWarning(name="errors.tolerance", message=message)
    if sheet.is_valid(work.connector.config_class.OPTIONS):
        for advice in _attempt(
            lambda: work.connector.advise(work.connector.config_class.read(config)[0]), "connector.class"
        ):
            yield ConfigWarning(name=advice.key, message=advice.message)
    for key in config:
        if warning := _unknown_key_warning(key, work, sheet):
            yield ConfigWarning(name=key, message=warning)


def _unknown_key_warning(key: str, work: _Work, sheet: _Sheet) -> str:
    config_class = work.connector.config_class
    aliases = {alias for option in config_class.OPTIONS.values() for alias in option.aliases}
    # Below PREFIXES a connector reads any key (`Config.below`).
    if key in sheet or key in aliases or key.startswith(tuple(getattr(config_class, "PREFIXES", ()))):
        return ""
    for converter in _CONVERTERS:
        if key.startswith(f"{converter}."):
            return "" if converter in work.config else f"has no effect unless {converter} is set in this connector, too"
    for family in client_overrides.FAMILIES:
        if key.startswith(f"{family}.override."):
            return f"has no effect: this connector uses no {family}"
    close = difflib.get_close_matches(key, sheet.names, n=1)
    return f"unknown configuration; did you mean {close[0]}?" if close else "unknown configuration: it has no effect"
