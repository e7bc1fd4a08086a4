"""A registry of our own for each test."""

from collections.abc import Iterator

import pytest

from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.fake_registry import FakeRegistry


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as running:
        yield running


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def settings(registry: FakeRegistry) -> BrokerSettings:
    return BrokerSettings(confluent_schema_registry_url=(registry.url,))
