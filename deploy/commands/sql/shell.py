"""The prompt of `caudal sql`: asks for statements until the user leaves."""

import os
from collections.abc import Callable
from typing import Final

from deploy.clients.profiles import profiles_file
from deploy.clients.sql import SqlCallError, SqlClient
from deploy.commands.sql.own import Leave, OwnCommands
from deploy.commands.sql.runner import Failed, Runner
from deploy.terminal.output import err
from deploy.terminal.sql.completion import Names
from deploy.terminal.sql.prompt import Prompt

_HISTORY: Final = "sql-history"


def run_shell(runner: Runner, connect: Callable[[str], SqlClient]) -> None:
    """Ask, run and show until Ctrl-D or EXIT; raises SqlCallError if there is no service."""
    info = runner.ask("connecting", runner.client.info)
    prompt = Prompt(profiles_file(os.environ).with_name(_HISTORY), lambda: _names(runner))
    runner.own = OwnCommands(runner, connect=connect, past=prompt.past)
    err.print(f"[bold]SQL over topics[/]  {runner.client.url}  [dim]version {info.get('version')}[/]")
    err.print("[dim]Statements end with a semicolon. HELP lists what else there is, Tab completes, Ctrl-D leaves.[/]")
    while True:
        try:
            text = prompt.ask()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        runner.screen.spool(f"sql> {text}")
        try:
            _run(runner, text)
        except Leave:
            return


def _run(runner: Runner, text: str) -> None:
    """Run what was entered; failures are shown, and the prompt comes back."""
    try:
        runner.run("statement", text)
    except (Failed, KeyboardInterrupt):
        pass
    except SqlCallError as error:
        runner.screen.failure(str(error))


def _names(runner: Runner) -> Names:
    names = runner.names
    return Names(
        sources=names.of_kind("sources"),
        topics=names.of_kind("topics"),
        queries=names.of_kind("queries"),
        functions=names.of_kind("functions"),
        columns_of=names.columns_of,
    )
