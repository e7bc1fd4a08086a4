"""What tests of the whole process share: running services, and names that no other test uses."""

import gc
import itertools
import os
import re
import ssl
from collections.abc import Iterator
from urllib.parse import quote

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
from tests.support.scheduling import SharedSparkScheduling
from tests.support.service import ServiceProcess
from tests.support.spark_worker import SparkWorker

_numbers = itertools.count(1)

# No test fails because a machine is slow: neither what is checked nor the making of examples has a time limit.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# An HTTP client reads the certificates of all authorities when it is made, which takes 20 ms of a processor, also where
# no TLS is spoken. Of a folder it reads those alone that it meets.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = ssl.get_default_verify_paths().openssl_capath

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
def connect_process(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    """A running Connect worker for all tests; they ask for `connect`."""
    with ConnectProcess(tmp_path_factory.mktemp("connect"), bootstrap=broker.bootstrap, group="session") as process:
        yield process
        if not process.is_running:
            pytest.fail(f"the Connect worker died during the tests\n{process.log_tail()}")


@pytest.fixture
def connect(connect_process: ConnectProcess) -> Iterator[ConnectProcess]:
    """A running Connect worker; the connectors of a test are deleted, or they would run until all tests are done."""
    yield connect_process
    for name in connect_process.json("GET", "/connectors"):
        connect_process.ask("DELETE", f"/connectors/{quote(name, safe='')}")


@pytest.fixture(scope="session")
def spark_worker(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkWorker]:
    """A Connect worker with a Spark engine, for tests that delete their connectors; Spark starts with the first one."""
    directory = tmp_path_factory.mktemp("spark-worker")
    # Long enough for the time between the sinks of one file and those of the next one.
    settings = {"spark.caudal.idle.timeout.ms": "120000"}
    with SparkWorker(directory, bootstrap=broker.bootstrap, group="spark", settings=settings) as process:
        yield process
        if not process.is_running:
            pytest.fail(f"the Connect worker with Spark died during the tests\n{process.log_tail()}")


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SharedSparkScheduling | None:
    """Files that share a Spark go to the same worker."""
    return SharedSparkScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests are made by the thousand and are there to stay: the garbage collector need not look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the tails of the services' logs beside a failure."""
    report = yield
    for service in ("broker", "registry", "proxy", "connect", "spark_worker"):
        process = getattr(item, "funcargs", {}).get(service)
        if report.failed and isinstance(process, ServiceProcess):  # type: ignore[attr-defined]
            report.sections.append((f"{service} log", process.log_tail(15)))  # type: ignore[attr-defined]
    return report
