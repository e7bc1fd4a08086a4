"""`caudal certificate`: a small authority, for the services and clients of a platform."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from deploy.commands.options import Commands, Output, OutputOption
from deploy.launcher.request import data_folder
from deploy.security.folder import FOLDER_NAME, RENEWED_BEFORE_DAYS
from deploy.terminal.output import done, examples, facts, failure, note, print_json, table

if TYPE_CHECKING:
    from deploy.certificates.authority import Authority, Issued

app = Commands(
    no_args_is_help=True,
    help="A small certificate authority, and what it issues: init, create, list, show, renew, export.",
)

_DAYS: Final = 365
_AUTHORITY_DAYS: Final = 3650
_DAYS_MAX: Final = 3650
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        "-f",
        metavar="DIR",
        help="Folder of the authority.",
        show_default=f"{FOLDER_NAME}/ in the data folder of the platform",
    ),
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of the certificate, and of the user that it identifies (CN).", show_default=False
    ),
]
DaysOption = Annotated[int, typer.Option("--days", metavar="N", min=1, max=_DAYS_MAX, help="For how long it is valid.")]
HostsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="NAME|ADDRESS",
        help="A host name or IP address of the service. Repeat it for more. Without any it is for a client.",
        show_default=False,
    ),
]


@app.command(
    epilog=examples("caudal certificate init --folder ca", "caudal certificate init --folder ca --name 'Acme'")
)
def init(
    *,
    folder: FolderOption = None,
    name: Annotated[str, typer.Option("--name", help="Name of the authority.")] = "Caudal",
    days: DaysOption = _AUTHORITY_DAYS,
) -> None:
    """Make an authority: its key (ca.key) and its certificate (ca.crt). One that exists is never replaced."""
    if not name.strip() or len(name) > 64 or not name.isprintable():
        raise typer.BadParameter("must be 1 to 64 printable characters", param_hint="--name")
    authority = _authority(folder)
    with _explained():
        authority.create(common_name=name, days=days)
    done(f"authority [bold]{escape(name)}[/] made in {escape(str(authority.folder))}")
    note("ca.crt goes to every client. ca.key signs certificates: keep it safe, and on no other machine")


@app.command(
    epilog=examples(
        "caudal certificate create broker --host broker.example --host 10.0.0.7",
        "caudal certificate create shop                    for a client, which logs in as the user shop",
        "caudal certificate create prometheus --days 90    for scraping /metrics",
        "The file has the key, the certificate and that of the authority (PEM). For Java:  caudal certificate export",
    )
)
def create(
    name: NameArgument, *, host: HostsOption = None, days: DaysOption = _DAYS, folder: FolderOption = None
) -> None:
    """Issue a certificate with a new key: for a service, if it has hosts, else for a client."""
    authority = _authority(folder)
    with _explained():
        issued = authority.issue(name, hosts=host or (), days=days)
    done(f"certificate of [bold]{escape(name)}[/], valid until {issued.not_after:%Y-%m-%d}: {escape(str(issued.file))}")


@app.command(name="list", epilog=examples("caudal certificate list", "caudal certificate list --folder ca -o json"))
def list_(*, folder: FolderOption = None, output: OutputOption = Output.TABLE) -> None:
    """List the certificates and when they expire."""
    authority = _authority(folder)
    with _explained():
        found = [authority.own(), *authority.issued()]
    if output is Output.JSON:
        print_json([_as_json(authority, one) for one in found])
        return
    rows = [
        (one.name, _expiry(authority, one), "authority" if one.name == "ca" else ", ".join(one.hosts) or "a client")
        for one in found
    ]
    table("", ["Certificate", "Expires", "For"], rows)


@app.command(epilog=examples("caudal certificate show broker", "caudal certificate show ca"))
def show(name: NameArgument, *, folder: FolderOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show a certificate; `ca` is that of the authority."""
    authority = _authority(folder)
    with _explained():
        found = authority.own() if name == "ca" else authority.find(name)
    if output is Output.JSON:
        print_json(_as_json(authority, found))
        return
    facts(
        f"Certificate {escape(name)}",
        [
            ("File", str(found.file)),
            ("Hosts", ", ".join(found.hosts) or ("–" if name == "ca" else "none: it is for a client")),
            ("Valid", f"from {found.not_before:%Y-%m-%d} until {_expiry(authority, found)}"),
            ("Serial", found.serial),
            ("SHA-256", found.fingerprint),
        ],
    )


