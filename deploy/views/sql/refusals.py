"""What the service says is wrong with a statement: where, and what to do about it."""

import re
from typing import Final

from deploy.clients.sql import SqlCallError
from deploy.views.sql.mistakes import Mistake
from deploy.views.text import printable
from streams.sql.language.source import Place, Source

_LINE_FIRST: Final = re.compile(r"line (\d+):(\d+): ?")
"""As the parser says it."""
_LINE_LATER: Final = re.compile(r"Line: (\d+), Col: (\d+): ?")
"""As the analysis says it."""
_WORD_AT: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|[\w@]+|\S")

_STEPS: Final = {
    40002: "give it to the service as a query: end it with  `EMIT CHANGES;`  or read a table",
    40003: "close some of the push queries that run, or raise  `ksql.max.push.queries`",
    40301: "see who may do what:  `caudal acl list`",
    42801: "say where the schema registry is:  `caudal streams --set ksql.schema.registry.url=http://localhost:8081`",
    42900: "it is temporary: try again in a moment",
}


def mistake_of(error: SqlCallError, source: Source, place: Place) -> Mistake | None:
    """Where in the whole text the service found a mistake, if it says so."""
    found = _LINE_FIRST.search(error.message) or _LINE_LATER.search(error.message)
    if found is None:
        return None
    begin = source.position(place.start)
    line, column = int(found[1]), int(found[2])
    if line == 1:
        column += begin.column - 1
    line += begin.line - 1
    last = source.position(len(source.text)).line
    if not 1 <= line <= last or not 1 <= column <= len(source.line(line)) + 1:
        return None
    word = _WORD_AT.match(source.line(line), column - 1)
    end = word.end() + 1 if word else column + 1
    return Mistake(line, column, line, end, printable(_without_place(error.message, found)))


def message_of(error: SqlCallError) -> str:
    """The message in as many lines as it has, safe to print."""
    return "\n".join(printable(line) for line in error.message.strip().splitlines())


def steps_of(error: SqlCallError) -> list[str]:
    """What to do next; commands in backticks."""
    return [_STEPS[error.code]] if error.code in _STEPS else []


def _without_place(message: str, found: re.Match[str]) -> str:
    text = (message[: found.start()] + message[found.end() :]).strip()
    return " ".join(line.strip() for line in text.splitlines() if line.strip())
