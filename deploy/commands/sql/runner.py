"""Runs texts of statements: each part by the terminal itself or by the service, and shows what it answers."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, Protocol, TypeVar

from deploy.clients.failures import explain
from deploy.clients.sql import Json, NotReady, ServerUnreachable, SqlCallError, SqlClient, StatementRefused
from deploy.clients.sql_names import KnownNames
from deploy.commands.sql.state import State
from deploy.terminal.output import waiting
from deploy.terminal.sql.screen import Screen
from deploy.views.sql.entities import blocks_of, command_of, failure_of
from deploy.views.sql.keys import key_places
from deploy.views.sql.mistakes import Mistake, excerpt
from deploy.views.sql.refusals import message_of, mistake_of, steps_of
from deploy.views.sql.rows import Column, LiveTable, header_columns
from deploy.views.sql.script import How, Part, parts_of
from deploy.views.text import plural
from streams.sql.language.source import Source
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import (
    DefineVariable,
    InsertValues,
    RunScript,
    SetProperty,
    Show,
    Shown,
    Statement,
    UndefineVariable,
    UnsetProperty,
)

T = TypeVar("T")

_PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.2
_CHUNK_ROWS: Final = 1_000
"""Rows of a pull query in one table."""
_OWN: Final = (SetProperty, UnsetProperty, DefineVariable, UndefineVariable, RunScript)


class Failed(Exception):
    """A part of a text has failed; it was shown why."""


class OwnCommand(Protocol):
    """A command of the terminal."""

    def __call__(self, text: str) -> None:
        """Run it; may raise Failed."""


class Runner:
    """Runs the parts of texts one after the other, and stops at the first that fails."""

    def __init__(self, client: SqlClient, screen: Screen, state: State) -> None:
        self.client = client
        self.screen = screen
        self.state = state
        self.names = KnownNames(lambda: self.client)
        self.own: OwnCommand = self._refuse_command

    def run(self, name: str, text: str) -> None:
        """Run a text, unless it has mistakes; raises Failed, and KeyboardInterrupt when a query was ended by Ctrl-C."""
        source = Source(text)
        parts = list(parts_of(text, self.state.variables))
        wrong = [problem for part in parts for problem in part.problems]
        for problem in wrong:
            start, end = source.position(problem.place.start), source.position(problem.place.end)
            self._show_mistake(name, source, Mistake(start.line, start.column, end.line, end.column, problem.message))
        if wrong:
            if len(parts) > 1:
                self.screen.remark("nothing was run: correct it first")
            raise Failed
        for number, part in enumerate(parts, 1):
            try:
                self._run_part(part)
            except SqlCallError as error:
                self._show_refusal(name, source, part, error)
                if number < len(parts):
                    self.screen.remark(f"{plural(len(parts) - number, 'statement')} after it not run")
                raise Failed from error

    def ask(self, what: str, call: Callable[[], T]) -> T:
        """Call the service; one that is starting gets a little time."""
        deadline = time.monotonic() + _PATIENCE_S
        with waiting(what):
            while True:
                try:
                    return call()
                except NotReady:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_PAUSE_S)

    # --- parts ---

    def _run_part(self, part: Part) -> None:
        match part.how:
            case How.HERE:
                self.own(part.text)
            case How.COMMAND if isinstance(part.statement, _OWN):
                self._run_own(part.statement)
            case How.COMMAND if part.statement == Show(Shown.VARIABLES):
                variables = [{"name": name, "value": value} for name, value in sorted(self.state.variables.items())]
                self._show({"@type": "variables", "statementText": part.text, "variables": variables, "warnings": []})
            case How.COMMAND:
                self._run_command(part)
            case How.PRINT:
                self._run_print(part)
            case How.PULL | How.PUSH:
                self._run_query(part)

    def _run_own(self, statement: Statement) -> None:
        state = self.state
        match statement:
            case SetProperty(key, value):
                self.ask("asking about the property", lambda: self.client.check_property(key))
                state.properties[key] = value
                self.screen.success(f"{key} is {value!r} for statements from now on")
            case UnsetProperty(key):
                if state.properties.pop(key, None) is None:
                    raise StatementRefused(f"{key} was not set in this session")
                self.screen.success(f"{key} has the service's value again")
            case DefineVariable(name, value):
                state.variables[name.upper()] = value
            case UndefineVariable(name):
                state.variables.pop(name.upper(), None)
            case RunScript(file):
                self.own(f"RUN SCRIPT '{file}'")
            case _:
                raise AssertionError(statement)

    def _run_command(self, part: Part) -> None:
        text = f"{part.text};"
        answers = self.ask("running the statement", lambda: self.client.execute(text, self.state.session()))
        self.names.forget()
        for answer in answers:
            self._show(self._finished(answer))
        if not answers and isinstance(part.statement, InsertValues):
            self.screen.success("inserted")

    def _finished(self, answer: Json) -> Json:
        """The answer to a command once it has run."""
        self.state.remember(answer.get("commandSequenceNumber"))
        if (command := command_of(answer)) is None:
            return answer
        deadline = time.monotonic() + _PATIENCE_S
        with waiting("the service runs the statement"):
            while command_of(answer) is not None and time.monotonic() < deadline:
                time.sleep(_PAUSE_S)
                answer = {**answer, "commandStatus": self.client.command_status(command)}
        return answer

    def _show(self, answer: Json) -> None:
        if (reason := failure_of(answer)) is not None:
            raise StatementRefused(reason)
        self.screen.entity(answer, blocks_of(answer))

    def _run_print(self, part: Part) -> None:
        with self.client.lines(f"{part.text};", self.state.session()) as lines:
            for line in lines:
                self.screen.text(line)

    # --- rows ---

    def _run_query(self, part: Part) -> None:
        what = "the service starts the query; Spark takes some seconds when it is needed for the first time"
        with self.client.rows(f"{part.text};", self.state.session()) as items:
            with waiting(what):
                columns = header_columns(next(items, {}).get("header") or {})
                first = [] if part.how is How.PUSH else list(islice(items, _CHUNK_ROWS))
            if part.how is How.PUSH:
                self._show_changes(part, columns, items)
            else:
                self._show_rows(columns, first, items)

    def _show_rows(self, columns: list[Column], chunk: list[Json], items: Iterator[Json]) -> None:
        """The rows of a query that ends."""
        count = 0
        while True:
            rows = [item["row"]["columns"] for item in chunk if "row" in item]
            if rows or not count:
                self.screen.rows(columns, rows)
            count += len(rows)
            chunk = list(islice(items, _CHUNK_ROWS))
            if not chunk:
                break
        if not self.screen.is_json:
            self.screen.remark(plural(count, "row"))

    def _show_changes(self, part: Part, columns: list[Column], items: Iterator[Json]) -> None:
        """The rows of a query that does not end: a table that keeps up with them, or a line for each."""
        keys = None
        if self.screen.is_live and isinstance(part.statement, Query):
            keys = key_places(part.statement, columns, self.names.keys_of)
        try:
            if keys is None:
                ended = self._show_events(columns, items)
            else:
                ended = self._show_table(columns, LiveTable(keys), items)
        except KeyboardInterrupt:
            self._tell_end("Query terminated")
            raise
        self._tell_end(ended)

    def _tell_end(self, how: str) -> None:
        if not self.screen.is_json:
            self.screen.remark(how)

    def _show_events(self, columns: list[Column], items: Iterator[Json]) -> str:
        lines = self.screen.row_lines(columns)
        if self.screen.is_live:
            self.screen.remark("rows appear as they come; Ctrl-C ends the query")
        for item in items:
            if message := item.get("finalMessage"):
                return str(message)
            lines.add(item["row"]["columns"], is_deleted=bool(item["row"].get("tombstone")))
        return "Query Completed"

    def _show_table(self, columns: list[Column], found: LiveTable, items: Iterator[Json]) -> str:
        try:
            with self.screen.live(columns, found) as view:
                for item in items:
                    if message := item.get("finalMessage"):
                        return str(message)
                    view.add(item["row"]["columns"], is_deleted=bool(item["row"].get("tombstone")))
        finally:
            self.screen.last_of(columns, found)
        return "Query Completed"

    # --- failures ---

    def _show_mistake(self, name: str, source: Source, mistake: Mistake) -> None:
        self.screen.mistake(name, mistake, excerpt(source, mistake))

    def _show_refusal(self, name: str, source: Source, part: Part, error: SqlCallError) -> None:
        for entity in error.entities:
            self.screen.entity(entity, blocks_of(entity))
        if (mistake := mistake_of(error, source, part.place)) is not None:
            self._show_mistake(name, source, mistake)
            return
        if isinstance(error, ServerUnreachable) or error.status in (401, 403):
            self.screen.failure(*explain(error))
            return
        self.screen.failure(message_of(error), steps_of(error))

    def _refuse_command(self, text: str) -> None:
        raise StatementRefused(f"{text.strip()} is a command of the prompt: it does nothing here")
