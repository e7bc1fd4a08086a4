"""`caudal sql`: its options."""

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deploy.commands.options import Output, OutputOption, StreamsOptions
from deploy.commands.sql.texts import Unreadable, read_text
from deploy.terminal.output import examples, failure

if TYPE_CHECKING:
    from deploy.clients.sql import SqlClient
    from deploy.commands.sql.runner import Runner

EPILOG: Final = examples(
    "caudal sql                                            a prompt; HELP says what it can do",
    'caudal sql -e "SELECT item, AVG(price_cents) FROM orders GROUP BY item EMIT CHANGES;"      a live table',
    "caudal sql pipeline.sql                               the statements of a file, one after the other; also -f",
    "caudal sql -e 'SELECT * FROM totals;' -o json | jq .  a line of JSON for each row",
    "caudal sql --server http://ksqldb:8088                any server with ksqlDB's API",
    "caudal sql --check pipeline.sql                       each mistake with its line; exits with 1 if there is one",
    "caudal sql --check pipeline.sql --define environment=test      a value for ${environment}",
    "Tables of Spark, with Spark's own SQL:  caudal spark sql",
)


def sql(
    streams: StreamsOptions,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The statements; - reads them from stdin.", show_default=False),
    ] = None,
    *,
    execute: Annotated[
        str | None, typer.Option("--execute", "-e", metavar="STATEMENTS", help="The statements.", show_default=False)
    ] = None,
    from_file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="The same as FILE.", show_default=False)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Look for mistakes without starting or changing anything.")
    ] = False,
    define: Annotated[
        list[str] | None,
        typer.Option(
            "--define", metavar="NAME=VALUE", help="A value for ${NAME}; repeat it for more.", show_default=False
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run statements of SQL over topics: at a prompt, from the command line, from a file or from stdin."""
    variables = _variables(define or [])
    given = [one for one in (file, from_file) if one is not None]
    if len(given) + (execute is not None) > 1 or (check and not given and execute is None):
        raise typer.BadParameter("give either a file or -e 'STATEMENTS'", param_hint="FILE, -e")
    is_interactive = not given and execute is None and sys.stdin.isatty()
    name, text = ("", "") if is_interactive else _read(given[0] if given else "-", execute)
    if check:
        from deploy.commands.sql.check import check as look

        raise typer.Exit(look(name, text, variables, output))
    with streams.client() as client:
        raise typer.Exit(_run(client, streams, name, text, variables, is_json=output is Output.JSON))


def _run(
    client: "SqlClient", streams: StreamsOptions, name: str, text: str, variables: dict[str, str], *, is_json: bool
) -> int:
    """Run a text, or a prompt without one; the exit code."""
    from deploy.commands.sql.own import Leave, OwnCommands
    from deploy.commands.sql.runner import Failed, Runner
    from deploy.commands.sql.state import State
    from deploy.terminal.sql.screen import Screen

    screen = Screen(is_json=is_json)
    runner = Runner(client, screen, State(variables=variables))
    try:
        if not name:
            _shell(runner, streams)
            return 0
        runner.own = OwnCommands(runner, connect=streams.client_of, past=list)
        runner.run(name, text)
    except Failed:
        return 1
    except Leave:
        return 0
    finally:
        screen.end_spool()
    return 0


def _shell(runner: "Runner", streams: StreamsOptions) -> None:
    try:
        from deploy.commands.sql.shell import run_shell
    except ModuleNotFoundError as error:
        if error.name != "prompt_toolkit":
            raise
        failure(
            "the prompt needs the package prompt_toolkit, which is not installed",
            ["install it:  `pip install prompt_toolkit`", "or without a prompt:  `caudal sql -e 'STATEMENTS'`"],
        )
        raise typer.Exit(1) from None
    run_shell(runner, streams.client_of)


def _read(file: str, statements: str | None) -> tuple[str, str]:
    """What messages call the text, and the text."""
    if statements is not None:
        return "-e", statements
    try:
        return file, read_text(file)
    except Unreadable as error:
        failure(str(error), error.steps)
        raise typer.Exit(2) from None


def _variables(assignments: list[str]) -> dict[str, str]:
    defined = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{assignment!r} is not NAME=VALUE", param_hint="--define")
        defined[name.strip().upper()] = value
    return defined
