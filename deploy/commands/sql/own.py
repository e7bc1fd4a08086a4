"""The commands of `caudal sql` itself: what ksqlDB's CLI has beside the statements of the language."""

import os
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from deploy.clients.sql import SqlClient, StatementRefused
from deploy.commands.sql.runner import Runner
from deploy.commands.sql.texts import Unreadable, read_text
from deploy.terminal.output import out
from deploy.terminal.sql.screen import Screen
from deploy.views.sql.blocks import Grid, NamedValues

_SCRIPTS_DEEP_MAX: Final = 10
_WORDS: Final = re.compile(r"\s*(\w+)\s*(.*?)\s*;?\s*", re.DOTALL)
_SCRIPT: Final = re.compile(r"SCRIPT\s+(.*)", re.IGNORECASE | re.DOTALL)
_HELP: Final = (
    ("statement;", "runs it: CREATE, SELECT, INSERT, SHOW, DESCRIBE, EXPLAIN, PRINT, DROP ..."),
    ("SET 'auto.offset.reset' = 'earliest';", "a property for statements from now on; UNSET takes it back"),
    ("DEFINE name = 'value';", "a value for ${name}; UNDEFINE name; SHOW VARIABLES;"),
    ("RUN SCRIPT 'file.sql'", "runs the statements of a file"),
    ("OUTPUT JSON | TABLE", "how answers are shown"),
    ("WRAP ON | OFF", "whether wide cells go on in the next line, or are cut"),
    ("SPOOL 'file' | OFF", "a copy of everything in a file"),
    ("HISTORY", "what was entered before"),
    ("CLEAR", "an empty screen"),
    ("SERVER [url]", "which service answers; with an address, another one"),
    ("VERSION", "the versions of this program and of the service"),
    ("EXIT, or Ctrl-D", "leaves; Ctrl-C ends a query, or what is typed"),
)


class Leave(Exception):
    """The user wants to leave."""


class OwnCommands:
    """Runs them."""

    def __init__(
        self, runner: Runner, *, connect: Callable[[str], SqlClient], past: Callable[[], Sequence[str]]
    ) -> None:
        self._runner = runner
        self._connect = connect
        self._past = past
        self._depth = 0
        self._commands: dict[str, Callable[[str], None]] = {
            "CLEAR": self._clear,
            "EXIT": self._exit,
            "HELP": self._help,
            "HISTORY": self._history,
            "OUTPUT": self._output,
            "QUIT": self._exit,
            "RUN": self._run,
            "SERVER": self._server,
            "SPOOL": self._spool,
            "VERSION": self._version,
            "WRAP": self._wrap,
        }

    def __call__(self, text: str) -> None:
        """Run one; raises Leave, StatementRefused, and what a script raises."""
        found = _WORDS.fullmatch(text)
        assert found is not None
        self._commands[found[1].upper()](found[2])

    @property
    def _screen(self) -> Screen:
        return self._runner.screen

    def _clear(self, _: str) -> None:
        out.clear()

    def _exit(self, _: str) -> None:
        raise Leave

    def _help(self, _: str) -> None:
        self._screen.entity(dict(_HELP), [Grid(("Command", "What it does"), _HELP)])

    def _history(self, _: str) -> None:
        past = list(self._past())
        rows = tuple((str(number), " ".join(text.split())) for number, text in enumerate(past, 1))
        self._screen.entity(past, [Grid(("#", "Entered"), rows)])

    def _output(self, word: str) -> None:
        match word.upper():
            case "":
                pass
            case "JSON":
                self._screen.is_json = True
            case "TABLE" | "TABULAR":
                self._screen.is_json = False
            case _:
                raise StatementRefused(f"OUTPUT {word}: there are TABLE and JSON")
        self._screen.remark(f"answers are shown as {'JSON' if self._screen.is_json else 'tables'}")

    def _run(self, rest: str) -> None:
        found = _SCRIPT.fullmatch(rest)
        file = _path(found[1] if found else "")
        if not file:
            raise StatementRefused("say which file:  RUN SCRIPT 'file.sql'")
        if self._depth >= _SCRIPTS_DEEP_MAX:
            raise StatementRefused(f"{file}: scripts may run each other {_SCRIPTS_DEEP_MAX} deep, and no deeper")
        try:
            text = read_text(str(Path(file).expanduser()))
        except Unreadable as error:
            raise StatementRefused(str(error)) from None
        self._depth += 1
        try:
            self._runner.run(file, text)
        finally:
            self._depth -= 1

    def _server(self, url: str) -> None:
        if url:
            try:
                client = self._connect(_path(url))
            except ValueError as error:
                raise StatementRefused(str(error)) from None
            client.info()
            self._runner.client = client
            self._runner.state.sequence = None
            self._runner.names.forget()
        self._screen.entity({"server": self._runner.client.url}, [NamedValues("Server", self._facts())])

    def _facts(self) -> tuple[tuple[str, str], ...]:
        info = self._runner.client.info()
        return (
            ("Address", self._runner.client.url),
            ("Version", str(info.get("version"))),
            ("State", str(info.get("serverStatus"))),
            ("Service id", str(info.get("ksqlServiceId"))),
            ("Kafka cluster", str(info.get("kafkaClusterId"))),
        )

    def _spool(self, word: str) -> None:
        file = _path(word)
        if not file or file.upper() == "OFF":
            self._screen.end_spool()
            self._screen.remark("nothing is spooled")
            return
        path = Path(file).expanduser()
        try:
            self._screen.spool_to(path)
        except OSError as error:
            raise StatementRefused(f"{path} cannot be written: {error.strerror}") from None
        self._screen.remark(f"a copy of everything goes to {os.fspath(path)} until SPOOL OFF")

    def _version(self, _: str) -> None:
        versions = {"caudal": version("caudal"), "server": str(self._runner.client.info().get("version"))}
        self._screen.entity(versions, [NamedValues("Version", tuple(versions.items()))])

    def _wrap(self, word: str) -> None:
        if word.upper() not in ("", "ON", "OFF"):
            raise StatementRefused(f"WRAP {word}: there are ON and OFF")
        self._screen.wraps = word.upper() != "OFF"
        self._screen.remark(f"wide cells {'go on in the next line' if self._screen.wraps else 'are cut'}")


def _path(text: str) -> str:
    """A name in quotes or without them."""
    text = text.strip().removesuffix(";").strip()
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
