"""The common checks of sources and sinks: documented options, plans within `tasks.max`, a clean end."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

import pytest

from connect.api.config import Config, Option
from connect.api.connector import Connector
from connect.api.errors import ConfigError
from connect.testing.contexts import FakeConnectorContext

_NONSENSE: Final = ("nonsense-value", "-987654321", "")


class ConnectorSuite:
    """Checks of every connector; inherit from `SourceSuite` or `SinkSuite` instead."""

    connector_class: ClassVar[type[Connector]]
    """The class under test."""

    def config(self) -> Mapping[str, str]:
        """Hook: the minimal configuration that works with the other system of this test."""
        raise NotImplementedError("config() of the suite: return the minimal configuration that works")

    # --- options ---

    def test_every_option_has_help(self) -> None:
        options = self.connector_class.config_class
        assert [key for key in options.OPTIONS if not options.help_of(key)] == []

    def test_every_default_is_allowed_by_its_own_check(self) -> None:
        for item in self._options():
            if item.default_text not in (None, ""):
                assert item.parse(item.default_text or "") == item.default, item.key

    def test_the_least_configuration_is_accepted(self) -> None:
        assert list(self.connector_class.validate(self._parse_config())) == []

    def test_each_required_key_is_asked_for_by_name(self) -> None:
        for item in self._options():
            if item.is_required:
                rest = {key: text for key, text in self.config().items() if key not in (item.key, *item.aliases)}
                with pytest.raises(ConfigError, match=item.key):
                    self.connector_class.config_class.parse(rest)

    def test_a_wrong_value_is_refused_with_key_value_and_what_is_allowed(self) -> None:
        for item, text in self._wrong_values():
            with pytest.raises(ConfigError) as refused:
                self.connector_class.config_class.parse({**self.config(), item.key: text})
            message = str(refused.value)
            assert item.key in message
            assert item.is_secret or text in message
            assert "must be" in message, f"{item.key}: the message does not say what is allowed: {message}"

    def test_a_key_that_it_does_not_know_is_no_error(self) -> None:
        self.connector_class.config_class.parse({**self.config(), "unknown.key": "x"})

    # --- planning ---

    @pytest.mark.parametrize("tasks_max", [1, 2, 10])
    def test_it_plans_no_more_tasks_than_allowed_and_at_least_one(self, tasks_max: int) -> None:
        connector = self._start_connector()
        try:
            planned = connector.task_configs(tasks_max)
        finally:
            connector.stop()
        assert 1 <= len(planned) <= tasks_max
        for config in planned:
            assert {type(text) for item in config.items() for text in item} <= {str}
            self.connector_class.config_class.parse(config)

    def test_a_connector_is_started_and_stopped_twice(self) -> None:
        for _ in range(2):
            connector = self._start_connector()
            connector.stop()
            connector.stop()

    def test_a_connector_that_was_not_started_is_stopped(self) -> None:
        self.connector_class(self._parse_config(), FakeConnectorContext()).stop()

    def test_it_has_a_version_and_names(self) -> None:
        assert self.connector_class.version
        assert all(name and name == name.strip() for name in self.connector_class.aliases)

    # --- for the suites ---

    def _options(self) -> list[Option]:
        return list(self.connector_class.config_class.OPTIONS.values())

    def _parse_config(self, changes: Mapping[str, str] | None = None) -> Config:
        return self.connector_class.config_class.parse({**self.config(), **(changes or {})})

    def _start_connector(self) -> Connector:
        connector = self.connector_class(self._parse_config(), FakeConnectorContext())
        connector.start()
        return connector

    def _plan_task(self, changes: Mapping[str, str] | None = None) -> Config:
        """The configuration of the first task that the connector plans."""
        connector = self.connector_class(self._parse_config(changes), FakeConnectorContext())
        connector.start()
        try:
            return self.connector_class.config_class.parse(connector.task_configs(1)[0])
        finally:
            connector.stop()

    def _wrong_values(self) -> Iterator[tuple[Option, str]]:
        for item in self._options():
            refused = next((text for text in _NONSENSE if _is_refused(item, text)), None)
            if refused is not None:
                yield item, refused


def _is_refused(item: Option, text: str) -> bool:
    try:
        item.parse(text)
    except ConfigError:
        return True
    return False
