"""Kafka's own Java clients, old and new, log in and are refused; the checks are written in `tests/support/java`.

With KAFKA_JARS they do so at a node of Apache Kafka, and demand the same of it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.every_login import EveryLogin
from tests.support.java_clients import failed_checks, needs_clients

pytestmark = needs_clients


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EveryLogin]:
    with EveryLogin(tmp_path_factory.mktemp("secured")) as node:
        yield node


@pytest.mark.parametrize("version", ["2.8.2", "3.9.1", "4.3.0"])
@pytest.mark.parametrize("checks", ["TlsChecks", "LoginChecks", "DelegationTokenChecks", "RightsChecks"])
def test_every_check_of_the_java_client_passes(secured: EveryLogin, tmp_path: Path, version: str, checks: str) -> None:
    options = (f"-Dworld={secured.world}",)
    failed = failed_checks(version, checks, folder=tmp_path, bootstrap=secured.bootstrap, options=options)
    assert not failed, failed
