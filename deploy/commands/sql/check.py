"""Looks for mistakes in statements without starting or changing anything."""

from collections.abc import Mapping
from typing import Final

from rich.cells import cell_len
from rich.markup import escape

from deploy.commands.options import Output
from deploy.terminal.output import done, note, out, print_json
from deploy.views.sql.mistakes import Excerpt, Mistake, excerpt, mistakes
from deploy.views.text import plural, printable
from streams.sql.language.script import read_script
from streams.sql.language.source import Source
from streams.sql.language.variables import Variables

_MOST_SHOWN: Final = 100


def check(name: str, text: str, variables: Mapping[str, str], output: Output) -> int:
    """Print the mistakes; the exit code."""
    source = Source(text)
    wrong = []
    count = 0
    for statement in read_script(text, Variables(variables)):
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


def _as_object(mistake: Mistake) -> dict[str, object]:
    return {
        "line": mistake.line,
        "column": mistake.column,
        "end_line": mistake.end_line,
        "end_column": mistake.end_column,
        "message": mistake.message,
    }


def _print(name: str, mistake: Mistake, part: Excerpt) -> None:
    out.print(
        f"[bold]{escape(printable(name))}:{mistake.line}:{mistake.column}:[/] {escape(printable(mistake.message))}"
    )
    before, marked, after = printable(part.before), printable(part.marked), printable(part.after)
    out.print(f"  {escape(before)}[red]{escape(marked)}[/]{escape(after)}")
    out.print(f"  {' ' * cell_len(before)}[bold red]{'^' * max(1, cell_len(marked))}[/]\n")
