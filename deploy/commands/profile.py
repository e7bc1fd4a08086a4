"""`caudal profile`: names for platforms, each with a client file and addresses."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer
from rich.markup import escape

from deploy.clients.profiles import (
    Changes,
    Profile,
    ProfileError,
    changing_profiles,
    check_name,
    profiles_file,
    read_profiles,
)
from deploy.commands import completion
from deploy.commands.options import Commands, Output, OutputOption
from deploy.terminal.output import done, examples, facts, failure, note, print_json, table

if TYPE_CHECKING:
    from deploy.commands.target import Target

app = Commands(
    no_args_is_help=True,
    help="Names for platforms, each with a client file and addresses: add, list, use, show, remove.",
)

_OTHERS_MAY_READ: Final = 0o077
NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the profile.", show_default=False, autocompletion=completion.profiles),
]


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


@app.command(
    epilog=examples(
        "caudal profile add production --client-config client.properties --registry https://registry:8081 --use",
        "caudal profile add staging --bootstrap staging:9092 --connect http://staging:8083",
        "The client file is one of Kafka's own clients: bootstrap.servers, security.protocol, sasl.jaas.config, "
        "ssl.truststore.location ... Its login is that of the registry and of Connect, too.",
    )
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.", show_default=False)],
    *,
    client_config: Annotated[
        Path | None, _option("--client-config", "FILE", "Properties file of a Kafka client; it is read at each use.")
    ] = None,
    bootstrap: Annotated[
        str | None, _option("--bootstrap", "HOST:PORT", "Address of the cluster, if the client file does not have it.")
    ] = None,
    registry: Annotated[str | None, _option("--registry", "URL", "Address of the schema registry.")] = None,
    rest_proxy: Annotated[str | None, _option("--rest-proxy", "URL", "Address of the REST proxy.")] = None,
    connect: Annotated[str | None, _option("--connect", "URL", "Address of a Connect worker.")] = None,
    streams: Annotated[str | None, _option("--streams", "URL", "Address of the service of SQL.")] = None,
    spark: Annotated[Path | None, _option("--spark", "DIR", "Folder of the Spark engine.")] = None,
    use: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the profile of this name.")] = False,
) -> None:
    """Add a profile."""
    urls = {"--registry": registry, "--rest-proxy": rest_proxy, "--connect": connect, "--streams": streams}
    _check(client_config, urls)
    new = Profile(
        client_config=_absolute(client_config),
        bootstrap=bootstrap,
        registry=registry,
        rest_proxy=rest_proxy,
        connect=connect,
        streams=streams,
        spark=_absolute(spark),
    )
    if new == Profile():
        raise typer.BadParameter("say what it names: --client-config FILE, --bootstrap, --registry, --connect ...")
    with _changing() as changes:
        if check_name(name) in changes.profiles and not replace:
            raise ProfileError(f"there is a profile {name!r} already; --replace replaces it")
        changes.profiles[name] = new
        if use:
            changes.current = name
    done(f"profile [bold]{escape(name)}[/] added{', and in use' if use else ''}")
    if client_config is not None and client_config.stat().st_mode & _OTHERS_MAY_READ:
        note(f"other users of this machine may read the client file:  chmod 600 {escape(str(client_config))}")


@app.command(name="list", epilog=examples("caudal profile list", "caudal profile list -o json"))
def list_(*, output: OutputOption = Output.TABLE) -> None:
    """List the profiles; the one in use has a star."""
    with _explained():
        found = read_profiles(os.environ)
    if output is Output.JSON:
        print_json(found)
    elif not found.profiles:
        note("no profiles; add one:  caudal profile add NAME --client-config FILE --registry URL")
    else:
        rows = [
            (
                "*" if name == found.current else "",
                name,
                profile.bootstrap or "",
                profile.client_config or "",
                profile.registry or "",
                profile.connect or "",
            )
            for name, profile in sorted(found.profiles.items())
        ]
        table("", ["", "Profile", "Cluster", "Client file", "Registry", "Connect"], rows)


@app.command(
    epilog=examples(
        "caudal profile use production",
        "caudal profile use --none        back to the platform of the data folder, or this machine",
        "--profile NAME and CAUDAL_PROFILE win over it.",
    )
)
def use(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the profile.", show_default=False, autocompletion=completion.profiles
        ),
    ] = None,
    *,
    none: Annotated[bool, typer.Option("--none", help="Use no profile.")] = False,
) -> None:
    """Use a profile from now on, where no option or variable says otherwise."""
    if (name is None) != none:
        raise typer.BadParameter("say which profile, or --none")
    with _changing() as changes:
        if name is not None and name not in changes.profiles:
            read_profiles(os.environ).named(name)
        changes.current = name
    done("no profile is in use" if name is None else f"profile [bold]{escape(name)}[/] is in use")


@app.command(epilog=examples("caudal profile show", "caudal profile show production"))
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the profile.", show_default=False, autocompletion=completion.profiles
        ),
    ] = None,
    *,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a profile, or what the tools use where no option or variable says otherwise; never a password."""
    from deploy.clients.connections import client_settings, principal_of
    from deploy.clients.profiles import PROFILE_VARIABLE
    from deploy.commands.target import choose_target

    with _explained():
        target = choose_target(name or os.environ.get(PROFILE_VARIABLE), os.environ)
    settings = client_settings(
        target.bootstrap if target.profile else None, (), target.client_config, timeout=1, usual=target.bootstrap
    )
    security = settings.properties.get("security.protocol", "PLAINTEXT")
    found = {
        "profile": target.profile,
        "platform": target.platform,
        "bootstrap": settings.bootstrap_servers,
        "client_config": None if target.client_config is None else str(target.client_config),
        "security_protocol": security,
        "principal": principal_of(settings),
        "registry": target.registry,
        "rest_proxy": target.rest_proxy,
        "connect": target.connect,
        "streams": target.streams,
        "spark": None if target.spark is None else str(target.spark),
    }
    if output is Output.JSON:
        print_json(found)
        return
    facts(
        _title(target),
        [
            ("Cluster", f"{found['bootstrap']}, {security}"),
            ("User", found["principal"] or "as the certificate or token says"),
            ("Client file", found["client_config"] or "none"),
            ("Registry", target.registry or "–"),
            ("REST proxy", target.rest_proxy or "–"),
            ("Connect", target.connect or "–"),
            ("SQL", target.streams or "–"),
            ("Spark", found["spark"] or "–"),
        ],
    )


