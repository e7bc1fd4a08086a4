"""The prompt: a line editor with history and completion, in which a statement may have several lines."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from typing_extensions import override

from deploy.terminal.sql.completion import Names, SqlCompleter
from deploy.views.sql.script import is_complete
from streams.sql.language.tokens import Kind, statements
from streams.sql.language.words import KEYWORDS

_PROMPT: Final = "sql> "
_MORE: Final = "...> "
_HISTORY_BYTES_MAX: Final = 1_000_000
_KEPT_MAX: Final = 1_000
_COLOURED_CHARACTERS_MAX: Final = 20_000
_STYLES: Final = {Kind.STRING: "fg:ansigreen", Kind.INTEGER: "fg:ansicyan", Kind.DECIMAL: "fg:ansicyan"}


class Prompt:
    """Asks for statements."""

    def __init__(self, history: Path, names: Callable[[], Names]) -> None:
        self._session: PromptSession[str] = PromptSession(
            message=_PROMPT,
            multiline=True,
            prompt_continuation=_MORE,
            history=_history(history),
            completer=ThreadedCompleter(SqlCompleter(names)),
            complete_while_typing=False,
            lexer=SqlLexer(),
            key_bindings=_keys(),
            enable_history_search=True,
        )

    def ask(self) -> str:
        """What was entered: whole statements, or a command. Raises EOFError at Ctrl-D, KeyboardInterrupt at Ctrl-C."""
        return self._session.prompt()

    def past(self) -> list[str]:
        """What was entered before, the latest last."""
        return list(self._session.history.get_strings())[-_KEPT_MAX:]


class PrivateHistory(FileHistory):
    """Statements in a file that only its owner can read; those that begin with a space are not kept."""

    @override
    def store_string(self, string: str) -> None:
        if not string.startswith(" "):
            super().store_string(string)


class SqlLexer(Lexer):
    """Colours words of the language, texts and numbers."""

    @override
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        styles = _styles(document.text)
        begins = [0]
        for line in document.lines:
            begins.append(begins[-1] + len(line) + 1)

        def line_of(number: int) -> StyleAndTextTuples:
            if number >= len(document.lines):
                return []
            begin = begins[number]
            line = document.lines[number]
            return [(styles[begin + place] if styles else "", letter) for place, letter in enumerate(line)]

        return line_of


def _styles(text: str) -> list[str]:
    """A style for each character; empty for a text that is too long for it."""
    if len(text) > _COLOURED_CHARACTERS_MAX:
        return []
    styles = ["fg:ansibrightblack" if text[place : place + 2] == "--" else "" for place in range(len(text))]
    for statement in statements(text):
        for token in statement.tokens:
            style = _STYLES.get(token.kind, "")
            if token.kind is Kind.WORD and token.value in KEYWORDS:
                style = "fg:ansibrightblue bold"
            for place in range(token.start, min(token.end, len(text))):
                styles[place] = style
    return styles


def _keys() -> KeyBindings:
    """Enter runs what is complete; else, and with Alt, it begins a new line."""
    keys = KeyBindings()

    def _is_complete() -> bool:
        from prompt_toolkit.application import get_app

        buffer = get_app().current_buffer
        return buffer.document.is_cursor_at_the_end and is_complete(buffer.text)

    @keys.add("enter", filter=Condition(_is_complete))
    def _run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


def _history(path: Path) -> History:
    """The history of a file; in memory where there cannot be one."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
        if path.stat().st_size > _HISTORY_BYTES_MAX:
            _shorten(path, FileHistory(str(path)).load_history_strings())
    except OSError:
        return InMemoryHistory()
    return PrivateHistory(str(path))


def _shorten(path: Path, latest_first: Iterable[str]) -> None:
    """Keep the latest statements of a file that has become too long."""
    kept = [text for text, _ in zip(latest_first, range(_KEPT_MAX), strict=False)]
    path.write_text("", encoding="utf-8")
    shortened = FileHistory(str(path))
    for text in reversed(kept):
        shortened.store_string(text)
