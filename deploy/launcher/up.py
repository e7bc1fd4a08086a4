"""`caudal up`: the whole platform with one command."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from deploy import completion_values as values
from deploy.launcher.options import DataOption
from deploy.launcher.request import DEFAULT_DATA, THIS_MACHINE, Request

EPILOG: Final = """Examples:

caudal up

caudal up --data ~/river --detach      then  caudal status --data ~/river  and  caudal down --data ~/river

caudal up --ports any                  free ports, told when it is up

caudal up --ports broker=19092 --ports registry=18081

caudal up --set broker:num.partitions=3 --set connect:offset.flush.interval.ms=1000

caudal up --without broker --bootstrap kafka:9092      with a Kafka of your own

Data survives restarts. Ctrl-C stops everything in order, a second one at once."""

_PortsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ports",
        metavar="any|NAME=PORT",
        help="`any` for free ports, or the port of one: broker, broker-metrics, registry, rest-proxy, connect, spark. "
        "Repeat it for more.",
    ),
]
_WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="NAME",
        help="A service that is not to run. Repeat it for more.",
        autocompletion=values.services,
    ),
]
_HostOption = Annotated[
    str,
    typer.Option("--host", metavar="ADDR", help="Address to listen on; 0.0.0.0 for all, which nobody guards."),
]
_SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="SERVICE:KEY=VALUE", help="A setting of a service, in its own words. Repeat it for more."
    ),
]
_BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap", "-b", metavar="HOST:PORT", help="Your own cluster, with --without broker.", show_default=False
    ),
]
_RegistryOption = Annotated[
    str | None,
    typer.Option(
        "--registry", metavar="URL", help="Your own schema registry, with --without registry.", show_default=False
    ),
]
_DetachOption = Annotated[
    bool, typer.Option("--detach", help="Return when everything is ready, and leave it running in the background.")
]


def up(
    *,
    data: DataOption = DEFAULT_DATA,
    ports: _PortsOption = None,
    without: _WithoutOption = None,
    host: _HostOption = THIS_MACHINE,
    settings: _SettingsOption = None,
    bootstrap: _BootstrapOption = None,
    registry: _RegistryOption = None,
    detach: _DetachOption = False,
) -> None:
    """Start the whole platform, keep it running, and stop it with Ctrl-C. Data is in one folder that lasts."""
    from deploy.launcher.plan import planned
    from deploy.launcher.refusals import Refused
    from deploy.output import failure

    request = Request(
        data=str(data),
        host=host,
        ports=tuple(ports or ()),
        without=tuple(without or ()),
        settings=tuple(settings or ()),
        bootstrap=bootstrap,
        registry=registry,
    )
    try:
        plan = planned(request)
    except Refused as refusal:
        failure(refusal.text, refusal.next_steps)
        raise typer.Exit(1) from refusal
    _warn_when_open(plan.bind)
    raise typer.Exit(run_detached(request) if detach else run_here(request))


def run_here(request: Request) -> int:
    """Run the platform in this process until Ctrl-C or SIGTERM."""
    from deploy.launcher.display import Display
    from deploy.launcher.events import AllReady, Event
    from deploy.launcher.launching import launch
    from deploy.launcher.plan import planned
    from deploy.output import err

    plan = planned(request)
    with Display(plan, err) as display:

        def tell(event: Event) -> None:
            display(event)
            if isinstance(event, AllReady):
                _tell_summary(plan.data, is_detached=False)

        return launch(plan, tell=tell)


def run_detached(request: Request) -> int:
    """Start the platform in the background and wait until it is ready."""
    from rich.markup import escape

    from deploy.launcher.background import started
    from deploy.launcher.display import Display
    from deploy.launcher.events import AllReady, Failed
    from deploy.launcher.plan import planned
    from deploy.output import err

    plan = planned(request)
    with Display(plan, err) as display, started(request) as background:
        try:
            for event in background.events():
                display(event)
                if isinstance(event, AllReady):
                    _tell_summary(plan.data, is_detached=True)
                    return 0
                if isinstance(event, Failed):
                    return 1
        except KeyboardInterrupt:
            background.process.send_signal(signal.SIGTERM)
            for event in background.events():
                display(event)
            return 130
        code = background.process.wait()
        steps = (f"its log:  [bold]{escape(str(plan.logs / 'launcher.log'))}[/]",)
        display(
            Failed(
                text=f"the launcher ended before the platform was ready (exit code {code})",
                next_steps=steps,
                tail=tuple(background.errors()[-10:]),
            )
        )
    return 1


def _warn_when_open(bind: str) -> None:
    from deploy.launcher.plan import is_open
    from deploy.output import err

    if is_open(bind):
        err.print(
            "[yellow]![/] everybody who can reach this machine can use the platform: nothing in it asks for passwords"
        )


def _tell_summary(data: Path, *, is_detached: bool) -> None:
    from deploy.launcher import state
    from deploy.launcher.summary import tell_summary

    found = state.read(data)
    if found is not None:
        tell_summary(found, is_detached=is_detached)
        sys.stdout.flush()
