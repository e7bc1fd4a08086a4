"""`caudal user`: users that log in with a name and a password (SCRAM)."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption, YesOption
from deploy.terminal.output import done, examples, failure, note, print_json, table, waiting
from deploy.views.text import number

if TYPE_CHECKING:
    from core_broker.client.security import ScramUser, Security

app = Commands(no_args_is_help=True, help="Users with a password (SCRAM): create, list, delete, passwd.")

_ITERATIONS_MIN: Final = 4096
_ITERATIONS_MAX: Final = 16384
_PASSWORD_CHARACTERS_MAX: Final = 1000
_OFFLINE: Final = "Before the first start"


class Mechanism(StrEnum):
    """How a user can log in."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.", show_default=False)]
KnownNameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the user.", show_default=False, autocompletion=completion.users),
]
PasswordOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="File with the password in its first line; - for stdin. Otherwise it is asked for.",
        show_default=False,
    ),
]
MechanismsOption = Annotated[
    list[Mechanism] | None,
    typer.Option("--mechanism", "-m", help="Only this one. Repeat it for more.", show_default="both"),
]
IterationsOption = Annotated[
    int,
    typer.Option(
        "--iterations", min=_ITERATIONS_MIN, max=_ITERATIONS_MAX, help="More make it slower to guess passwords."
    ),
]


@app.command(
    epilog=examples(
        "caudal user create alice                                  asks for the password twice",
        "caudal user create shop --password-file /run/secrets/shop",
        "pass show shop | caudal user create shop --password-file - --mechanism SCRAM-SHA-512 --iterations 8192",
        "caudal user create admin --offline --config server.properties      the first user, before a cluster begins",
    )
)
def create(
    cluster: ClusterOptions,
    name: NameArgument,
    *,
    password_file: PasswordOption = None,
    mechanism: MechanismsOption = None,
    iterations: IterationsOption = _ITERATIONS_MIN,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline", help="Beside the data of a broker here that has not started yet.", rich_help_panel=_OFFLINE
        ),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="With --offline: the broker's properties file.",
            show_default=False,
            rich_help_panel=_OFFLINE,
        ),
    ] = None,
) -> None:
    """Create a user, who may log in from now on."""
    if offline != (config is not None):
        raise typer.BadParameter("--offline needs --config FILE, and the other way round")
    if config is not None:
        _create_offline(config, name, _read_password(password_file), mechanism or list(Mechanism), iterations)
        return
    security = cluster.admin().security
    with waiting("asking the cluster"):
        exists = name in [user.name for user in security.users()]
    if exists:
        failure(f"user {name} exists already", [f"change the password:  `caudal user passwd {name}`"])
        raise typer.Exit(1)
    _set_password(security, name, _read_password(password_file), mechanism or list(Mechanism), iterations)
    done(f"user [bold]{escape(name)}[/] created")
    note(f"where rules are enforced, it needs some:  caudal acl allow User:{name} read,write --topic TOPIC")


@app.command(epilog=examples("caudal user passwd alice", "caudal user passwd shop --password-file /run/secrets/shop"))
def passwd(
    cluster: ClusterOptions,
    name: KnownNameArgument,
    *,
    password_file: PasswordOption = None,
    mechanism: MechanismsOption = None,
    iterations: IterationsOption = _ITERATIONS_MIN,
) -> None:
    """Change the password of a user; connections that are open stay open."""
    security = cluster.admin().security
    with waiting("asking the cluster"):
        known = _find(security, name)
    chosen = mechanism or [item for item in Mechanism if item in known.iterations]
    _set_password(security, name, _read_password(password_file), chosen, iterations)
    done(f"password of [bold]{escape(name)}[/] changed")
    kept = [item for item in known.iterations if item not in chosen]
    if kept:
        note(f"the old password still works with {', '.join(kept)}")


