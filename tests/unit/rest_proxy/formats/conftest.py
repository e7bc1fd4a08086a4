from collections.abc import Iterator

import pytest

from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from tests.support.registry import RegistryProcess


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[RegistryClient]:
    """A client of the registry that all tests share, with empty caches; each test has subjects of its own."""
    with RegistryClient(RegistryClientSettings.parse({"url": registry.url})) as client:
        yield client
