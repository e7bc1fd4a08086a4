"""`caudal up`: the whole platform with one command."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.logins import curl_word, login_lines, login_option
from deploy.commands.options import DataOption
from deploy.launcher.request import DEFAULT_DATA, Refused, Request
from deploy.stack import BROKER, BROKERS_MAX, DEFAULT_BOOTSTRAP, STREAMS, THIS_MACHINE, kind_of
from deploy.terminal.output import err, examples, failure, note, out, table

if TYPE_CHECKING:
    from deploy.launcher.plan import Plan
    from deploy.launcher.state import PlatformState

EPILOG: Final = examples(
    "caudal up",
    "caudal up --data ~/river --detach      then  caudal status --data ~/river  and  caudal down --data ~/river",
    "caudal up --ports any                  free ports, shown when it is up",
    "caudal up --ports broker=19092 --ports registry=18081",
    "caudal up --set broker:num.partitions=3 --set connect:offset.flush.interval.ms=1000",
    "caudal up --brokers 3                  a cluster; kill one of them, and see what  caudal cluster  shows",
    "caudal up --secure                     encrypted, with users; prints how clients log in",
    "caudal up --secure --host 0.0.0.0 --brokers 3          for other machines, too",
    "caudal up --without broker --bootstrap kafka:9092      with your own Kafka",
    "Data survives restarts. Ctrl-C stops everything in order, a second one at once.",
)

_TITLE_WIDTH: Final = 12

_PortsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ports",
        metavar="any|NAME=PORT",
        help="`any` for free ports, or the port of one service: broker, broker-metrics, registry, rest-proxy, connect, "
        "streams, spark. Repeat it for more.",
    ),
]
_WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="NAME",
        help="A service not to run. Repeat it for more.",
        autocompletion=completion.services,
    ),
]
_HostOption = Annotated[
    str,
    typer.Option("--host", metavar="ADDR", help="Address to listen on; 0.0.0.0 for all. Others need --secure."),
]
_SecureOption = Annotated[
    bool,
    typer.Option(
        "--secure",
        help="Encrypt everything and let in only users: makes certificates, an administrator and access rules in "
        "DIR/security. The folder stays secured at later starts.",
    ),
]
_InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Start without encryption and logins although other machines can reach it, or it was secured before.",
    ),
]
_SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="SERVICE:KEY=VALUE", help="A setting of a service, under its own name. Repeat it for more."
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
_BrokersOption = Annotated[
    int | None,
    typer.Option(
        "--brokers",
        metavar="N",
        min=1,
        max=BROKERS_MAX,
        help="Brokers that form a cluster; every topic is on three of them, if there are so many.",
        show_default="as many as the folder has data of, or 1",
    ),
]
_RacksOption = Annotated[
    bool, typer.Option("--racks", help="Each broker in a rack of its own, as if on another machine.")
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
    brokers: _BrokersOption = None,
    racks: _RacksOption = False,
    secure: _SecureOption = False,
    insecure: _InsecureOption = False,
    detach: _DetachOption = False,
) -> None:
    """Start the whole platform and run it until Ctrl-C. All its data is in one folder, and is kept."""
    from deploy.launcher.plan import make_plan

    request = Request(
        data=str(data),
        host=host,
        ports=tuple(ports or ()),
        without=tuple(without or ()),
        settings=tuple(settings or ()),
        bootstrap=bootstrap,
        registry=registry,
        brokers=brokers,
        racks=racks,
        secure=secure,
        insecure=insecure,
    )
    try:
        plan = make_plan(request)
    except Refused as refusal:
        failure(refusal.text, refusal.next_steps)
        raise typer.Exit(1) from refusal
    _tell_security(plan, secure=secure)
    if sum(kind_of(service.name) is BROKER for service in plan.services) == 2:
        err.print("[yellow]![/] two brokers need each other: if one fails, the other stops, too; three survive that")
    raise typer.Exit(run_detached(request) if detach else run_here(request))


def _tell_security(plan: "Plan", *, secure: bool) -> None:
    """Say what changes for a folder that was open or secured before, and what is not protected."""
    from deploy.launcher.plan import is_open
    from deploy.security.folder import SecurityFolder

    folder = SecurityFolder(plan.data)
    if plan.security is None:
        if is_open(plan.bind):
            err.print("[yellow]![/] anyone who can reach this machine can use the platform: it asks for no passwords")
        if folder.is_set_up:
            err.print(
                "[yellow]![/] this platform was secured, and now runs without encryption and logins: its users and "
                "access rules stay, and count again at the next start without --insecure"
            )
    elif not secure:
        note("secured, as it was started before")
    elif not folder.is_set_up and any(_has_data(plan.folder_of(name)) for name in plan.brokers):
        err.print(
            "[cyan]•[/] the platform in this folder becomes secured: all its data stays; from now on every client "
            "needs a user and TLS, and connectors that use the schema registry its new address"
        )


def run_here(request: Request) -> int:
    """Run the platform in this process until Ctrl-C or SIGTERM."""
    from deploy.launcher.events import AllReady, Event
    from deploy.launcher.launching import launch
    from deploy.launcher.plan import make_plan
    from deploy.terminal.display import Display

    plan = make_plan(request)
    with Display(plan, err) as display:

        def show(event: Event) -> None:
            display(event)
            if isinstance(event, AllReady):
                _print_summary(plan.data, is_detached=False)

        return launch(plan, emit=show)


def run_detached(request: Request) -> int:
    """Start the platform in the background and wait until it is ready."""
    from deploy.launcher.background import start_in_background
    from deploy.launcher.events import AllReady, Failed
    from deploy.launcher.plan import make_plan
    from deploy.terminal.display import Display

    plan = make_plan(request)
    with Display(plan, err) as display, start_in_background(request) as background:
        try:
            for event in background.events():
                display(event)
                if isinstance(event, AllReady):
                    _print_summary(plan.data, is_detached=True)
                    return 0
                if isinstance(event, Failed):
                    return 1
        except KeyboardInterrupt:
            background.process.send_signal(signal.SIGTERM)
            for event in background.events():
                display(event)
            return 130
        code = background.process.wait()
        steps = (f"its log:  `{plan.logs / 'launcher.log'}`",)
        display(
            Failed(
                text=f"the launcher ended before the platform was ready, with exit code {code}",
                next_steps=steps,
                tail=tuple(background.errors()[-10:]),
            )
        )
    return 1


def _print_summary(data: Path, *, is_detached: bool) -> None:
    """Print the endpoints, commands to copy, and how to stop it."""
    from deploy.launcher import state

    found = state.read(data)
    if found is None:
        return
    rows = []
    for name, service in found.services.items():
        rows.append((name, service.endpoint, kind_of(name).purpose))
        if kind_of(name).metrics_port:
            rows.append(("", service.metrics, "its metrics; the others have /metrics at their own ports"))
    if found.spark is not None:
        purpose = "Spark Connect for notebooks, once a sink, a query or caudal spark has started it"
        rows.append(("spark", f"sc://localhost:{found.spark.connect_port}", purpose))
    table("", ["Service", "Endpoint", "What for"], rows)
    out.print("[bold]Try[/]")
    for command in commands_to_try(found):
        out.print(f"  {escape(command)}")
    if found.is_secure:
        out.print("[bold]Log in[/]  as admin, whose password is in security/passwords/admin and these files alone")
        for title, line in login_lines(found, is_default=not _data_option(Path(found.data))):
            out.print(f"  [dim]{title.ljust(_TITLE_WIDTH)}[/]  {escape(line)}")
    option = _data_option(Path(found.data))
    folder = escape(found.data)
    out.print(f"\n[bold]Data[/]  {folder}     [bold]Logs[/]  {folder}/logs, or  caudal logs{option}")
    how = f"caudal down{option}" if is_detached else f"Ctrl-C, or  caudal down{option}"
    out.print(f"[bold]Stop[/]  {how}     [bold]State[/]  caudal status{option}")
    sys.stdout.flush()


def commands_to_try(state: "PlatformState") -> list[str]:
    """Commands to copy, for the services of this platform: produce, consume, ask, and show the state."""
    bootstrap = state.bootstrap or DEFAULT_BOOTSTRAP
    cluster = "" if DEFAULT_BOOTSTRAP in bootstrap.split(",") else f" --bootstrap {bootstrap}"
    cluster += _login_option(state)
    services = state.services
    if "rest-proxy" in services:
        produce = (
            f"{curl_word(state)} {services['rest-proxy'].endpoint}/topics/hello "
            "-H 'Content-Type: application/vnd.kafka.json.v2+json' "
            """-d '{"records": [{"value": {"greeting": "hello, river"}}]}'"""
        )
    else:
        produce = f"caudal topic produce hello 'hello, river'{cluster}"
    consume = f"caudal topic consume hello{cluster}"
    ask = [f"caudal sql{_server_option(state)}"] if STREAMS.name in services else []
    show_cluster = [f"caudal cluster{cluster}"] if "broker-1" in services else []
    return [produce, consume, *ask, *show_cluster, f"caudal status{_data_option(Path(state.data))}"]


def _server_option(state: "PlatformState") -> str:
    """The option that names the service of SQL; nothing for the platform that the tools find by themselves."""
    if not _data_option(Path(state.data)):
        return ""
    return f" --server {state.services[STREAMS.name].endpoint}{login_option(state)}"


def _login_option(state: "PlatformState") -> str:
    """What tools need to log in; nothing for the platform that they find by themselves."""
    return login_option(state) if _data_option(Path(state.data)) else ""


def _data_option(data: Path) -> str:
    """The option that names the folder, unless it is the default."""
    return "" if data == DEFAULT_DATA.absolute() else f" --data {data}"


def _has_data(folder: Path) -> bool:
    """Whether a service has run in a folder, which is there also after a start that failed before."""
    return folder.exists() and any(folder.iterdir())
