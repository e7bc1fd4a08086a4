"""`caudal --version`."""

from typing import Annotated

import typer


def _tell(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import version

    typer.echo(f"caudal {version('caudal')}")
    raise typer.Exit


def options(
    _version: Annotated[
        bool, typer.Option("--version", "-V", callback=_tell, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What may stand before a command."""
