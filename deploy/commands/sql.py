"""`caudal sql`: statements of SQL over topics."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.cells import cell_len
from rich.markup import escape

from deploy.commands.options import Output, OutputOption
from deploy.terminal.output import done, examples, failure, note, out, print_json
from deploy.views.text import plural, printable

if TYPE_CHECKING:
    from deploy.views.sql import Excerpt, Mistake
    from streams.sql.language.variables import Variables

EPILOG: Final = examples(
    "caudal sql --check pipeline.sql                       each mistake with its line; exits with 1 if there is one",
    "caudal sql --check -e 'SELECT * FROM orders EMIT CHANGES;'",
    "cat *.sql | caudal sql --check - -o json",
    "caudal sql --check pipeline.sql --define environment=test      a value for ${environment}",
)
_MAX_BYTES: Final = 64_000_000
_MOST_SHOWN: Final = 100


def sql(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The statements; - reads them from stdin.", show_default=False),
    ] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Look for mistakes without starting or changing anything.")
    ] = False,
    execute: Annotated[
        str | None, typer.Option("--execute", "-e", metavar="STATEMENTS", help="The statements.", show_default=False)
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option(
            "--define", metavar="NAME=VALUE", help="A value for ${NAME}; repeat it for more.", show_default=False
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check statements of SQL over topics, in a file or on the command line, without a cluster and without Java."""
    if not check:
        raise typer.BadParameter("say what to do with the statements: --check", param_hint="--check")
    name, text = _read(file, execute)
    raise typer.Exit(_check(name, text, _variables(define or []), output))


def _read(file: str | None, statements: str | None) -> tuple[str, str]:
    """The text and what messages call it."""
    if (file is None) == (statements is None):
        raise typer.BadParameter("give either a file or -e 'STATEMENTS'", param_hint="FILE, -e")
    if statements is not None:
        return "-e", statements
    assert file is not None
    try:
        if file == "-":
            content = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        failure(f"{file} cannot be read: {error.strerror}")
        raise typer.Exit(2) from None
    try:
        return file, content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        failure(f"{file} is not UTF-8: line {line} has a byte that is not part of a character", ["save it as UTF-8"])
        raise typer.Exit(2) from None


def _variables(assignments: list[str]) -> "Variables":
    from streams.sql.language.variables import Variables

    defined = Variables()
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{assignment!r} is not NAME=VALUE", param_hint="--define")
        defined.define(name.strip(), value)
    return defined


def _check(name: str, text: str, variables: "Variables", output: Output) -> int:
    """Print the mistakes; the exit code."""
    from deploy.views.sql import excerpt, mistakes
    from streams.sql.language.script import read_script
    from streams.sql.language.source import Source

    source = Source(text)
    wrong = []
    count = 0
    for statement in read_script(text, variables):
        count += 1
        if statement.problems:
            wrong.append(statement)
        if len(wrong) > _MOST_SHOWN:
            break
    found = mistakes(source, wrong)
    shown, more = found[:_MOST_SHOWN], len(found) > _MOST_SHOWN
    if output is Output.JSON:
        print_json({"statements": count, "mistakes": [_as_object(mistake) for mistake in shown], "more": more})
        return 1 if found else 0
    for mistake in shown:
        _print(name, mistake, excerpt(source, mistake))
    if more:
        note(f"... and more; the first {_MOST_SHOWN} are shown")
    if not found:
        done(f"{plural(count, 'statement')}, no mistakes")
    return 1 if found else 0


def _as_object(mistake: "Mistake") -> dict[str, object]:
    return {
        "line": mistake.line,
        "column": mistake.column,
        "end_line": mistake.end_line,
        "end_column": mistake.end_column,
        "message": mistake.message,
    }


def _print(name: str, mistake: "Mistake", part: "Excerpt") -> None:
    out.print(
        f"[bold]{escape(printable(name))}:{mistake.line}:{mistake.column}:[/] {escape(printable(mistake.message))}"
    )
    before, marked, after = printable(part.before), printable(part.marked), printable(part.after)
    out.print(f"  {escape(before)}[red]{escape(marked)}[/]{escape(after)}")
    out.print(f"  {' ' * cell_len(before)}[bold red]{'^' * max(1, cell_len(marked))}[/]\n")