@app.command(name="list", epilog=examples("caudal user list", "caudal user list -o json"))
def list_(cluster: ClusterOptions, *, output: OutputOption = Output.TABLE) -> None:
    """List the users and how they can log in."""
    security = cluster.admin().security
    with waiting("asking the cluster"):
        users = security.users()
    if output is Output.JSON:
        print_json([{"user": user.name, "mechanisms": dict(user.iterations)} for user in users])
    elif users:
        table("", ["User", "Mechanisms"], [(user.name, _describe(user)) for user in users])
    else:
        note("no users with a password; create one:  caudal user create NAME")


@app.command(epilog=examples("caudal user delete alice", "caudal user delete bob --mechanism SCRAM-SHA-256 --yes"))
def delete(
    cluster: ClusterOptions,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Users to delete.", show_default=False, autocompletion=completion.users),
    ],
    *,
    mechanism: MechanismsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only show what would be deleted.")] = False,
    yes: YesOption = False,
) -> None:
    """Delete users: they cannot log in any more. Their rules stay, and so do connections that are open."""
    security = cluster.admin().security
    with waiting("asking the cluster"):
        users = [_find(security, name) for name in names]
    if dry_run:
        for user in users:
            note(f"would delete {escape(user.name)}: {_describe(user)}")
        return
    if not yes:
        typer.confirm(f"Delete {', '.join(names)}? They cannot log in any more.", abort=True, err=True)
    for user in users:
        with waiting(f"deleting {user.name}"):
            for item in user.iterations:
                if not mechanism or item in mechanism:
                    security.delete_password(user.name, mechanism=item)
        done(f"user [bold]{escape(user.name)}[/] deleted")
    note("see the rules that stay:  caudal acl list User:NAME")


def _create_offline(config: Path, name: str, password: str, mechanisms: list[Mechanism], iterations: int) -> None:
    """Create the first user of a new cluster, which its first controller reads when it starts."""
    from core_broker.__main__ import add_first_user
    from core_broker.errors import BrokerError
    from core_broker.service.properties import gather
    from core_broker.settings import BrokerSettings

    settings = BrokerSettings.parse(gather(file=config, environment=os.environ))
    try:
        file = add_first_user(settings, name, password, mechanisms=mechanisms, iterations=iterations)
    except BrokerError as error:
        failure(
            f"user {name} was not created: {error}", ["of a cluster that runs:  `caudal user create` without --offline"]
        )
        raise typer.Exit(1) from None
    done(f"user [bold]{escape(name)}[/] is created when the cluster starts for the first time")
    note(f"kept until then in {escape(str(file))}, without the password")


def _find(security: "Security", name: str) -> "ScramUser":
    found = next((user for user in security.users() if user.name == name), None)
    if found is None:
        failure(f"there is no user {name}", ["see who there is:  `caudal user list`"])
        raise typer.Exit(1)
    return found


def _set_password(security: "Security", name: str, password: str, mechanisms: list[Mechanism], iterations: int) -> None:
    with waiting("changing the password"):
        for mechanism in mechanisms:
            security.set_password(name, password, mechanism=mechanism, iterations=iterations)


def _read_password(file: Path | None) -> str:
    """The password from a file, from stdin, or asked for twice at a terminal."""
    if file is None and sys.stdin.isatty():
        password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = _first_line(file)
    if not password:
        raise typer.BadParameter("the password is empty", param_hint="--password-file")
    if len(password) > _PASSWORD_CHARACTERS_MAX:
        raise typer.BadParameter("the password is too long", param_hint="--password-file")
    return password


def _first_line(file: Path | None) -> str:
    if file is None or str(file) == "-":
        return sys.stdin.readline().rstrip("\r\n")
    try:
        with file.open(encoding="utf-8") as lines:
            return lines.readline(_PASSWORD_CHARACTERS_MAX + 2).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}", param_hint="--password-file") from None


def _describe(user: "ScramUser") -> str:
    return ", ".join(f"{name} ({number(count)} iterations)" for name, count in user.iterations.items())