@app.command(epilog=examples("caudal profile remove staging"))
def remove(name: NameArgument) -> None:
    """Remove a profile; its client file stays."""
    with _changing() as changes:
        if changes.profiles.pop(name, None) is None:
            read_profiles(os.environ).named(name)
        if changes.current == name:
            changes.current = None
    done(f"profile [bold]{escape(name)}[/] removed")


def _title(target: "Target") -> str:
    if target.profile is not None:
        return f"Profile {escape(target.profile)}"
    return f"Platform in {escape(target.platform)}" if target.platform else "No profile, and no platform runs here"


def _check(client_config: Path | None, urls: dict[str, str | None]) -> None:
    from deploy.clients.connections import client_settings

    if client_config is not None:
        client_settings(None, (), client_config, timeout=1)  # raises SettingsError for one that cannot be used
    for option, url in urls.items():
        for one in (url or "").split(",") if url else ():
            parts = urlsplit(one.strip())
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise typer.BadParameter(f"{one!r} must look like https://host:port", param_hint=option)
            if parts.username is not None:
                raise typer.BadParameter("user and password belong into the client file", param_hint=option)


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())


@contextmanager
def _changing() -> Iterator[Changes]:
    with _explained(), changing_profiles(os.environ) as changes:
        yield changes


@contextmanager
def _explained() -> Iterator[None]:
    """Turn a ProfileError into a line for the user, and exit code 1."""
    try:
        yield
    except ProfileError as error:
        failure(str(error), [f"they are in {profiles_file(os.environ)}; see them:  `caudal profile list`"])
        raise typer.Exit(1) from None