@app.command(
    epilog=examples(
        "caudal certificate renew broker",
        "caudal certificate renew --all",
        f"caudal certificate renew --expiring {RENEWED_BEFORE_DAYS}      those with fewer days left; for a cron job",
        "Services that run take it up by themselves, within seconds.",
    )
)
def renew(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of certificates.", show_default=False)
    ] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    expiring: Annotated[
        int | None,
        typer.Option("--expiring", metavar="DAYS", min=0, help="Those that expire within days.", show_default=False),
    ] = None,
    host: HostsOption = None,
    days: DaysOption = _DAYS,
    folder: FolderOption = None,
) -> None:
    """Replace certificates and their keys by new ones, for the same hosts unless others are given."""
    if bool(names) + all_ + (expiring is not None) != 1:
        raise typer.BadParameter("name certificates, or say --all, or --expiring DAYS")
    if host and (names is None or len(names) != 1):
        raise typer.BadParameter("hosts can be given for one certificate at a time", param_hint="--host")
    authority = _authority(folder)
    with _explained():
        chosen = names or _chosen(authority, expiring)
        for name in chosen:
            issued = authority.renew(name, hosts=host or None, days=days)
            if issued.file.with_suffix(".p12").exists():
                _export(authority, name)
            done(f"certificate of [bold]{escape(name)}[/] renewed, valid until {issued.not_after:%Y-%m-%d}")
    if not chosen:
        note("nothing to renew")


@app.command(
    epilog=examples("caudal certificate export shop", "Passwords are in files beside the stores: NAME.p12.password")
)
def export(name: NameArgument, *, folder: FolderOption = None) -> None:
    """Write PKCS12 stores for Java: a key store with a certificate, and a trust store with the authority."""
    authority = _authority(folder)
    with _explained():
        key_store, trust_store = _export(authority, name)
    done(f"key store written: {escape(str(key_store))}")
    done(f"trust store written: {escape(str(trust_store))}")
    note("the password of each is in the file beside it, with .password at its end")


def _export(authority: "Authority", name: str) -> tuple[Path, Path]:
    from deploy.certificates.java_stores import write_key_store, write_trust_store

    return write_key_store(authority, name), write_trust_store(authority)


def _authority(folder: Path | None) -> "Authority":
    from deploy.certificates.authority import Authority

    return Authority((folder or data_folder(os.environ) / FOLDER_NAME).expanduser().absolute())


def _chosen(authority: "Authority", days: int | None) -> Sequence[str]:
    """All of them, or those that have fewer days left."""
    return [one.name for one in authority.issued() if days is None or authority.days_left(one) < days]


def _expiry(authority: "Authority", certificate: "Issued") -> str:
    days = authority.days_left(certificate)
    left = f"in {days} days" if days >= 0 else "has expired"
    return f"{certificate.not_after:%Y-%m-%d}, {left}"


def _as_json(authority: "Authority", certificate: "Issued") -> dict[str, object]:
    return {
        "name": certificate.name,
        "file": str(certificate.file),
        "hosts": list(certificate.hosts),
        "not_before": certificate.not_before.isoformat(),
        "not_after": certificate.not_after.isoformat(),
        "days_left": authority.days_left(certificate),
        "serial": certificate.serial,
        "sha256": certificate.fingerprint,
    }


@contextmanager
def _explained() -> Iterator[None]:
    """Turn an error into a line for the user, and exit code 1."""
    from deploy.certificates.authority import AuthorityError

    try:
        yield
    except AuthorityError as error:
        failure(str(error), [error.next_step] if error.next_step else [])
        raise typer.Exit(1) from None
    except OSError as error:
        failure(f"{error.filename or 'the folder'} cannot be used: {error.strerror or error}")
        raise typer.Exit(1) from None
