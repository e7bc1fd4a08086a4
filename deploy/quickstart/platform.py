"""The platform of a tour: one that already runs, or one started for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from deploy.launcher import state
from deploy.launcher.background import start_in_background
from deploy.launcher.events import AllReady, Event, Failed
from deploy.launcher.plan import make_plan
from deploy.launcher.ports import HeldPort, owner_of
from deploy.launcher.request import Request
from deploy.launcher.state import PlatformState
from deploy.quickstart import screen
from deploy.quickstart.addresses import PlatformAddresses, data_option, program, relative
from deploy.quickstart.tour import StepFailed, wait_for
from deploy.stack import STACK, THIS_MACHINE
from deploy.terminal.display import Display
from deploy.terminal.output import out

_STARTING_S: Final = 120.0


def running(data: Path) -> PlatformState | None:
    """The platform that runs in a folder, once all of it is ready; None when there is none."""
    if state.read(data) is None:
        return None
    return wait_for(
        lambda: state.read(data),
        lambda found: found is None or found.is_ready,
        otherwise=f"the platform in {relative(data)} is not ready",
        log=data / "logs" / "launcher.log",
        patience_s=_STARTING_S,
    )


def start(data: Path, ports: Sequence[str], *, brokers: int | None, secure: bool = False) -> PlatformState | None:
    """Start a platform in the background, as `caudal up --detach` does; None when it does not start."""
    screen.section("Start the platform")
    screen.explanation("All services on one machine, with their data in one folder; Spark starts on first use.")
    given = Request(data=str(data), brokers=brokers, secure=secure)
    request = msgspec.structs.replace(given, ports=tuple(ports) or _free_ports(given))
    options = ["--secure"] if secure else []
    options += [f"--brokers {brokers}"] if brokers else []
    options += [f"--ports {port}" for port in request.ports]
    words = " ".join(["up --detach", *options])
    screen.command(f"{program()} {words}{data_option(data)}")
    with Display(make_plan(request), out) as display, start_in_background(request) as background:
        last: Event | None = None
        try:
            for last in background.events():
                display(last)
                if isinstance(last, AllReady):
                    return state.read(data)
        except KeyboardInterrupt:
            background.process.terminate()
            background.process.wait()
            raise
        code = background.process.wait()
    if isinstance(last, Failed):
        return None
    raise StepFailed(f"the launcher ended with exit code {code}", log=data / "logs" / "launcher.log")


def addresses_of(found: PlatformState) -> PlatformAddresses:
    """The addresses of a platform; raises `StepFailed` if it lacks a service that the tour needs."""
    addresses = {**found.elsewhere, **{name: service.endpoint for name, service in found.services.items()}}
    if found.bootstrap:
        addresses["broker"] = found.bootstrap
    missing = [service.name for service in STACK if service.name not in addresses]
    if missing or found.spark is None:
        raise StepFailed(
            f"the platform in {relative(Path(found.data))} runs without {', '.join(missing)}, which the tour needs; "
            "use another folder: --data DIR"
        )
    return PlatformAddresses(
        data=Path(found.data),
        bootstrap=addresses["broker"],
        registry=addresses["registry"],
        proxy=addresses["rest-proxy"],
        connect=addresses["connect"],
        streams=addresses["streams"],
        spark_data=Path(found.spark.data_dir),
        spark_port=found.spark.connect_port,
        client_config=Path(found.client_config) if found.client_config else None,
        logs={name: Path(service.log) for name, service in found.services.items()},
    )


def _free_ports(request: Request) -> tuple[str, ...]:
    """The usual ports where they are free, and any free port where they are taken."""
    given = []
    for name, port in make_plan(request).ports.items():
        try:
            HeldPort.acquire(THIS_MACHINE, port).release()
        except OSError:
            owner = owner_of(port)
            screen.remark(f"port {port} is in use{f' by {owner}' if owner else ''}: {name} gets another one")
            given.append(f"{name}=0")
    return tuple(given)
