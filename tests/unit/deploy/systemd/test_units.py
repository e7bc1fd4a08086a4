"""Units: right in systemd's eyes, in the order of the stack, with commands that our command line takes."""

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from core_broker.cluster.registration import SHUTDOWN_SECONDS
from core_broker.service.commandline import parse_arguments
from core_broker.settings import BrokerSettings
from deploy.health_check import address
from deploy.services import SERVICES
from deploy.stack import BY_NAME, STACK, Service
from tests.support.deployment import DEPLOY, observed_ports

UNITS: Final = DEPLOY / "systemd"
NAMES: Final = [*BY_NAME, "connect-worker"]


class _Unit(configparser.RawConfigParser):
    """A unit file: names keep their case."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def _unit(name: str) -> _Unit:
    unit = _Unit(strict=False)
    unit.read(UNITS / f"caudal-{name}.service")
    return unit


def _command(line: str) -> list[str]:
    """The words behind the program."""
    return shlex.split(line)[1:]


@pytest.mark.processes
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here: apt-get install systemd")
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("caudal", "python"):
        (programs / program).symlink_to("/bin/true")
    units = []
    for path in [*UNITS.glob("*.service"), *UNITS.glob("*.target")]:
        units.append(tmp_path / path.name)
        units[-1].write_text(path.read_text().replace("/opt/caudal/bin", str(programs)))
    done = subprocess.run(
        [analyze, "verify", "--man=no", *map(str, units)], capture_output=True, text=True, check=False, timeout=120
    )
    complaints = [line for line in done.stderr.splitlines() if "caudal" in line]
    assert complaints == []


def test_there_is_a_unit_for_every_service() -> None:
    assert set(NAMES) == set(SERVICES)
    assert {path.name for path in UNITS.glob("*.service")} == {f"caudal-{name}.service" for name in NAMES}
    target = _Unit(strict=False)
    target.read(UNITS / "caudal.target")
    assert target["Unit"]["Wants"].split() == [f"caudal-{service.name}.service" for service in STACK]


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_runs_a_command_of_ours_with_the_sample_configuration(name: str) -> None:
    unit = _unit(name)["Service"]
    command = _command(unit["ExecStart"])
    own = command[1 : command.index("--")] if "--" in command else command[1:]
    parsed = parse_arguments(own)
    assert command[0] == name
    assert parsed is not None
    assert str(parsed.config) == f"/etc/caudal/{BY_NAME.get(name, BY_NAME['connect']).config_file}"
    assert unit["EnvironmentFile"] == f"-/etc/caudal/{name}.env"


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_unit_starts_after_those_that_it_needs(service: Service) -> None:
    unit = _unit(service.name)["Unit"]
    needed = {f"caudal-{name}.service" for name in service.needs}
    assert needed <= set(unit["After"].split())
    assert needed <= set(unit["Wants"].split())


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_service_that_others_need_counts_as_started_once_it_is_healthy(service: Service) -> None:
    is_needed = any(service.name in other.needs for other in STACK)
    waiting = _unit(service.name)["Service"].get("ExecStartPost")
    assert (waiting is not None) == is_needed
    if waiting is not None:
        module, wait, seconds, *command = _command(waiting)[1:]
        assert (module, wait) == ("deploy.health_check", "--wait")
        assert int(seconds) < int(_unit(service.name)["Service"]["TimeoutStartSec"])
        sample = str(DEPLOY / "config" / service.config_file)
        asked = [word.replace(f"/etc/caudal/{service.config_file}", sample) for word in command]
        assert address(asked, {}) == f"http://localhost:{observed_ports()[service.name]}/health"


def test_a_broker_has_time_to_say_why_it_cannot_join_its_cluster_and_to_hand_over_its_leaders() -> None:
    unit = _unit("broker")["Service"]
    seconds = int(_command(unit["ExecStartPost"])[3])
    assert seconds * 1000 > BrokerSettings().initial_broker_registration_timeout_ms
    assert int(unit["TimeoutStopSec"]) > 2 * SHUTDOWN_SECONDS


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_may_write_nothing_but_its_own_folder(name: str) -> None:
    service = _unit(name)["Service"]
    assert service["User"] == "caudal"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert service["StateDirectory"] == f"caudal/{name.removesuffix('-worker')}"
