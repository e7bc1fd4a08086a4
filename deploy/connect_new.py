"""`caudal connect new`: the skeleton of a connector, ready to be tested."""

from pathlib import Path
from typing import Annotated

import typer

EPILOG = (
    "Examples:\n\n"
    "caudal connect new sheets\n\n"
    "caudal connect new sheets --sink --folder ~/projects\n\n"
    "Then  cd sheets,  pip install -e .  and  pytest"
)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits and dashes.", show_default=False)],
    *,
    source: Annotated[bool, typer.Option("--source", help="A source alone.")] = False,
    sink: Annotated[bool, typer.Option("--sink", help="A sink alone.")] = False,
    both: Annotated[bool, typer.Option("--both", help="A source and a sink, which is the default.")] = False,
    folder: Annotated[
        Path,
        typer.Option("--folder", "-f", metavar="DIR", file_okay=False, help="Where its folder is made."),
    ] = Path(),
) -> None:
    """Write a connector of your own: a small project that works, and passes the standard suites."""
    from rich.markup import escape

    from connect.api.errors import ConfigError
    from connect.testing.scaffold import Kind, write_connector
    from deploy.output import done, note, out

    if source + sink + both > 1:
        raise typer.BadParameter("either --source, --sink or --both", param_hint="--both")
    kind = Kind.SOURCE if source else Kind.SINK if sink else Kind.BOTH
    try:
        written = write_connector(name, folder, kind=kind)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    except OSError as error:
        raise typer.BadParameter(f"{folder} cannot be written: {error}", param_hint="--folder") from None
    for path in written:
        out.print(escape(str(path)))
    place = escape(str(folder / name))
    done(f"connector [bold]{escape(name)}[/] written")
    note(f"test it:  cd {place} && pip install -e . && pytest")
