"""What tests of the whole process share: running services, and names that no other test uses."""

import gc
import itertools
import os
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.kafka import start_class
from tests.support.mariadb import MariadbServer, running_mariadb
from tests.support.postgres import PostgresServer, running_server
from tests.support.proxy import ProxyProcess
from tests.support.redis_server import RedisServer, running_redis
from tests.support.registry import RegistryProcess
from tests.support.service import ServiceProcess

_numbers = itertools.count(1)

# No test fails because a machine is slow: neither what is checked nor the making of examples has a time limit.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Each Spark of a test lives for a minute at most: its Java compiles quickly rather than well.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A running broker for all tests that leave it as they found it."""
    with start_class()(tmp_path_factory.mktemp("broker")) as process:
        yield process
        if not process.is_running:
            pytest.fail(f"the broker died during the tests\n{process.log_tail()}")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """A running schema registry for all tests that leave it as they found it."""
    with RegistryProcess(tmp_path_factory.mktemp("registry")) as process:
        yield process
        if not process.is_running:
            pytest.fail(f"the registry died during the tests\n{process.log_tail()}")


@pytest.fixture(scope="session")
def proxy(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    """A running REST proxy for all tests that leave it as they found it."""
    directory = tmp_path_factory.mktemp("proxy")
    with ProxyProcess(directory, bootstrap=broker.bootstrap, registry=registry.url) as process:
        yield process
        if not process.is_running:
            pytest.fail(f"the REST proxy died during the tests\n{process.log_tail()}")


@pytest.fixture(scope="session")
def connect(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    """A running Connect worker for all tests that leave it as they found it; connectors of a test bear its name."""
    with ConnectProcess(tmp_path_factory.mktemp("connect"), bootstrap=broker.bootstrap, group="session") as process:
        yield process
        if not process.is_running:
            pytest.fail(f"the Connect worker died during the tests\n{process.log_tail()}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests, each in a database of its own."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis for all tests that leave it as they found it; keys of a test begin with its name."""
    with running_redis() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A MariaDB server for all tests, each in a database of its own."""
    with running_mariadb() as server:
        yield server


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for a topic, group or transactional id that belongs to this test alone."""
    readable = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")
    return f"{readable[:80]}-{next(_numbers)}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, so that it does not run alone at the end while the other workers stand idle."""
    items.sort(key=lambda item: item.path.name != "test_crash.py")


def pytest_collection_finish() -> None:
    """Thousands of tests are there to stay: the collector need not look at them again each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the tails of the services' logs beside a failure."""
    report = yield
    for service in ("broker", "registry", "proxy", "connect"):
        process = getattr(item, "funcargs", {}).get(service)
        if report.failed and isinstance(process, ServiceProcess):  # type: ignore[attr-defined]
            report.sections.append((f"{service} log", process.log_tail(15)))  # type: ignore[attr-defined]
    return report
