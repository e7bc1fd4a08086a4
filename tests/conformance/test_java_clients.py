"""Kafka's own Java clients, old and new, as judges. The checks themselves are written in `tests/support/java`.

They need Java and the clients' jars, one folder per version: `make test-java` fetches both and runs this module.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker import BrokerProcess
from tests.support.java_clients import failed_checks, needs_clients

CHECKS = {
    "2.8.2": ("BasicChecks",),
    "3.9.1": ("BasicChecks", "AdminChecks"),
    "4.3.0": ("BasicChecks", "AdminChecks", "LatestChecks"),
}

pytestmark = needs_clients


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that no other test uses, with two folders: the checks change its settings and move its partitions."""
    directory = tmp_path_factory.mktemp("java")
    with BrokerProcess(directory, settings={"log.dirs": f"{directory / 'a'},{directory / 'b'}"}) as broker:
        yield broker


@pytest.mark.parametrize(
    "version,checks", [(version, checks) for version, classes in CHECKS.items() for checks in classes]
)
def test_every_check_of_the_java_client_passes(
    own_broker: BrokerProcess, tmp_path: Path, version: str, checks: str
) -> None:
    failed = failed_checks(version, checks, folder=tmp_path, bootstrap=own_broker.bootstrap)
    assert not failed, failed
