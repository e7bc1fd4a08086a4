"""What tests of the registry's client half share: a running registry."""

import sys
from collections.abc import Iterator

import pytest

from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from tests.support.registry import RegistryProcess


@pytest.fixture(scope="session")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a registry listens that all tests share; each has subjects of its own."""
    with RegistryProcess(tmp_path_factory.mktemp("registry")) as process:
        yield process.url


@pytest.fixture
def client(registry_url: str) -> Iterator[RegistryClient]:
    """A client of that registry, with empty caches."""
    with RegistryClient(RegistryClientSettings.parse({"url": registry_url})) as client:
        yield client


@pytest.fixture(autouse=True)
def usual_recursion_limit() -> Iterator[None]:
    """What Python starts with: some libraries, once imported by another test, leave a far higher one behind."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)
