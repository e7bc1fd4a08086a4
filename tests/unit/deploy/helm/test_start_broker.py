"""The script that starts the broker of a pod: who forms the cluster, who joins it, and under which node id."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.deployment import DEPLOY

SCRIPT: Final = DEPLOY / "helm" / "caudal" / "files" / "start-broker.sh"
NODES: Final = "nodes.events.svc"

pytestmark = pytest.mark.processes


def started(
    path: Path, ordinal: int, *, count: int = 3, ready: Sequence[int] = (), has_disk: bool = False, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run the script with a `caudal` that says how it was started, and a `python` that knows which pods are ready."""
    programs, data = path / "bin", path / "data"
    for folder in (programs, data):
        folder.mkdir(exist_ok=True)
    if has_disk:
        (data / "meta.properties").touch()
    asked = "-m deploy.health_check broker --config c --set metrics.listener=https"
    known = "|".join(f'"{asked}://broker-{number}.{NODES}:9404"' for number in ready) or "none"
    for name, body in (
        ("caudal", 'echo "$KAFKA_NODE_ID ${KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS-} $*"'),
        (
            "python",
            f'case "$*" in {known}) exit 0;; *) exit 1;; esac',
        ),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "POD_NAME": f"broker-{ordinal}",
        "NODES_HOST": NODES,
        "BROKER_COUNT": str(count),
        "CONTROLLER_PORT": "9093",
        "HEALTH_SCHEME": "https",
        "HEALTH_PORT": "9404",
        "DATA_DIR": str(data),
        **variables,
    }
    command = ["sh", str(SCRIPT), "broker", "--config", "c"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def others(*numbers: int) -> str:
    return ",".join(f"broker-{number}.{NODES}:9093" for number in numbers)


@pytest.mark.parametrize("count", [1, 3])
def test_the_first_pod_forms_the_cluster_on_an_empty_disk(tmp_path: Path, count: int) -> None:
    assert started(tmp_path, 0, count=count).stdout == "1  broker --config c\n"


@pytest.mark.parametrize("ordinal,expected", [(1, others(0, 2)), (2, others(0, 1))])
def test_the_other_pods_join_it(tmp_path: Path, ordinal: int, expected: str) -> None:
    assert started(tmp_path, ordinal).stdout == f"{ordinal + 1} {expected} broker --config c\n"


def test_the_first_pod_that_has_lost_its_disk_joins_the_cluster_of_the_others(tmp_path: Path) -> None:
    assert started(tmp_path, 0, ready=[2]).stdout.split()[:2] == ["1", others(1, 2)]


def test_the_first_pod_of_a_cluster_that_is_down_knows_the_others_from_its_disk(tmp_path: Path) -> None:
    assert started(tmp_path, 0, has_disk=True).stdout.split()[:2] == ["1", others(1, 2)]


def test_a_single_broker_names_no_others(tmp_path: Path) -> None:
    assert started(tmp_path, 0, count=1, has_disk=True).stdout == "1  broker --config c\n"


def test_a_rack_that_was_asked_for_and_is_missing_is_an_error(tmp_path: Path) -> None:
    assert started(tmp_path, 0, KAFKA_BROKER_RACK="zone-a").returncode == 0
    refused = started(tmp_path, 0, KAFKA_BROKER_RACK="")
    assert refused.returncode == 1
    assert "services.broker.rackLabel" in refused.stderr
