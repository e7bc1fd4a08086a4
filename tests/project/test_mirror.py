"""Unit tests lie where their source lies: `tests/unit/<path>/test_x.py` is about `<path>/x.py` or `<path>/x/`.

Further tests of the same module have its name first: `test_x_<aspect>.py`.
"""

from fnmatch import fnmatch
from typing import Final

import pytest

from tests.project.source import ROOT

UNIT: Final = ROOT / "tests" / "unit"
TESTS: Final = sorted(path.relative_to(UNIT).as_posix() for path in UNIT.rglob("test_*.py"))

EXCEPTIONS: Final = {
    "connect/rest/test_*.py": "about rest/routes/, over HTTP",
    "connectors/test_readmes.py": "about the README of every connector",
    "core_broker/handlers/test_classic_membership.py": "about JoinGroup, SyncGroup, Heartbeat and LeaveGroup",
    "core_broker/handlers/test_cluster_description.py": "about the handlers that describe the cluster",
    "core_broker/handlers/test_configs.py": "about the handlers that describe and alter configs",
    "core_broker/handlers/test_consumer_group_handlers.py": "about the handlers of KIP-848",
    "core_broker/handlers/test_group_administration.py": "about the handlers that list, describe and delete groups",
    "core_broker/handlers/test_security_disabled.py": "about the handlers that refuse SASL and ACLs",
    "core_broker/handlers/test_transaction_version_2.py": "about the handlers of KIP-890",
    "core_broker/protocol/test_hostile_input.py": "about all that reads bytes from outside",
    "deploy/compose/test_compose.py": "about the files beside it in the source",
    "deploy/config/test_*.py": "about the files beside it in the source",
    "deploy/docker/test_dockerfile.py": "about the files beside it in the source",
    "deploy/helm/test_*.py": "about the files beside it in the source",
    "deploy/monitoring/test_monitoring.py": "about the files beside it in the source",
    "deploy/systemd/test_units.py": "about the files beside it in the source",
    "deploy/test_project.py": "about the project as a whole",
    "schema_registry/routes/test_confluent_clients.py": "about all routes, as Confluent's clients use them",
    "schema_registry/serdes/test_agreement.py": "about all formats, beside Confluent's serdes",
    "test_log_check.py": "about tests/support/log_check.py",
    "test_processes.py": "about tests/unit/conftest.py",
    "test_secret_search.py": "about tests/support/secret_search.py",
}
"""Tests without a source of their name, and what they are about instead."""


def source_of(test: str) -> str | None:
    """The module or package that a unit test is named after."""
    folder, _, name = test.rpartition("/")
    words = name.removeprefix("test_").removesuffix(".py").split("_")
    for count in range(len(words), 0, -1):
        module = f"{folder}/{'_'.join(words[:count])}"
        if (ROOT / f"{module}.py").exists() or (ROOT / module / "__init__.py").exists():
            return module
    return None


def test_unit_tests_are_named_after_their_source() -> None:
    """Move or rename what is listed here, or say in EXCEPTIONS what it is about."""
    nameless = [test for test in TESTS if source_of(test) is None]
    assert [test for test in nameless if not any(fnmatch(test, pattern) for pattern in EXCEPTIONS)] == []


@pytest.mark.parametrize("pattern", EXCEPTIONS)
def test_an_exception_is_needed(pattern: str) -> None:
    assert [test for test in TESTS if fnmatch(test, pattern) and source_of(test) is None]
